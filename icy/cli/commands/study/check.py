"""`icy study check`: the audit of a study."""

from __future__ import annotations

import click

from icy.cli.exit_codes import DONE, FAILED
from icy.cli.groups import command
from icy.cli.output import format_option, print_rows
from icy.core.text import counted

from .opened import opened, study_argument

EPILOG = """\b
Examples:
  icy study check pilot

\b
The exit code is 1 if the saved data has any error.
"""


@command("check", epilog=EPILOG)
@study_argument
@format_option
def check_command(study: str, format_: str) -> int:
    """Recompute every answer, point and score, and play every game again from its log."""
    from icy.study.service.audit import audit

    found = audit(opened(study))
    if found.faults:
        print_rows(["person", "fault"], [[one.person or "-", one.what] for one in found.faults], format_)
        return FAILED
    games, trials = counted(found.games, "game"), counted(found.trials, "item")
    click.echo(f"{games} and {trials}: no errors.")
    return DONE
