"""`icy table`: results as a table, for the screen or for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icy.errors import InvalidSettingError

from .errors import DONE
from .options import selection
from .printing import note, print_table
from .specs import FORMATS, SPREADS

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis.tables import BiasTable

EPILOG = """\b
Examples:
  icy table icy-results
  icy table bias --by side,representation --sort=-shufdet
  icy table bias --compare published --spread sem
  icy table bias --compare perkins21/table13 --format latex --save table.tex
  icy table wide --diff narrow
  icy table icy-results -m 'sender/RNN*' -g rot --where protocol=budget --format markdown

\b
RESULTS are results folders, files of ProbeResult.save, long tables (results.csv, results.parquet), or atlas; without
any, icy-results. The arrows and the marks of the best and the worst read the numbers as a bias to composition: shuf and
shufdet should be easy to learn, and proj, pairsum, rot and hol hard. In LaTeX the table needs booktabs and graphicx.
"""
SUFFIXES = {".txt": "text", ".md": "markdown", ".tex": "latex", ".csv": "csv", ".html": "html"}


@click.command("table", epilog=EPILOG)
@click.argument("results", nargs=-1, type=click.Path())
@click.option("--by", default="representation", show_default=True, metavar="NAMES",
              help="What heads groups of rows, where it varies: columns of the long table, or side.")  # fmt: skip
@click.option("--sort", default="given", show_default=True, metavar="[-]ORDER",
              help="given, model, parameters, or a grammar; from the largest with - before it.")  # fmt: skip
@click.option("--compare", metavar="WITH",
              help="What stands beside each cell, and how far it is in combined standard errors: published; one table, "
              "as in perkins21/table13; or other results.")  # fmt: skip
@click.option("--diff", metavar="RUN", help="Print how far the results lie above those of RUN, seed by seed.")
@selection
@click.option("--spread", type=click.Choice(SPREADS), default="sd", show_default=True, help="Of the seeds.")
@click.option("--decimals", type=click.IntRange(0, 6), default=2, show_default=True)
@click.option("--no-marks", is_flag=True, help="No arrows, no marks of the best and the worst.")
@click.option("--format", "format_", type=click.Choice([*FORMATS, "html"]), default="table", show_default=True)
@click.option("--save", type=click.Path(), metavar="FILE", help="Write it there; the suffix says the format.")
def table_command(
    results: tuple[str, ...],
    diff: str | None,
    compare: str | None,
    spread: str,
    by: str,
    sort: str,
    decimals: int,
    no_marks: bool,
    format_: str,
    save: str | None,
    model: tuple[str, ...],
    grammar: tuple[str, ...],
    where: tuple[tuple[str, Any], ...],
) -> int:
    """Print results as a bias table: a row per model, a column per grammar."""
    from icy.reading import long_of, read_results, select

    path = None if save is None else checked_file(save)
    if diff and compare:
        raise InvalidSettingError(
            "--compare shows two numbers side by side, --diff subtracts them; give one of the two."
        )
    long = long_of(select(read_results(results or ["icy-results"]), model, grammar, dict(where)))
    look = {"by": by, "sort": sort, "decimals": decimals}
    tables = list(_tables(long, spread, diff, compare, {**look, "mark": not no_marks}))
    if path is not None:
        path.write_text("\n\n".join(table.render(SUFFIXES[path.suffix.lower()]) for table in tables) + "\n")
        note(f"Written: {path}.")
        return DONE
    for place, table in enumerate(tables):
        if place and format_ != "json":
            click.echo()
        print_table(table, format_)
    return DONE


def checked_file(given: str) -> Path:
    """The file to write a table to, whose suffix is that of a format."""
    path = Path(given)
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidSettingError(f"A table is written as {', '.join(SUFFIXES)}; not as '{path.name}'.")
    if not path.absolute().parent.is_dir():
        raise InvalidSettingError(f"The folder {path.absolute().parent} does not exist.")
    return path


def _tables(
    long: pd.DataFrame, spread: str, diff: str | None, compare: str | None, look: dict[str, Any]
) -> list[BiasTable]:
    """A table per protocol of senders and receivers, and one of pairs, as far as there are any."""
    from icy.analysis.endtoend import end_to_end_table
    from icy.analysis.tables import bias_table, difference_table
    from icy.reading import read_long

    pairs = long["side"] == "pair"
    tables = []
    other, name = _other(compare)
    for _, alone in long[~pairs].groupby("protocol", sort=False):  # each measures something else
        if diff is not None:
            options = {name: value for name, value in look.items() if name != "mark"}
            tables.append(difference_table(alone, read_long(diff), Path(diff).name, spread, **options))
        else:
            tables.append(bias_table(alone, spread, compare=other, compared=name, **look))
    if pairs.any():
        if diff is not None or compare not in (None, "published"):
            raise InvalidSettingError("Pairs are compared with what was published, --compare published, and no other.")
        tables.append(end_to_end_table(long[pairs].reset_index(drop=True), spread, compare=compare))
    return tables


def _other(compare: str | None) -> tuple[Any, str]:
    """What to compare with, and its name: results where there are any of that name, else what was published."""
    from icy.reading import read_long

    if compare is not None and Path(compare).exists():
        return read_long(compare), Path(compare).name
    return compare, ""
