"""`icy table` and `icy compare`: results as a table, for the screen or for a paper, and the differences of two."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from icy.analysis.tables.printed_table import SUFFIXES, format_of
from icy.cli import options
from icy.cli.exit_codes import DONE, FAILED
from icy.cli.output import note, print_data, print_rows, print_tables, save_figure, write_text
from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, StoreError
from icy.experiments.report import by_protocol
from icy.experiments.results import table_of
from icy.records.kinds import kind_of_rows

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis import ResultsComparison
    from icy.analysis.tables.printed_table import BiasTable


# -- table -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PageOutput(options.TableOutput):
    """How the table is printed.

    Attributes:
        out: write the table to FILE, in the format of its suffix.
    """

    format_: Annotated[options.Format, {"type": click.Choice([*options.FORMATS, "html"])}] = "table"
    out: Annotated[Path | None, options.written("A table is", SUFFIXES)] = None


@options.command("table")
def table_command(
    results: options.Paths = (),
    *,
    by: Annotated[str, {"cls": options.Several, "metavar": "NAMES"}] = "representation",
    sort: Annotated[str, {"metavar": "[-]ORDER"}] = "given",
    compare: Annotated[str | None, {"metavar": "WITH"}] = None,
    diff: Annotated[str | None, {"metavar": "RUN|MODEL|each"}] = None,
    selected: options.Selection,
    decimals: Annotated[int, {"type": click.IntRange(0, 6)}] = 2,
    no_log: bool = False,
    no_marks: bool = False,
    output: PageOutput,
) -> int:
    """Print results as a bias table: one row per model, one column per grammar.

    Args:
        by: group rows by these columns of the long table, such as role, if they vary.
        sort: order of rows: given, model, parameters, or a grammar; with a leading -, descending.
        compare: show reference values next to the cells, and the distance in combined standard errors: published, one
            table as in perkins21/table13, or other results.
        diff: print differences seed by seed, with tests corrected by Holm's method: from the results of RUN, from one
            of these models, or for every pair of models.
        decimals: decimal places.
        no_log: leave out the lines below ratios: log scale and updates.
        no_marks: leave out arrows and the marks of the best and the worst.

    Examples:
      icy table icy-results
      icy table bias --by role,representation --sort=-shufdet
      icy table bias --compare published --spread sem
      icy table bias --compare perkins21/table13 --format latex -o table.tex
      icy table bias -m HierZero:GRU -m FC2L --where protocol=acquire --caption 'Ratios.' --label tab:bias -o bias.tex
      icy table tuned --diff plain
      icy table bias --diff HierZero:GRU
      icy table icy-results -m 'sender/RNN*' -g rot --where protocol=budget --format markdown

    RESULTS are results folders, files written by ProbeResult.save, long tables (results.csv, results.parquet), or
    atlas; the default is icy-results. The arrows and the marks of the best and the worst assume that a bias towards
    composition is good: shuf and shufdet should be easy to learn, and proj, pairsum, rot and hol hard. They need at
    least three rows. Rows are in the order of --model, if given. In LaTeX the table needs booktabs and graphicx.
    """
    from icy.records.load import long_of

    if diff and compare:
        raise InvalidSettingError(
            "--compare shows two numbers side by side, and --diff subtracts them; give only one of these options."
        )
    long = long_of(selected.read(results))
    look = {"by": by, "sort": sort, "decimals": decimals}
    if diff is not None:
        tables = _differences(long, diff, output.spread, look)
    else:
        tables = _tables(long, output.spread, compare, {**look, "mark": not no_marks, "log": not no_log})
    tables = dict(zip(tables, output.for_paper(*tables.values()), strict=True))
    if output.out is not None:
        write_text(_rendered(tables, format_of(output.out)) + "\n", output.out)
    elif output.format_ in ("json", "csv"):
        click.echo(_rendered(tables, output.format_))
    else:
        print_tables(list(tables.values()), output.format_)
    return DONE


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


# -- compare -----------------------------------------------------------------------------------------------------------


@options.command("compare")
def compare_command(
    a: Annotated[str, {"metavar": "A"}],
    b: Annotated[str, {"metavar": "B"}],
    *,
    selected: options.Selection,
    seeds: bool = False,
    plot: options.PlotFile = None,
    out: Annotated[Path | None, options.written("Differences are", [".md"])] = None,
    exit_code: bool = False,
    format_: options.ListFormat = "table",
) -> int:
    """Show the differences between the results A and B, seed by seed: ratios or differences, intervals and tests.

    Args:
        seeds: print one row per pair of runs, instead of one per cell.
        plot: draw the effects with their intervals: .png, .svg or .pdf.
        out: write the differences to FILE, in Markdown (.md).
        exit_code: exit with 1 if any value differs, or a run has no counterpart.

    Examples:
      icy compare before after
      icy compare before after --plot differences.png -o differences.md
      icy compare icy-results:representation=soft icy-results:representation=gumb
      icy compare icy-results:model=sender/RNNZero:GRU icy-results:model=sender/HierZero:GRU
      icy compare results/games/records.parquet@HEAD~1 results/games/records.parquet --exit-code

    A and B are results folders, files written by ProbeResult.save, packs, long tables (results.csv, results.parquet),
    or atlas. PLACE:COLUMN=VALUE,... selects rows of the long table with these values. Runs are then paired even if they
    differ in these columns, but always by grammar and seed.
    PLACE@REVISION reads a file or folder from a commit of git. An effect above 1 (of ratios, compared on the log scale)
    or above 0 means a larger value in B. A pair that was cut at the cap on both sides gives no information.
    """
    from icy.analysis import compare

    how: dict[str, Any] = {"models": selected.model, "grammars": selected.grammar, "where": selected.where}
    found = compare(a, b, **how, measure=selected.measure)
    if out is not None:
        write_text(found.markdown() + "\n", out)
    if plot is not None:
        from icy.analysis.plots.error_bars import differences

        save_figure(differences(found), plot)
    _print(found, seeds, format_)
    differs = any(found.lone) or found.identical < len(found.runs)
    return FAILED if exit_code and differs else DONE


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
