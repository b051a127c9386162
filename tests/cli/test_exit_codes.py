"""Exit codes of commands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from icy.cli.exit_codes import exit_code_of


def interrupted_as_a_class_is_made() -> None:
    """As by a signal in the midst of an import: Python raises something else."""

    class Field:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    type("Made", (), {"field": Field()})


def test_an_interrupt_within_another_error_is_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        interrupted_as_a_class_is_made()
    assert exit_code_of(interrupted_as_a_class_is_made) == 130
    assert capsys.readouterr().err == "\nInterrupted.\n"


def test_other_errors_are_bugs() -> None:
    def fails() -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        exit_code_of(fails)


THROUGH_EXEC = """
import click, icy.cli
def within_a_dataclass() -> None:
    exec("raise KeyboardInterrupt")
icy.cli.LazyGroup.get_command = lambda *_: click.Command("doctor", callback=within_a_dataclass)
icy.cli.main(prog_name="icy")
"""


def test_an_interrupt_within_exec_ends_with_its_exit_code(tmp_path: Path) -> None:
    """Python would end the process by SIGINT, whatever the exit code."""
    (tmp_path / "within.py").write_text(THROUGH_EXEC)
    done = subprocess.run(
        [sys.executable, "-m", "within", "doctor"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr.strip()) == (130, "Interrupted.")


PROBE = "probe -m sender/FC2L -g perm --quick --seeds 1 --workers 1 -o out"
TABLE = "table out"


@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="shells of Windows cannot close streams")
@pytest.mark.parametrize(
    ("streams", "code"),
    [
        (">&-", 0),
        ("2>&-", 0),
        ("<&-", 0),
        ("<&- >&- 2>&-", 0),
        ("| true", 1),  # of icy, by pipefail: nobody read the table
        ("2> >(true)", 0),
        ("2>/dev/full", 0),
        (">/dev/full", 1),
    ],
)
def test_a_closed_stream_costs_no_result(tmp_path: Path, streams: str, code: int) -> None:
    """Whatever icy cannot print, it trains and files everything, and ends without a traceback."""
    icy = f"{shlex.quote(sys.executable)} -m icy"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(words: str, streams: str) -> subprocess.CompletedProcess[str]:
        line = f"set -o pipefail; {icy} {words} {streams}"
        return subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True)

    for words in (PROBE, TABLE):
        done = run(words, streams)
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
        assert done.returncode == code
    assert len(list((tmp_path / "out" / "records").iterdir())) == 2
    assert (tmp_path / "out" / "results.csv").read_text().count("\n") == 3
