"""`icy compare`: show the differences between two results, seed by seed."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icy.cli.exit_codes import DONE, FAILED
from icy.cli.groups import command
from icy.cli.options import Assignment, Selection, file_option, plot_option, selection
from icy.cli.output import checked_file, checked_plot, format_option, note, print_data, print_rows, save_figure
from icy.core.errors import InvalidSettingError
from icy.core.files import write_atomically
from icy.records.versions import at_revision, revision_of

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis import ResultsComparison
    from icy.records.load import Results

EPILOG = """\b
Examples:
  icy compare before after
  icy compare before after --plot differences.png -o differences.md
  icy compare icy-results:representation=soft icy-results:representation=gumb
  icy compare icy-results:model=sender/RNNZero:GRU icy-results:model=sender/HierZero:GRU
  icy compare results/games/records.parquet@HEAD~1 results/games/records.parquet --exit-code

\b
A and B are results folders, files written by ProbeResult.save, packs, long tables (results.csv, results.parquet), or
atlas. PLACE:COLUMN=VALUE,... selects rows of the long table with these values. Runs are then paired even if they
differ in these columns, but always by grammar and seed.
PLACE@REVISION reads a file or folder from a commit of git. An effect above 1 (of ratios, compared on the log
scale) or above 0 means a larger value in B. A pair that was cut at the cap on both sides gives no information.
"""
CHOICE = re.compile(r":(?=[A-Za-z_-]+=)")


@dataclass(frozen=True)
class Place:
    """Results folder or file, and the selection of its results."""

    text: str
    path: str
    revision: str | None
    where: dict[str, Any]

    @classmethod
    def read(cls, text: str) -> Place:
        """Read `PATH[@REVISION][:COLUMN=VALUE,...]`; an existing path is not split."""
        parts = [text] if Path(text).exists() else CHOICE.split(text, maxsplit=1)
        chosen = re.split(r",(?=[A-Za-z_-]+=)", parts[1]) if len(parts) > 1 else []
        where = dict(Assignment(plain=True).convert(one, None, None) for one in chosen)
        return cls(text, *revision_of(parts[0]), where)

    def results(self, measure: str | None) -> Results:
        """Read all results of the place."""
        from icy.experiments.results import read_results

        if self.revision is None:
            return read_results([self.path], measure)
        with at_revision(self.path, self.revision) as path:
            return read_results([path], measure)


@command("compare", epilog=EPILOG)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@selection
@click.option("--seeds", is_flag=True, help="Print one row per pair of runs, instead of one per cell.")
@plot_option("Draw the effects with their intervals: .png, .svg or .pdf.")
@file_option("Write the differences to FILE, in Markdown (.md).")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if any value differs, or a run has no counterpart.")
@format_option
def compare_command(
    a: str,
    b: str,
    selected: Selection,
    seeds: bool,
    plot: str | None,
    out: str | None,
    exit_code: bool,
    format_: str,
) -> int:
    """Show the differences between the results A and B, seed by seed: ratios or differences, intervals and tests."""
    drawn = None if plot is None else checked_plot(plot)
    saved = None if out is None else checked_file(out, [".md"], "Differences are")
    found = _compared(Place.read(a), Place.read(b), selected)
    if saved is not None:
        write_atomically(saved, (found.markdown() + "\n").encode())
        note(f"Written: {saved}.")
    if drawn is not None:
        from icy.analysis.plots.error_bars import differences

        save_figure(differences(found), drawn, quiet=False)
    _print(found, seeds, format_)
    differs = any(found.lone) or found.identical < len(found.runs)
    return FAILED if exit_code and differs else DONE


def _compared(first: Place, second: Place, selected: Selection) -> ResultsComparison:
    from icy.analysis import compare
    from icy.records.load import long_of, select
    from icy.records.long_table import column_of

    tables = [long_of(place.results(selected.measure)) for place in (first, second)]
    first, second = (
        replace(place, where={column_of(name, long): value for name, value in place.where.items()})
        for place, long in zip((first, second), tables, strict=True)
    )
    differing = {name for name in (*first.where, *second.where) if first.where.get(name) != second.where.get(name)}

    def chosen(place: Place, long: pd.DataFrame) -> pd.DataFrame:
        own = dict(place.where)
        models, grammars = (
            [str(own.pop(name))] if name in own else list(others)
            for name, others in (("model", selected.model), ("grammar", selected.grammar))
        )
        return long_of(select(long, models, grammars, {**selected.where, **own}))

    one, other = (chosen(place, long) for place, long in zip((first, second), tables, strict=True))
    return compare(one, other, _names(first, second, differing), sorted(differing))


def _names(first: Place, second: Place, differing: Collection[str]) -> tuple[str, str]:
    """Return short names that distinguish two places.

    Raises:
        InvalidSettingError: both places have the same results.
    """
    if first.text == second.text:
        raise InvalidSettingError("A and B are the same results; give two different results.")
    if differing and (first.path, first.revision) == (second.path, second.revision):
        return _chosen(first, differing), _chosen(second, differing)
    if first.path == second.path:
        return first.revision or "now", second.revision or "now"
    stems = [Path(place.path).name for place in (first, second)]
    return (stems[0], stems[1]) if stems[0] != stems[1] and all(stems) else (first.text, second.text)


def _chosen(place: Place, differing: Collection[str]) -> str:
    return ", ".join(str(value) for name, value in place.where.items() if name in differing) or "all"


def _print(found: ResultsComparison, seeds: bool, format_: str) -> None:
    data = found.runs.drop(columns="cell") if seeds else found.cells
    if print_data(data, format_):
        return
    if format_ == "markdown" and not seeds:
        click.echo(found.markdown())
        return
    for line in found.said():
        click.echo(line)
    click.echo()
    if seeds:
        print_rows(
            [str(name) for name in data], data.astype(object).where(data.notna(), "-").to_numpy().tolist(), format_
        )
    else:
        print_rows(*found.rows(), format_)
