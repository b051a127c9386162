"""`icy study export`: the data of a study with their codebook."""

from __future__ import annotations

from pathlib import Path

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.output import note

from .opened import opened, pilot_option, study_argument

EPILOG = """\b
Examples:
  icy study export pilot -o pilot-data
  icy study export spy-codes -o spy-codes.zip --format parquet
  icy study export spy-codes --backup copy.sqlite

\b
Writes games, trials, events, answers to surveys, remarks, and rows for `icy study report --rows`; a codebook; the
settings with the text that people agreed to; and the log of every finished game, for `icy study simulate --yoked-to`.
Ids of people and completion codes are left out unless --with-ids asks for them.
"""


@command("export", epilog=EPILOG)
@study_argument
@click.option("--out", "-o", type=click.Path(), metavar="FOLDER|FILE.zip", help="Path to write; by default STUDY-data.")
@click.option("--format", "format_", default="csv", show_default=True, type=click.Choice(("csv", "parquet", "json")),
              help="Format of the tables.")  # fmt: skip
@pilot_option
@click.option("--with-ids", is_flag=True, help="Also write ids of people and completion codes, for payment only.")
@click.option("--backup", type=click.Path(), metavar="FILE",
              help="Write a copy of the whole database instead; this also works while the study runs.")  # fmt: skip
def export_command(
    study: str, out: str | None, format_: str, pilot: bool | None, with_ids: bool, backup: str | None
) -> int:
    """Write the data of a study, in long form, with a codebook."""
    from icy.study.service.export import export

    found = opened(study)
    if backup:
        found.database.backup(Path(backup))
        note(f"Written: {backup}, with all studies of {found.plan.database_path.name}. It holds ids of people.")
        return DONE
    target = Path(out or f"{found.name}-data")
    names = export(found, target, format_, pilot, with_ids)
    note(f"Written: {target}, with {', '.join(names)}.")
    return DONE
