"""`icy reproduce`: measure a published table again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from icy.analysis.literature.catalogue import find_published, why_not_measured
from icy.cli.exit_codes import DONE
from icy.cli.options import Format, PaperOutput, Spread, command, request_options, written
from icy.cli.output import note, print_data, print_records, print_rows, write_text
from icy.cli.session import Output, run_command
from icy.config.requests import RETRIES, ReproduceRequest
from icy.experiments.lists import describe
from icy.experiments.reproduce import Reproducing
from icy.experiments.reproduction import Reproduction

PAGE = written("A reproduction is", (".md", ".csv"), flags=("--page",))


@dataclass(frozen=True)
class ReproduceOutput(PaperOutput, Output):
    """Output of a reproduction; the spread is the standard error, as the papers print."""

    format_: Format = "table"
    spread: Spread = "sem"


@command("reproduce")
def reproduce_command(
    table: str | None = None,
    *,
    list_: Annotated[bool, {"flags": ("--list",)}] = False,
    chosen: Annotated[dict[str, Any], request_options(ReproduceRequest, without=("table", "plugin"))],
    page: Annotated[Path | None, PAGE] = None,
    output: ReproduceOutput,
) -> int:
    """Measure a published table again, and report how far it is reproduced.

    Args:
        list_: list the published tables and exit.
        page: also write the page (.md) or cells (.csv) to FILE.

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

    Every cell is trained under the preset `published`, with as many seeds as in the paper, and compared with the
    printed number, in combined standard errors. Whole tables take hours on a CPU. Finished runs are saved in the
    results folder: after Ctrl-C, or with more models, the same command trains only missing runs. --rerun never shows
    the finished cells without training. A table of metrics, such as icy22/table9, is measured on languages. For a table
    or figure that icy does not measure, the error describes it and names the command or page that shows it; --dry-run
    prints the same.
    """
    if list_:
        print_records(describe("published"), output.format_)
        return DONE
    if table is None:
        raise click.UsageError("Which table? `icy reproduce --list` shows all.")
    if output.dry_run and (said := why_not_measured(table)):
        click.echo(f"Nothing to train. {said}")
        return DONE
    request = Reproducing.of(ReproduceRequest.asked(table=table, **chosen))

    if (name := find_published(table).name) != request.source.id and not output.quiet:
        note(f"{name} is in {request.source.id}: {request.source.title}.")

    def show(done: Reproduction) -> None:
        if page is not None:
            is_page = page.suffix.lower() == ".md"
            text = done.page() if is_page else done.cells.to_csv(index=False, float_format="%.5g")
            write_text(text, page, "--page")
        _print(done, output)

    if request.trains:
        return run_command(
            request.plan(), output, lambda found: show(request.judge(found)), request.spec.track, RETRIES
        )
    if output.dry_run:
        seeds = len(request.language_seeds())
        click.echo(f"Nothing to train: {request.source.id} is measured on languages of {seeds} seeds, within a minute.")
    else:
        show(request.measure())
    return DONE


def _print(done: Reproduction, output: ReproduceOutput) -> None:
    """Print the table and its verdict; in json and csv, the cells with their verdicts."""
    if print_data(done.cells, output.format_, float_format="%.5g"):
        return
    if not done.result.records and not done.of_languages:
        click.echo(str(done.verdict))
    else:
        if done.cell_by_cell:
            shown = done.shown()
            print_rows([str(name) for name in shown], shown.to_numpy().tolist(), output.format_)
        else:
            output.print(done.table(output.spread))
        counts = done.cells["verdict"].value_counts()
        summary = f"{done.verdict} Cell by cell: {', '.join(f'{word} {count}' for word, count in counts.items())}."
        click.echo(f"% {summary}" if output.format_ == "latex" else f"\n{summary}")
