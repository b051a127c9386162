"""Choice of trackers by name and by command, and errors before training."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import icy
from icy.cli import main
from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.experiments.progress import Watcher, Watchers
from icy.experiments.sweep import make_sweep, sweep_spec
from icy.experiments.trackers import TRACKERS, make_tracker, watching
from tests.experiments.trackers.helpers import ONE, assert_all_there

ROOT = Path(__file__).resolve().parents[3]

# -- errors ------------------------------------------------------------------------------------------------------------


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def quick(out: Path, command: str = "probe") -> list[str]:
    models = ["-s", "FC1L", "-r", "FC1L", "--steps", "20"] if command == "e2e" else ["-m", "sender/FC1L", "-g", "perm"]
    return [command, *models, "--quick", "--seeds", "1", "--workers", "1", "-o", str(out)]


def test_an_unknown_tracker_is_a_mistake_in_the_command(tmp_path: Path) -> None:
    result = run(*quick(tmp_path / "out"), "--track", "tensorbord")
    assert result.exit_code == 2
    assert result.stderr == "Error: No tracker is called 'tensorbord'; did you mean tensorboard?\n"
    file = tmp_path / "sweep.toml"
    file.write_text('model = "sender/FC1L"\nquick = true\ntrack = "wand"\n')
    result = run("sweep", str(file), "-o", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert result.stderr == "Error: No tracker is called 'wand'; did you mean wandb?\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", TRACKERS)
@pytest.mark.parametrize("command", ["probe", "sweep", "e2e"])
def test_a_missing_package_is_answered_before_anything_is_trained(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, TRACKERS[name].packages[0], None)
    out = tmp_path / "out"
    result = run(*quick(out, command), "--track", name)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: Tracking with {TRACKERS[name].title} needs the package ")
    assert f'pip install "icy-toolkit[{name}]"' in result.stderr
    assert result.stderr.count("\n") == 1
    assert not out.exists()
    with pytest.raises(InvalidSettingError, match="nothing was trained"):
        make_tracker(name, out)


def test_a_folder_that_cannot_be_used_is_found_before_anything_is_trained(name: str, tmp_path: Path) -> None:
    (tmp_path / "tracking").mkdir()
    (tmp_path / "tracking" / name).write_text("in the way")
    with pytest.raises(StoreError, match=f"cannot use .*{name}, so nothing was trained"):
        icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    assert not (tmp_path / "records").exists()


# -- all trackers and commands -----------------------------------------------------------------------------------------


def test_every_extra_of_setup_is_a_tracker() -> None:
    text = (ROOT / "setup.py").read_text()
    assert all(f'"{name}": ["{tracker.packages[0]}' in text for name, tracker in TRACKERS.items())


@pytest.mark.slow
def test_trackers_are_quiet(name: str, tmp_path: Path) -> None:
    """In a process of its own, as some of the packages write past sys.stdout."""
    words = [*quick(tmp_path / "out"), "--quiet", "--format", "csv"]
    plain = subprocess.run([sys.executable, "-m", "icy", *words], capture_output=True, text=True, cwd=tmp_path)
    words[words.index("-o") + 1] = "tracked"
    command = [sys.executable, "-m", "icy", *words, "--track", name]
    tracked = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (tracked.returncode, tracked.stdout, tracked.stderr) == (0, plain.stdout, "")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "tracked"}  # no other files
    assert_all_there(name, tmp_path / "tracked")


@pytest.mark.process
def test_only_requested_packages_are_imported(tmp_path: Path) -> None:
    """Not even TensorBoard, which torch would bring along."""
    code = (
        "import sys, icy, icy.experiments.trackers\n"
        "import icy.cli.commands.training\n"
        f"icy.probe('sender/FC1L', 'perm', out={str(tmp_path)!r}, quick=True, seeds=1, workers=1)\n"
        f"loaded = {{m.partition('.')[0] for m in sys.modules}} & {set(TRACKERS)}\n"
        "assert not loaded, loaded\n"
        "assert 'torch.utils.tensorboard' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["probe", "sweep", "e2e"])
def test_every_command_tracks(command: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    result = run(*quick(tmp_path, command), "--track", "tensorboard")
    assert result.exit_code == 0, result.output
    assert_all_there("tensorboard", tmp_path)
    again = run(*quick(tmp_path, command), "--track", "tensorboard")
    assert "Nothing to train" in again.stderr
    assert_all_there("tensorboard", tmp_path)


@pytest.mark.slow
def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert run(*quick(tmp_path / "out"), "--track", "tensorboard", "--dry-run").exit_code == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.process
def test_a_sweep_is_tracked_as_a_whole(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    given: Any = {"model": "*/FC1L", "grammar": "perm", "quick": True, "seeds": 1, "workers": 2, "out": tmp_path}
    icy.sweep(**given, track="tensorboard")
    assert_all_there("tensorboard", tmp_path)
    with pytest.raises(IcyError, match="'track' is for the whole sweep"):
        make_sweep(sweep_spec(**given, parts=({"track": "wandb"},)))


def test_watching_combines_the_requested_watchers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    mine = Watcher()
    assert watching(None, (), tmp_path) is None
    assert watching(mine, (), tmp_path) is mine
    alone = watching(None, "tensorboard", tmp_path)
    assert isinstance(alone, TRACKERS["tensorboard"])
    both = watching(mine, ["tensorboard", "tensorboard"], tmp_path)
    assert isinstance(both, Watchers)
    assert both.watchers[0] is mine
    assert len(both.watchers) == 2
