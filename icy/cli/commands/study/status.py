"""`icy study status`: the progress of a study."""

from __future__ import annotations

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.output import format_option, note, print_rows
from icy.core.text import counted

from .opened import opened, pilot_option, study_argument

EPILOG = """\b
Examples:
  icy study status pilot
  icy study status spy-codes --format csv
"""
HEADINGS = ("condition", "wanted", "finished", "playing", "given up", "mean score", "median minutes")


@command("status", epilog=EPILOG)
@study_argument
@pilot_option
@format_option
def status_command(study: str, pilot: bool | None, format_: str) -> int:
    """Show how many people have finished, by condition."""
    from icy.study.service.clock import readable
    from icy.study.service.progress import progress

    found = progress(opened(study), pilot)
    rows = [
        [
            *(cell.name, str(cell.quota or "any"), str(cell.finished), str(cell.active), str(cell.dropped)),
            "-" if cell.score is None else f"{cell.score:.0f}",
            "-" if cell.minutes is None else f"{cell.minutes:.1f}",
        ]
        for cell in found.cells
    ]
    print_rows(HEADINGS, rows, format_)
    note(
        f"{counted(found.consented, 'person', 'have')} agreed to take part, {found.finished} finished, "
        f"{found.screened} failed the questions, {found.withdrawn} withdrew; "
        f"last action: {readable(found.last) if found.last else 'none'}."
    )
    for warning in found.link.warnings:
        note(f"Warning: {warning}")
    return DONE
