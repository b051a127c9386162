"""`icy study report`, `power` and `simulate`: results of games, simulated results of a study, and simulated games."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from icy.cli import options
from icy.cli.exit_codes import DONE
from icy.cli.output import print_rows, save_figure
from icy.cli.session import command_of_kind
from icy.core.errors import InvalidSettingError
from icy.core.types import Fields

if TYPE_CHECKING:
    import pandas as pd

# -- report ------------------------------------------------------------------------------------------------------------

VALUES = (
    *("accuracy", "answerable", "answerable_twice", "first", "trained", "letters", "distance", "agreement"),
    *("any_right", "score", "views", "added", "minutes"),
)


@options.command("report")
def report_command(
    results: options.Paths = (),
    *,
    rows: Annotated[options.Paths, {"metavar": "FILE"}] = (),
    published: bool = False,
    value: Annotated[str, {"type": click.Choice(VALUES)}] = "accuracy",
    least_score: float = 0.0,
    attention: bool = False,
    degenerate: bool = True,
    sensitivity: bool = False,
    acquisition: Annotated[str | None, {**options.FILE, "metavar": "RESULTS"}] = None,
    distances: bool = False,
    contrasts: bool = False,
    plot: options.PlotFile = None,
    out: Annotated[str | None, options.OUT] = None,
    format_: options.ListFormat = "table",
) -> int:
    """Show people, simulated players and senders of the zoo in one table, with their intervals and contrasts.

    Args:
        rows: rows of people, a .csv or .parquet file; repeatable.
        published: also show the published people of Icy22, by their counts.
        value: measure in the table.
        least_score: leave out games with fewer points.
        attention: leave out games that fail a rule of attention.
        degenerate: whether to include games in degenerate languages.
        sensitivity: also show accuracy under every filter.
        acquisition: also compare the order of grammars with the order for senders of `icy probe`.
        distances: also show the distance of each player and sender to the people in the rows, or else of Icy22.
        contrasts: also show the contrasts with concat.
        plot: also draw the report.
        out: also write all statistics, to a .csv file.

    Examples:
      icy study report games
      icy study report games --rows people.csv --published --plot study.png
      icy study report games --published -o report.csv
      icy study report --rows people.csv --attention --no-degenerate --sensitivity
      icy study report games --rows people.csv --value agreement
      icy study report games --published --distances
      icy study report --rows people.csv --published --acquisition ratios.parquet

    RESULTS are results folders of `icy study simulate`, packs or long tables. --rows are rows of people, as `icy study
    export` writes them. Filters by score and attention apply to people and simulated players. The filter by language
    applies to all rows except the published people. --attention leaves out games with the same answer in more than 80 %
    of the items, with a median answer time below 1 s, or with letters that are in no code in more than 20 % of the
    answers.
    """
    from icy.analysis.tables.study import contrasts_table, report_table, study_report
    from icy.core.files import write_atomically
    from icy.core.text import csv_table
    from icy.study.rows import Filter

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
        from icy.study.rows import sensitivity as accuracy_by_filter

        _print_frame(accuracy_by_filter(found), format_)
    if acquisition:
        from icy.analysis.tables.study import acquisition_order
        from icy.records.load import read_long

        _print_frame(acquisition_order(report, read_long(acquisition)), format_)
    if distances:
        from icy.analysis.tables.study import people_distances

        _print_frame(people_distances(kept), format_)
    if out:
        write_atomically(Path(out), csv_table(report).to_csv(index=False).encode())
    if plot is not None:
        from icy.analysis.plots.games import draw_study

        save_figure(draw_study(report), plot)
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


@options.command("power")
def power_command(
    *,
    persons: Annotated[int | str, {"cls": options.Several, "metavar": "N[,N...]"}] = "16,40,80",
    means: Annotated[Fields, {**options.ASSIGNMENTS, "flags": ("--mean",)}],
    spread: float = 0.35,
    items: int = 3,
    baseline: str = "concat",
    alpha: float = 0.05,
    studies: int = 500,
    seed: int = 0,
    format_: options.ListFormat = "table",
) -> int:
    """Estimate by simulation how often a study of a given size would find the differences between grammars.

    Args:
        persons: persons per grammar, one or several.
        means: expected accuracy on held-out items of a grammar, as in concat=0.6; repeatable.
        spread: standard deviation of the accuracy over persons.
        items: held-out items per person.
        baseline: the grammar that others are compared with.
        alpha: level of significance, after Holm's correction.
        studies: number of studies to simulate.
        seed: seed of the simulation.

    Examples:
      icy study power --persons 16,40,80 --mean concat=0.6 --mean perm=0.2 --mean rot=0.02
      icy study power --persons 48 --mean concat=0.5 --mean perm=0.3 --spread 0.35

    Each person answers some held-out items, with an individual accuracy (beta-binomial). Every grammar is compared with
    concat by a permutation test of persons, and the p-values are corrected by Holm's method.
    """
    from icy.analysis.people import power_of_study
    from icy.core.text import several

    how = {"spread": spread, "items": items, "baseline": baseline, "alpha": alpha, "studies": studies, "seed": seed}
    found = {count: power_of_study(means, count, **how) for count in several(persons)}  # type: ignore[arg-type]
    grammars = [name for name in means if name != baseline]
    rows = [[str(count), *(f"{power[name]:.2f}" for name in (*grammars, "all"))] for count, power in found.items()]
    print_rows(["persons", *grammars, "all"], rows, format_)
    return DONE


# -- simulate ----------------------------------------------------------------------------------------------------------


@command_of_kind("study", "simulate")
def simulate_command() -> None:
    """Examples:
      icy study simulate --quick
      icy study simulate --player composer --player memoriser --player HierZero:GRU -o games
      icy study simulate --player FC2L --protocol converged --protocol yoked --dataset eng -o games
      icy study simulate --player composer --preset published --game held_out_feedback=verdict
      icy study simulate --player FC2L --protocol yoked --yoked-to games.jsonl

    One row per player, dataset, protocol and preset; one game per instance. `icy list study-players` describes
    simulated players; any sender of `icy list models` can play too. Finished games are not played again.
    """
