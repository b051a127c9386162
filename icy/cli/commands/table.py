"""`icy table`: print results as a table, for the screen or for a paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.options import FORMATS, SPREADS, Selection, Several, file_option, selection
from icy.cli.output import checked_file, for_paper, note, paper_options, print_table
from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, StoreError
from icy.core.files import write_atomically
from icy.experiments.report import by_protocol
from icy.experiments.results import table_of
from icy.records.kinds import kind_of_rows

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis.tables.printed_table import BiasTable


EPILOG = """\b
Examples:
  icy table icy-results
  icy table bias --by role,representation --sort=-shufdet
  icy table bias --compare published --spread sem
  icy table bias --compare perkins21/table13 --format latex -o table.tex
  icy table bias -m HierZero:GRU -m FC2L --where protocol=acquire --caption 'Ratios.' --label tab:bias -o bias.tex
  icy table tuned --diff plain
  icy table bias --diff HierZero:GRU
  icy table icy-results -m 'sender/RNN*' -g rot --where protocol=budget --format markdown

\b
RESULTS are results folders, files written by ProbeResult.save, long tables (results.csv, results.parquet), or atlas;
the default is icy-results. The arrows and the marks of the best and the worst assume that a bias towards composition is
good: shuf and shufdet should be easy to learn, and proj, pairsum, rot and hol hard. They need at least three rows.
Rows are in the order of --model, if given. In LaTeX the table needs booktabs and graphicx.
"""


@command("table", epilog=EPILOG)
@click.argument("results", nargs=-1, type=click.Path())
@click.option("--by", cls=Several, default="representation", show_default=True, metavar="NAMES",
              help="Group rows by these columns of the long table, such as role, if they vary.")  # fmt: skip
@click.option("--sort", default="given", show_default=True, metavar="[-]ORDER",
              help="Order of rows: given, model, parameters, or a grammar; with a leading -, descending.")  # fmt: skip
@click.option("--compare", metavar="WITH",
              help="Show reference values next to the cells, and the distance in combined standard errors: published, "
              "one table as in perkins21/table13, or other results.")  # fmt: skip
@click.option("--diff", metavar="RUN|MODEL|each",
              help="Print differences seed by seed, with tests corrected by Holm's method: from the results of RUN, "
              "from one of these models, or for every pair of models.")  # fmt: skip
@selection
@click.option("--spread", type=click.Choice(SPREADS), default="sd", show_default=True, help="Spread over seeds.")
@click.option("--decimals", type=click.IntRange(0, 6), default=2, show_default=True, help="Decimal places.")
@click.option("--no-log", is_flag=True, help="Leave out the lines below ratios: log scale and updates.")
@click.option("--no-marks", is_flag=True, help="Leave out arrows and the marks of the best and the worst.")
@paper_options
@click.option("--format", "format_", type=click.Choice([*FORMATS, "html"]), default="table", show_default=True,
              help="Output format.")  # fmt: skip
@file_option("Write the table to FILE, in the format of its suffix.")
def table_command(
    results: tuple[str, ...],
    diff: str | None,
    compare: str | None,
    spread: str,
    by: str,
    sort: str,
    decimals: int,
    no_log: bool,
    no_marks: bool,
    format_: str,
    out: str | None,
    selected: Selection,
) -> int:
    """Print results as a bias table: one row per model, one column per grammar."""
    from icy.analysis.tables.printed_table import SUFFIXES, format_of
    from icy.records.load import long_of

    path = None if out is None else checked_file(out, SUFFIXES, "A table is")
    if diff and compare:
        raise InvalidSettingError(
            "--compare shows two numbers side by side, and --diff subtracts them; give only one of these options."
        )
    long = long_of(selected.read(results))
    look = {"by": by, "sort": sort, "decimals": decimals}
    if diff is not None:
        tables = _differences(long, diff, spread, look)
    else:
        tables = _tables(long, spread, compare, {**look, "mark": not no_marks, "log": not no_log})
    tables = dict(zip(tables, for_paper(*tables.values()), strict=True))
    if path is None:
        _print(tables, format_)
    else:
        write_atomically(path, (_rendered(tables, format_of(path)) + "\n").encode())
        note(f"Written: {path}.")
    return DONE


def _print(tables: dict[str, BiasTable], format_: str) -> None:
    """Print several tables, one below the other; json and csv as one table."""
    if format_ in ("json", "csv"):
        click.echo(_rendered(tables, format_))
        return
    for place, table in enumerate(tables.values()):
        if place:
            click.echo()
        print_table(table, format_)


def _rendered(tables: dict[str, BiasTable], format_: str) -> str:
    """Render several tables as one text; json and csv are one list or table with a column `protocol`."""
    if format_ == "json":
        records = [{"protocol": name, **record} for name, table in tables.items() for record in table.to_records()]
        return json.dumps(records, indent=1)
    if format_ != "csv" or len(tables) == 1:
        return "\n\n".join(table.render(format_) for table in tables.values())
    import pandas as pd

    from icy.analysis.tables.printed_table import flat

    parts = [flat(table).assign(protocol=name) for name, table in tables.items()]
    return str(pd.concat(parts).to_csv(index=False)).rstrip("\n")


def _tables(long: pd.DataFrame, spread: str, compare: str | None, look: dict[str, Any]) -> dict[str, BiasTable]:
    """Return one table per protocol, because protocols measure different things."""
    from icy.analysis.tables.bias import bias_table
    from icy.analysis.tables.references import compared_with

    other, name = compared_with(compare)
    found: dict[str, BiasTable] = {}
    groups = by_protocol(long)
    for protocol, part in groups:
        kind = kind_of_rows(part)
        about = _about(other, kind.name) if isinstance(other, str) else other
        if kind.table is not None:
            if (look["by"], look["sort"]) != ("representation", "given"):
                raise InvalidSettingError(
                    f"Rows of {kind.noun} cannot be grouped or sorted; leave out --by and --sort."
                )
            if not isinstance(about, str | None) and len(groups) > 1:  # other games can be compared
                note(f"Games of {kind.noun} can only be compared with published results.")
                about = None
            found[protocol] = table_of(kind, part, spread, compare=about)
        else:
            found[protocol] = bias_table(part, spread, compare=about, compared=name, **look)
    return found


def _differences(long: pd.DataFrame, diff: str, spread: str, look: dict[str, Any]) -> dict[str, BiasTable]:
    """Return a table of differences per protocol, except for protocols without results to compare."""
    from icy.analysis.tables.bias import difference_table

    found: dict[str, BiasTable] = {}
    alone: list[tuple[str, IcyError]] = []
    for protocol, part in by_protocol(long):
        if (kind := kind_of_rows(part)).table is not None:
            raise InvalidSettingError(
                f"Games of {kind.noun} cannot be subtracted; select models that trained alone, with --model."
            )
        try:
            found[protocol] = difference_table(part, diff, Path(diff).stem, spread, **look)
        except (IncompatibleError, StoreError) as error:  # the protocol may have no results of this model
            alone.append((protocol, error))
    for protocol, reason in alone:
        if not found:
            raise reason
        note(f"The protocol {protocol} has no results to compare with {diff}.")
    return found


def _about(compare: str | None, kind: str) -> str | None:
    """Return the published table to compare with; None if the table is about another kind of run."""
    if compare in (None, "published"):
        return compare
    from icy.analysis.literature.catalogue import find_table

    assert compare is not None
    found = find_table(compare)
    if found.reproduce == kind:
        return compare
    note(f"{found.id} has no values to compare with these results: {found.title}.")
    return None
