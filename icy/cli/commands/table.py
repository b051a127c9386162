"""`icy table` and `icy compare`: results as a table, for the screen or for a paper, and the differences of two."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from icy.analysis.tables.printed_table import SUFFIXES, format_of
from icy.cli import options
from icy.cli.exit_codes import DONE, FAILED
from icy.cli.output import print_data, print_rows, print_tables, save_figure, write_text
from icy.experiments.report import render_tables, result_tables

if TYPE_CHECKING:
    from icy.analysis import ResultsComparison


# -- table -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PageOutput(options.PaperOutput):
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
        compare: show reference values below the cells, and the distance in combined standard errors: published, one
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
    look: dict[str, Any] = {"by": by, "sort": sort, "decimals": decimals}
    if diff is None:
        look |= {"mark": not no_marks, "log": not no_log}
    tables = result_tables(selected.read(results), output.spread, compare=compare, diff=diff, **look)
    tables = dict(zip(tables, output.for_paper(*tables.values()), strict=True))
    if output.out is not None:
        write_text(render_tables(tables, format_of(output.out)) + "\n", output.out)
    elif output.format_ in ("json", "csv"):
        click.echo(render_tables(tables, output.format_))
    else:
        print_tables(list(tables.values()), output.format_)
    return DONE


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
