"""Shared parts of all training commands: progress, Ctrl-C, the table and the remarks afterwards, the log."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from icy.core.escapes import printable
from icy.core.processes import interrupt_text
from icy.core.surroundings import log_level
from icy.core.text import counted
from icy.experiments.display import make_watcher
from icy.experiments.plan import Plan
from icy.experiments.results import ProbeResult
from icy.experiments.run import finished_text, run_plan
from icy.experiments.trackers.make import watching
from icy.experiments.watcher import Watcher
from icy.records.kinds import JobKind, job_kind

from .dry_run import print_plan
from .exit_codes import DONE, FAILED, Interrupted, same_command
from .output import note, print_table, stderr

SMALL_SPACE = {"meanings": "3x4", "V": "4", "w": "2", "protocol": "acquire"}  # facts of rows with --quick


@dataclass(frozen=True)
class OutputOptions:
    """Output of a training command: the options of `icy.cli.options.OUTPUT_OPTIONS`."""

    dry_run: bool
    format_: str
    spread: str
    quiet: bool
    verbose: int

    @classmethod
    def take(cls, given: dict[str, object]) -> OutputOptions:
        """Take these options out of a command's arguments, and set up the log."""
        output = msgspec.convert({f.name: given.pop(f.name) for f in fields(cls)}, cls)
        set_up_log(stderr(), output.quiet, output.verbose)
        return output

    def watcher(self) -> Watcher | None:
        """Return the progress display, or None."""
        return None if self.quiet else make_watcher(stderr(), self.verbose > 0)


def run_command(
    ctx: click.Context,
    plan: Plan,
    output: OutputOptions,
    show: Callable[[ProbeResult], None],
    track: str | Iterable[str] = (),
    retries: int = 0,
) -> int:
    """Run a plan with progress, show results and remarks, and return the exit code; or only show the plan."""
    if output.dry_run:
        print_plan(plan, output.format_, output.quiet)
        return DONE

    def run(plan: Plan, watcher: Watcher | None) -> ProbeResult:
        return run_plan(plan, watcher, retries)

    result = run_watched(ctx, plan, run, output.watcher(), track)
    show(result)
    if not output.quiet:
        print_remarks(plan, result)
    return FAILED if result.failures else DONE


def run_watched(
    ctx: click.Context,
    plan: Plan,
    run: Callable[[Plan, Watcher | None], ProbeResult],
    watcher: Watcher | None,
    track: str | Iterable[str] = (),
) -> ProbeResult:
    """Train missing replicates with progress and trackers; Ctrl-C becomes a sentence."""
    started = time.time()
    try:
        return run(plan, watching(watcher, track, plan.store.folder))
    except KeyboardInterrupt as error:
        kept = interrupt_text(error) or finished_text(plan, started)
        raise Interrupted(f"{kept}. To continue, run the same command again: {same_command(ctx)}") from None


# -- afterwards --------------------------------------------------------------------------------------------------------


def print_result(result: ProbeResult, format_: str, spread: str, **options: Any) -> None:
    """Print the table; in json, one entry per replicate. Options as for `icy.analysis.bias_table`."""
    if format_ == "json":
        click.echo(result.table(format_, spread))
    else:
        print_table((result.whole_table if format_ == "csv" else result.bias_table)(spread, **options), format_)


def print_by_protocol(result: ProbeResult, format_: str, spread: str, **options: Any) -> None:
    """Print one table per kind of job and protocol, because each has its own measure; in json, one entry per replicate.

    Options as for `icy.analysis.bias_table`.
    """
    parts = result.parts()
    if format_ in ("json", "csv") or len(parts) < 2:  # these formats have one table for all
        print_result(result, format_, spread, **options)
        return
    for place, part in enumerate(parts):
        if place:
            click.echo()
        print_result(part, format_, spread, **options)


def print_remarks(plan: Plan, result: ProbeResult) -> None:
    """Print the results folder, and how to continue after failures."""
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
    if plan.total and any(row.facts.items() >= SMALL_SPACE.items() for row in plan.rows):
        note("A model can learn the 12 meanings of 3x4 by heart, so grammars may have another order at 5x10.")
    for kind in map(job_kind, plan.kinds):
        if kind.evaluates and (sentence := _saved_models_note(plan, kind, result)):
            note(sentence)
    if result.failures:
        note(
            f"{len(result.failures)} of {counted(len(result.records), 'replicate')} failed; "
            "run the same command with --rerun failed to try them again."
        )


def _saved_models_note(plan: Plan, kind: JobKind, result: ProbeResult) -> str:
    """Return how to evaluate a kind's models, or how to save them; "" if there are no results."""
    if all(record["failed"] for record in result.records):
        return ""
    command = f"`icy {kind.evaluates} {shlex.quote(str(plan.store.folder))}`"
    if all(row.job.keep_models for row in plan.rows if row.job.kind == kind.name):
        return f"The {kind.noun} were saved: {command} evaluates them."
    return (
        f"The {kind.noun} were not saved: run the same command with --keep-models to train them again and save them, "
        f"for {command}."
    )


# -- log ---------------------------------------------------------------------------------------------------------------


class _ConsoleLog(logging.Handler):
    """Prints icy's log above the progress display."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        style = "yellow" if record.levelno >= logging.WARNING else "dim"
        self._console.print(Text(printable(record.getMessage()), style=style), soft_wrap=True)


def set_up_log(console: Console, quiet: bool, verbose: int) -> None:
    """Print icy's log on a console until the command ends, from the level that `quiet` and `verbose` choose."""
    level = logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    click.get_current_context().with_resource(_log_output(console, level))


@contextmanager
def _log_output(console: Console, level: int) -> Iterator[None]:
    log, handler = logging.getLogger("icy"), _ConsoleLog(console)
    log.addHandler(handler)
    try:
        with log_level(level, log.name):
            yield
    finally:
        log.removeHandler(handler)
