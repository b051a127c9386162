"""Exit codes of commands."""

from __future__ import annotations

import os
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
