"""`icy reproduce`: measure a published table again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icy.analysis.literature.catalogue import find_published, why_not_measured
from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.options import FORMATS, Renamed, given_by_user, spec_options
from icy.cli.output import checked_file, note, paper_options, print_data, print_rows, print_table
from icy.cli.session import OutputOptions, run_command
from icy.config.specs import RETRIES, ReproduceSpec
from icy.core.files import write_atomically
from icy.experiments.reproduce import Reproducing
from icy.experiments.reproduction import Reproduction

from .list import LISTS

EPILOG = """\b
Examples:
  icy reproduce --list
  icy reproduce icy22/table3 --quick
  icy reproduce icy22/table3 --only FC2L,RNNAutoReg:LSTM
  icy reproduce perkins21/table13 --only 'RNNZero:*' --representation soft --dry-run
  icy reproduce perkins21/table13 --only FC2L --set check_every=400
  icy reproduce icy22/table6 --rerun never --save table6.md
  icy reproduce perkins21/table7 --only FC2L
  icy reproduce icy22/table9
  icy reproduce metarg22/listener --only lstm --observations 1e6

\b
Every cell is trained under the preset `published`, with as many seeds as in the paper, and compared with the printed
number, in combined standard errors. Whole tables take hours on a CPU. Finished runs are saved in the results folder:
after Ctrl-C, or with more models, the same command trains only missing runs. --rerun never shows the finished cells
without training. A table of metrics, such as icy22/table9, is measured on languages. For a table or figure that icy
does not measure, the error describes it and names the command or page that shows it; --dry-run prints the same.
"""


@command("reproduce", epilog=EPILOG)
@click.argument("table", required=False)
@click.option("--list", "list_", is_flag=True, help="List the published tables and exit.")
@spec_options(ReproduceSpec, without=("table", "plugin"))
@click.option("--dry-run", is_flag=True, help="Show the planned training and its estimated time; train nothing.")
@paper_options
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--page", cls=Renamed, old=("--save",), type=click.Path(), metavar="FILE",
              help="Also write the page (.md) or cells (.csv) to FILE.")  # fmt: skip
@click.option("--quiet", "-q", is_flag=True, help="Print no progress and no remarks.")
@click.option("--verbose", "-v", count=True, help="Print how each model is stacked and why; -vv for the whole log.")
@click.pass_context
def reproduce_command(
    ctx: click.Context,
    /,
    table: str | None,
    list_: bool,
    page: str | None,
    **given: Any,
) -> int:
    """Measure a published table again, and report how far it is reproduced."""
    if list_:
        format_ = given["format_"]
        print_rows(*LISTS["published"](None), "table" if format_ == "latex" else format_)
        return DONE
    if table is None:
        raise click.UsageError("Which table? `icy reproduce --list` shows all.")
    given["spread"] = "sem"  # as the papers print
    output = OutputOptions.take(given)
    path = None if page is None else checked_file(page, (".md", ".csv"), "A reproduction is")
    if output.dry_run and (said := why_not_measured(table)):
        click.echo(f"Nothing to train. {said}")
        return DONE
    request = Reproducing.of(ReproduceSpec.asked(table=table, **given_by_user(ctx, given)))

    if (name := find_published(table).name) != request.source.id and not output.quiet:
        note(f"{name} is in {request.source.id}: {request.source.title}.")

    def show(done: Reproduction) -> None:
        if path is not None:
            _save(done, path)
            note(f"Written: {path}.")
        _print(done, output.format_)

    if request.trains:
        return run_command(
            ctx, request.plan(), output, lambda found: show(request.judge(found)), request.spec.track, RETRIES
        )
    if output.dry_run:
        seeds = len(request.language_seeds())
        click.echo(f"Nothing to train: {request.source.id} is measured on languages of {seeds} seeds, within a minute.")
    else:
        show(request.measure())
    return DONE


def _save(done: Reproduction, path: Path) -> None:
    text = done.page() if path.suffix.lower() == ".md" else done.cells.to_csv(index=False, float_format="%.5g")
    write_atomically(path, text.encode(), "--page")


def _print(done: Reproduction, format_: str) -> None:
    """Print the table and its verdict; in json and csv, the cells with their verdicts."""
    if print_data(done.cells, format_, float_format="%.5g"):
        return
    if not done.result.records and not done.of_languages:
        click.echo(str(done.verdict))
    else:
        if done.cell_by_cell:
            shown = done.shown()
            print_rows([str(name) for name in shown], shown.to_numpy().tolist(), format_)
        else:
            print_table(done.table(), format_)
        counts = done.cells["verdict"].value_counts()
        summary = f"{done.verdict} Cell by cell: {', '.join(f'{word} {count}' for word, count in counts.items())}."
        click.echo(f"% {summary}" if format_ == "latex" else f"\n{summary}")
