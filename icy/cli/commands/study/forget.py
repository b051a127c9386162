"""`icy study forget`: erase a person's ids, and optionally their data."""

from __future__ import annotations

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.output import note

from .opened import opened, study_argument

EPILOG = """\b
Examples:
  icy study forget spy-codes 5F0C11
  icy study forget spy-codes 60a1c9d5e8 --data

\b
PERSON is the opaque name, its first letters, or the id of the platform. You have to change copies that you made
(exports, backups) yourself.
"""


@command("forget", epilog=EPILOG)
@study_argument
@click.argument("person")
@click.option("--data", is_flag=True, help="Also delete the game, answers and remarks.")
def forget_command(study: str, person: str, data: bool) -> int:
    """Erase the ids of a person; --data erases all recorded data too."""
    from icy.study.service.persons import forget

    name = forget(opened(study), person, data)
    note(f"Erased the ids {'and the data ' if data else ''}of {name}.")
    return DONE
