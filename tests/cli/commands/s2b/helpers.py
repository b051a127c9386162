"""Running `icy s2b` in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from icy.cli import main

QUICK = ("--episodes", "4", "--seeds", "2")


def run(*words: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(main, ["s2b", *words], input=typed)
