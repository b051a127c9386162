"""Running the command in this process, and what an error must look like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from icy.cli import main

ROOT = Path(__file__).resolve().parents[2]
TINY = ("--meanings", "2x3", "--word-length", "2", "--hidden", "8", "--seeds", "2", "--target", "0.6", "--workers", "1")
FC2L = ("probe", "--model", "sender/FC2L", *TINY)


def run(*words: str, **more: Any) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, words, prog_name="icy", **more)


def assert_one_sentence(result: Result, *parts: str, code: int = 2) -> None:
    """An error of one line on stderr, nothing on stdout, no stack trace."""
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    for part in parts:
        assert part in result.stderr
