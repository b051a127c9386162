"""`icy study report`: people, simulated players and senders in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from icy.cli.exit_codes import DONE
from icy.cli.output import format_option

if TYPE_CHECKING:
    import pandas as pd

EPILOG = """\b
Examples:
  icy study report games
  icy study report games --rows people.csv --published --plot study.png
  icy study report games --published --save report.csv

\b
RESULTS are results folders of `icy study simulate`, packs or long tables. --rows are rows of people, as the export of a
study writes them.
"""


@click.command("report", epilog=EPILOG)
@click.argument("results", nargs=-1, type=click.Path())
@click.option("--rows", multiple=True, type=click.Path(), metavar="FILE",
              help="Rows of people, a .csv or .parquet file; repeatable.")  # fmt: skip
@click.option("--published", is_flag=True, help="Also show the published people of Icy22, by their counts.")
@click.option("--contrasts", is_flag=True, help="Also show the contrasts with concat.")
@click.option("--plot", type=click.Path(), metavar="FILE", help="Also draw the report.")
@click.option("--save", type=click.Path(), metavar="FILE", help="Also write all statistics, to a .csv file.")
@format_option
def report_command(
    results: tuple[str, ...],
    rows: tuple[str, ...],
    published: bool,
    contrasts: bool,
    plot: str | None,
    save: str | None,
    format_: str,
) -> int:
    """Show people, simulated players and senders of the zoo in one table, with their intervals and contrasts."""
    from icy.analysis.tables.study import contrasts_table, report_table, study_report
    from icy.core.escapes import csv_table
    from icy.core.files import write_atomically

    report = study_report(all_rows(results, rows, published))
    click.echo(report_table(report).render("text" if format_ == "table" else format_))
    if contrasts:
        click.echo("\n" + contrasts_table(report).to_string(index=False))
    if save:
        write_atomically(Path(save), csv_table(report).to_csv(index=False).encode())
    if plot:
        from icy.analysis.plots.study import draw_study

        draw_study(report).savefig(plot, dpi=200)
    return DONE


def all_rows(results: tuple[str, ...], rows: tuple[str, ...], published: bool) -> pd.DataFrame:
    """Return rows of simulated games, of people, and of what is published, in one long form.

    Raises:
        IcyError: there are none, or they cannot be read.
    """
    import pandas as pd

    from icy.analysis.literature.people import published_people
    from icy.core.errors import InvalidSettingError
    from icy.records.load import read_long
    from icy.study.rows import read_rows, rows_of_long

    parts = [published_people()] if published else []
    parts += [read_rows(path) for path in rows]
    parts += [rows_of_long(read_long(path)) for path in results]
    parts = [part for part in parts if len(part)]
    if not parts:
        raise InvalidSettingError(
            "There is nothing to report: name results of `icy study simulate`, or --rows of people."
        )
    return pd.concat([part.astype(object) for part in parts], ignore_index=True)
