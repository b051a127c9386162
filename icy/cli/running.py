"""What the commands that train share: progress, Ctrl-C, the table and the remarks afterwards, the log."""

from __future__ import annotations

import logging
import re
import shlex
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click
from rich.console import Console
from rich.text import Text

from icy.planning import Plan
from icy.probing import Watcher
from icy.results import ProbeResult

from .display import LiveWatcher, PlainWatcher, ProgressWatcher, counted
from .errors import DONE, FAILED, Interrupted
from .printing import note, rich_table, stdout

if TYPE_CHECKING:
    from icy.analysis.tables import BiasTable

Result = TypeVar("Result", bound=ProbeResult)


def run_watched(
    ctx: click.Context, plan: Plan, run: Callable[[Plan, Watcher | None], Result], watcher: ProgressWatcher | None
) -> Result:
    """Train what is missing, showing progress; Ctrl-C becomes a sentence."""
    started = time.time()
    try:
        if watcher is None or not plan.total:
            return run(plan, None)
        with watcher.showing():
            return run(plan, watcher)
    except KeyboardInterrupt:
        raise Interrupted(_how_to_resume(plan, started, ctx)) from None


def make_watcher(console: Console, verbose: int) -> ProgressWatcher:
    return (LiveWatcher if console.is_terminal else PlainWatcher)(console, engines=verbose > 0)


def _how_to_resume(plan: Plan, started: float, ctx: click.Context) -> str:
    total = sum(len(row.job.replicates) for row in plan.rows)
    return (
        f"Interrupted: {_finished(plan, started)} of {total} finished and kept in {plan.store.folder}. "
        f"To go on, run the same command again: {_same_command(ctx)}"
    )


def _finished(plan: Plan, started: float) -> int:
    """Replicates on file: those from before, and those filed since."""
    paths = [plan.store.path(row.job.key(r)) for row in plan.rows for r in row.missing]
    margin = 1.0  # second; file systems keep time less exactly than programs
    fresh = sum(path.exists() and path.stat().st_mtime >= started - margin for path in paths)
    return sum(len(row.filed) for row in plan.rows) + fresh


def _same_command(ctx: click.Context) -> str:
    """The command as typed, less `--rerun always`, which would repeat what has finished."""
    line = shlex.join(["icy", *ctx.find_root().meta["icy.words"]])
    return re.sub(r" --rerun[ =]always", "", line)


# -- afterwards --------------------------------------------------------------------------------------------------------


def print_result(result: ProbeResult, format_: str, spread: str) -> None:
    console = stdout()
    if format_ != "table" or not console.is_terminal:
        click.echo(result.table("text" if format_ == "table" else format_, spread))
        return
    print_bias_table(result.bias_table(spread), console)


def print_bias_table(table: BiasTable, console: Console) -> None:
    """The bias table on a terminal: turned on its side, or cut into several, where it is too wide."""
    console.print(Text(table.title, style="bold"))
    head, *rows = table.texts()
    whole = [head, *rows]
    turned = [list(column) for column in zip(*whole, strict=True)]
    if _width(whole) <= console.width:
        blocks = [whole]
    elif _width(turned) <= console.width:
        blocks = [turned]
    else:
        blocks = _cut(whole, len(table.labels), console.width)
    for head, *body in blocks:
        console.print(rich_table(head, body, numbers=range(1, len(head))))
    for remark in table.notes:
        console.print(Text(remark, style="dim"))


def _width(lines: Sequence[Sequence[str]]) -> int:
    """Of a table as rich prints it: three spaces to a column."""
    return sum(max(map(len, column)) + 3 for column in zip(*lines, strict=True))


def _cut(lines: list[list[str]], labels: int, room: int) -> list[list[list[str]]]:
    """Several tables that each have the model and as many further columns as there is room for."""
    blocks: list[list[int]] = [[0]]
    for place in range(1, len(lines[0])):
        if len(blocks[-1]) > 1 and _width(_columns(lines, [*blocks[-1], place])) > room:
            blocks.append([0])
        blocks[-1].append(place)
    return [_columns(lines, block) for block in blocks]


def _columns(lines: list[list[str]], places: Sequence[int]) -> list[list[str]]:
    return [[line[i] for i in places] for line in lines]


def print_remarks(plan: Plan, result: ProbeResult) -> None:
    total = sum(len(row.job.replicates) for row in plan.rows)
    folder = plan.store.folder
    if not plan.total:
        lacking = total - len(result.records)
        rest = f"; {lacking} not on file, since --rerun never" if lacking else ""
        note(f"Nothing to train: {len(result.records)} of {total} on file in {folder}{rest}.")
    elif result.paths:
        note(
            f"Written: {', '.join(str(path) for path in result.paths)}; one file per replicate in {folder / 'records'}."
        )
    if result.failures:
        note(
            f"{len(result.failures)} of {counted(len(result.records), 'replicate')} failed; "
            "the same command with --rerun failed tries them again."
        )


def verdict(result: ProbeResult) -> int:
    return FAILED if result.failures else DONE


# -- log ---------------------------------------------------------------------------------------------------------------


class _ConsoleLog(logging.Handler):
    """Prints icy's log above the progress display."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        style = "yellow" if record.levelno >= logging.WARNING else "dim"
        self._console.print(Text(record.getMessage(), style=style), soft_wrap=True)


def set_up_log(console: Console, quiet: bool, verbose: int) -> None:
    log = logging.getLogger("icy")
    for handler in [h for h in log.handlers if isinstance(h, _ConsoleLog)]:
        log.removeHandler(handler)
    log.addHandler(_ConsoleLog(console))
    log.setLevel(logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)])
