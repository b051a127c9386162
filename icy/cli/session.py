"""What the commands that train share: progress, Ctrl-C, the table and the remarks afterwards, the log."""

from __future__ import annotations

import contextlib
import logging
import re
import shlex
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.text import Text

from icy.experiments.plan import Plan
from icy.experiments.results import ProbeResult
from icy.experiments.trackers.make import watching
from icy.experiments.watcher import Watcher

from .display import LiveWatcher, PlainWatcher
from .exit_codes import DONE, FAILED, Interrupted
from .output import counted, note, print_table
from .progress import ProgressWatcher

Result = TypeVar("Result", bound=ProbeResult)


def run_watched(
    ctx: click.Context,
    plan: Plan,
    run: Callable[[Plan, Watcher | None], Result],
    watcher: ProgressWatcher | None,
    track: str | Iterable[str] = (),
) -> Result:
    """Train what is missing, showing progress and telling the trackers; Ctrl-C becomes a sentence."""
    started = time.time()
    shown = watcher if plan.total else None
    try:
        told = watching(shown, track, plan.store.folder)
        with shown.showing() if shown else contextlib.nullcontext():
            return run(plan, told)
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


def print_result(result: ProbeResult, format_: str, spread: str, **options: Any) -> None:
    """The bias table; json has the replicates one by one. Options as of `icy.analysis.bias_table`."""
    if format_ == "json":
        click.echo(result.table(format_, spread))
    else:
        print_table(result.bias_table(spread, **options), format_)


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
