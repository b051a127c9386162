"""`icy sweep`: its tables, its dry run, and mistakes in its arguments and files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
import pytest

from icy.cli import main
from tests.cli.helpers import run as icy_run

run = partial(icy_run, "sweep")


# -- the command -------------------------------------------------------------------------------------------------------

WORDS = ("-m", "sender/FC1L", "-g", "perm", "--quick", "--workers", "1")


@pytest.mark.slow
def test_the_command_prints_a_table_per_protocol(tmp_path: Path) -> None:
    words = (*WORDS, "--protocol", "acquire,budget", "--representation", "soft,gumb", "-o", str(tmp_path))
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("sender/FC1L") == 4
    assert "acquire: updates to the target" in result.stdout
    assert "budget: accuracy" in result.stdout
    assert "Nothing to train" in run(*words).stderr


@pytest.mark.slow
def test_the_command_plans_and_does_nothing(tmp_path: Path) -> None:
    file = tmp_path / "zoo.toml"
    file.write_text('quick = true\n[[sweep]]\nmodel = "*/FC1L"\ngrammar = "perm"\nrepresentation = "soft,gumb"\n')
    result = run(str(file), "--seeds", "1", "--dry-run", "-o", str(tmp_path / "o"))
    assert result.exit_code == 0, result.output
    head, *lines = result.stdout.splitlines()
    assert head.split()[:3] == ["model", "representation", "parameters"]
    assert len(lines) == 4
    assert all("2 of 2" in line for line in lines)
    assert not (tmp_path / "o").exists()


def test_every_option_of_the_command_says_what_it_is() -> None:
    command = main.get_command(click.Context(main), "sweep")
    assert command is not None
    assert [p.name for p in command.params if isinstance(p, click.Option) and not p.help] == []
