"""`icy study report` and `power`: results of games, and simulated results of a study of a given size."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.options import Assignment, Several, assigned, file_option, plot_option
from icy.cli.output import checked_plot, format_option, print_rows, save_figure
from icy.core.errors import InvalidSettingError

if TYPE_CHECKING:
    import pandas as pd

# -- report ------------------------------------------------------------------------------------------------------------

REPORT_EPILOG = """\b
Examples:
  icy study report games
  icy study report games --rows people.csv --published --plot study.png
  icy study report games --published -o report.csv
  icy study report --rows people.csv --attention --no-degenerate --sensitivity
  icy study report games --rows people.csv --value agreement
  icy study report --rows people.csv --published --acquisition ratios.parquet

\b
RESULTS are results folders of `icy study simulate`, packs or long tables. --rows are rows of people, as `icy study
export` writes them. Filters by score and attention apply to people and simulated players. The filter by language
applies to all rows except the published people. --attention leaves out games with the same answer in more than 80 % of
the items, with a median answer time below 1 s, or with letters that are in no code in more than 20 % of the answers.
"""
VALUES = (
    *("accuracy", "answerable", "answerable_twice", "first", "trained", "letters", "distance", "agreement"),
    *("any_right", "score", "views", "added", "minutes"),
)


@command("report", epilog=REPORT_EPILOG)
@click.argument("results", nargs=-1, type=click.Path())
@click.option("--rows", multiple=True, type=click.Path(), metavar="FILE",
              help="Rows of people, a .csv or .parquet file; repeatable.")  # fmt: skip
@click.option("--published", is_flag=True, help="Also show the published people of Icy22, by their counts.")
@click.option("--value", default="accuracy", show_default=True, type=click.Choice(VALUES),
              help="Measure in the table.")  # fmt: skip
@click.option("--least-score", type=float, default=0.0, show_default=True, help="Leave out games with fewer points.")
@click.option("--attention", is_flag=True, help="Leave out games that fail a rule of attention.")
@click.option("--degenerate/--no-degenerate", default=True, show_default=True,
              help="Whether to include games in degenerate languages.")  # fmt: skip
@click.option("--sensitivity", is_flag=True, help="Also show accuracy under every filter.")
@click.option("--acquisition", type=click.Path(), metavar="RESULTS",
              help="Also compare the order of grammars with the order for senders of `icy probe`.")  # fmt: skip
@click.option("--contrasts", is_flag=True, help="Also show the contrasts with concat.")
@plot_option("Also draw the report.")
@file_option("Also write all statistics, to a .csv file.")
@format_option
def report_command(
    results: tuple[str, ...],
    rows: tuple[str, ...],
    published: bool,
    value: str,
    least_score: float,
    attention: bool,
    degenerate: bool,
    sensitivity: bool,
    acquisition: str | None,
    contrasts: bool,
    plot: str | None,
    out: str | None,
    format_: str,
) -> int:
    """Show people, simulated players and senders of the zoo in one table, with their intervals and contrasts."""
    from icy.analysis.tables.study import contrasts_table, report_table, study_report
    from icy.core.escapes import csv_table
    from icy.core.files import write_atomically
    from icy.study.filters import Filter

    figure = None if plot is None else checked_plot(plot)
    found = all_rows(results, rows, published)
    kept = Filter(least_score, attention, degenerate).select(found)
    if not len(kept):
        raise InvalidSettingError("No game passes the filters.")
    report = study_report(kept)
    if value not in report or report[value].isna().all():
        raise InvalidSettingError(f"No game of the report has a value of {value}.")
    click.echo(report_table(report, value).render("text" if format_ == "table" else format_))
    if contrasts:
        click.echo("\n" + contrasts_table(report).to_string(index=False))
    if sensitivity:
        from icy.study.filters import sensitivity as accuracy_by_filter

        _print_frame(accuracy_by_filter(found), format_)
    if acquisition:
        from icy.analysis.tables.study import acquisition_order
        from icy.records.load import read_long

        _print_frame(acquisition_order(report, read_long(acquisition)), format_)
    if out:
        write_atomically(Path(out), csv_table(report).to_csv(index=False).encode())
    if figure is not None:
        from icy.analysis.plots.games import draw_study

        save_figure(draw_study(report), figure, quiet=False)
    return DONE


def _print_frame(found: pd.DataFrame, format_: str) -> None:
    """Print a further table, with two decimals for fractions."""

    def shown(value: object) -> str:
        if isinstance(value, float):
            return "-" if math.isnan(value) else f"{value:.2f}"
        return str(value)

    click.echo()
    print_rows(
        list(map(str, found.columns)), [[shown(cell) for cell in row] for row in found.itertuples(index=False)], format_
    )


def all_rows(results: tuple[str, ...], rows: tuple[str, ...], published: bool) -> pd.DataFrame:
    """Return rows of simulated games, people and published people, in one long form.

    Raises:
        IcyError: there are no rows, or they cannot be read.
    """
    import pandas as pd

    from icy.analysis.people import published_people
    from icy.records.load import read_long
    from icy.study.rows import read_rows, rows_of_long

    parts = [published_people()] if published else []
    parts += [read_rows(path) for path in rows]
    parts += [rows_of_long(read_long(path)) for path in results]
    parts = [part for part in parts if len(part)]
    if not parts:
        raise InvalidSettingError(
            "There is nothing to report: give results of `icy study simulate`, or a file of people's games (--rows)."
        )
    return pd.concat([part.astype(object) for part in parts], ignore_index=True)


# -- power -------------------------------------------------------------------------------------------------------------

POWER_EPILOG = """\b
Examples:
  icy study power --persons 16,40,80 --mean concat=0.6 --mean perm=0.2 --mean rot=0.02
  icy study power --persons 48 --mean concat=0.5 --mean perm=0.3 --spread 0.35

\b
Each person answers some held-out items, with an individual accuracy (beta-binomial). Every grammar is compared with
concat by a permutation test of persons, and the p-values are corrected by Holm's method.
"""


@command("power", epilog=POWER_EPILOG)
@click.option(
    "--persons",
    cls=Several,
    metavar="N[,N...]",
    default="16,40,80",
    show_default=True,
    help="Persons per grammar, one or several.",
)
@click.option("--mean", "means", multiple=True, type=Assignment(), required=True,
              help="Expected accuracy on held-out items of a grammar, as in concat=0.6; repeatable.")  # fmt: skip
@click.option("--spread", default=0.35, show_default=True, help="Standard deviation of the accuracy over persons.")
@click.option("--items", default=3, show_default=True, help="Held-out items per person.")
@click.option("--baseline", default="concat", show_default=True, help="The grammar that others are compared with.")
@click.option("--alpha", default=0.05, show_default=True, help="Level of significance, after Holm's correction.")
@click.option("--studies", default=500, show_default=True, help="Number of studies to simulate.")
@click.option("--seed", default=0, show_default=True, help="Seed of the simulation.")
@format_option
def power_command(
    persons: int | str,
    means: tuple[tuple[str, float], ...],
    spread: float,
    items: int,
    baseline: str,
    alpha: float,
    studies: int,
    seed: int,
    format_: str,
) -> int:
    """Estimate by simulation how often a study of a given size would find the differences between grammars."""
    from icy.analysis.people import power_of_study
    from icy.core.text import several

    how = {"spread": spread, "items": items, "baseline": baseline, "alpha": alpha, "studies": studies, "seed": seed}
    found = {count: power_of_study(assigned("--mean", means), count, **how) for count in several(persons)}  # type: ignore[arg-type]
    grammars = [name for name, _ in means if name != baseline]
    rows = [[str(count), *(f"{power[name]:.2f}" for name in (*grammars, "all"))] for count, power in found.items()]
    print_rows(["persons", *grammars, "all"], rows, format_)
    return DONE
