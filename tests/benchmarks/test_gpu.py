"""Measurements for a lent GPU: on a CPU, the commands are checked and the bookkeeping is run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def commands() -> dict[str, list[str]]:
    found: dict[str, list[str]] = gpu.steps(Path("results"))
    return {name: command[command.index(sys.executable) + 1 :] for name, command in found.items()}


def test_scripts_are_there_and_take_the_options() -> None:
    tried = 0
    for command in commands().values():
        if command[1].startswith("benchmarks.") and "--row" not in command:
            source = (ROOT / command[1].replace(".", "/")).with_suffix(".py").read_text()
            assert all(f"{word[2:]}=" in source for word in command if word.startswith("--")), command
            tried += 1
    assert tried > 6


def test_tests_are_there() -> None:
    assert all((ROOT / path).is_file() for path in gpu.TESTS)


@pytest.mark.stress
@pytest.mark.parametrize("name", ["table-13", "atlas-soft", "tf32"])
def test_sweeps_can_be_planned(name: str, tmp_path: Path) -> None:
    on_cpu = ["cpu" if word == "cuda" else word for word in commands()[name]]
    command = [sys.executable, *on_cpu, "--dry-run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_step_that_is_done_is_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say = [sys.executable, "-c", "print('said')"]
    assert gpu.run("say", say, tmp_path)
    assert (tmp_path / "say.log").read_text().startswith("said\n\nexit 0 after ")
    assert gpu.run("say", ["nothing of this name"], tmp_path)
    assert capsys.readouterr().out.count("exit 0") == 1


def test_a_step_that_takes_too_long_is_ended_and_not_done(tmp_path: Path) -> None:
    wait = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(60)"]
    assert not gpu.run("wait", wait, tmp_path, 0.01)
    assert [path.name for path in tmp_path.iterdir()] == ["wait.partial"]


def test_a_row_is_measured_beside_ordinary_modules() -> None:
    words = ["-m", "benchmarks.gpu", "--row", "sender/FC2L", "--device", "cpu", "--each", "0.2"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["engine"] in ("native", "broadcast")
    assert found["icy"] > found["ordinary"] > 1


def test_the_page_puts_measurements_beside_estimates(tmp_path: Path) -> None:
    (tmp_path / "tests.log").write_text("27 passed\n\nexit 0 after 9.0 s: -m pytest\n")
    row = '{"row": "sender/FC2L", "engine": "broadcast+graph", "icy": 200000.0, "ordinary": 2000.0}'
    log = f"A warning first.\n{row}\n\nexit 0 after 9.0 s: -m benchmarks.gpu\n"
    (tmp_path / "row-sender-FC2L.log").write_text(log)
    (tmp_path / "row-sender-X.log").write_text("Traceback\n\nexit 1 after 9.0 s: -m benchmarks.gpu\n")
    gpu.write_page(tmp_path)
    page = (tmp_path / "gpu.md").read_text()
    assert "Tests: 27 passed." in page
    assert "Failed steps: row-sender-X." in page
    assert "| sender/FC2L | broadcast+graph | 2,000 | 200,000 |" in page
    assert json.loads((tmp_path / "gpu.json").read_text())["rows"] == [json.loads(row)]


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    monkeypatch.setattr("icy.core.gpu.names", list)
    with pytest.raises(SystemExit, match="finds no GPU here"):
        gpu.main()


def test_an_unknown_step_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--only", "everything"])
    with pytest.raises(SystemExit, match="table-13"):
        gpu.main()
