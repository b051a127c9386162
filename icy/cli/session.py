"""Shared parts of all training commands: progress, Ctrl-C, the table and the remarks afterwards, the log."""

from __future__ import annotations

import contextlib
import inspect
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import click

from icy.cli.options import FORMATS, TableOutput, Verbose, command, request_options
from icy.config.requests import option
from icy.core.entry import JOB
from icy.core.processes import interrupt_text
from icy.core.registry import registry
from icy.core.text import counted, duration
from icy.experiments.display import make_watcher
from icy.experiments.plan import Plan, Row, make_plan
from icy.experiments.progress import Watcher
from icy.experiments.results import ProbeResult
from icy.experiments.run import finished_text, require_engine, run_plan
from icy.experiments.trackers import watching
from icy.records.kinds import JobKind, job_kind
from icy.training.combinations import warn_of_same_networks

from .exit_codes import DONE, FAILED, Interrupted, same_command
from .output import note, print_records, set_up_log, stderr

if TYPE_CHECKING:
    from icy.experiments.estimate import Estimate


# -- `--dry-run`: the planned training and its estimated time ----------------------------------------------------------


def print_plan(plan: Plan, format_: str, quiet: bool) -> None:
    """Print the rows of a plan with their estimated costs, and the basis of the estimates."""
    warn_of_same_networks(row.job for row in plan.rows)
    require_engine(plan.rows)
    start = time.monotonic() - click.get_current_context().find_root().meta["icy.began"]
    from icy.experiments.estimate import estimate  # imports torch

    if not quiet and plan.total:
        note(f"Estimating the time of {counted(len(plan.rows), 'row')} ...")
    with contextlib.nullcontext() if quiet else stderr().status("") as status:
        found = estimate(plan, report=status.update if status else lambda doing: None)
    estimates = {one.row.job.row: one for one in found}
    cells = _raw_cells if format_ in ("csv", "json") else _plan_cells
    print_records([cells(plan, row, estimates.get(row.job.row)) for row in plan.rows], format_)
    if not quiet:
        _explain_estimate(plan, found, start)


def _raw_cells(plan: Plan, row: Row, found: Estimate | None) -> dict[str, Any]:
    from icy.experiments.estimate import on_workers

    hidden, facts = row.facts.get("hidden size"), ("meanings", "representation", "protocol", "preset", "settings")
    low, high = on_workers([found], plan.workers) if found else (None, None)
    return {
        "model": row.name,
        "hidden_size": None if hidden is None else int(hidden),
        **{name: row.facts.get(name) for name in facts},
        "parameters": row.job.parameters.get("true"),
        "parameters_published": row.job.parameters.get("published"),
        "to_train": len(row.missing),
        "on_file": len(row.filed),
        "grammars": " ".join(dict.fromkeys(r.condition for r in row.job.replicates)),
        "update_seconds": found and found.update_seconds,
        "least_seconds": low,
        "most_seconds": high,
        "timed": found and found.timed,
    }


def _plan_cells(plan: Plan, row: Row, found: Estimate | None) -> dict[str, str]:
    from icy.experiments.estimate import on_workers

    true, published = row.job.parameters.get("true", "-"), row.job.parameters.get("published", "-")
    return {
        "model": row.name,
        **{name: row.facts.get(name, "-") for name in plan.varying},
        "parameters": f"{true}" if true == published else f"{true}/{published}",
        "to train": f"{len(row.missing)} of {len(row.job.replicates)}",
        "1000 updates": duration(1000 * found.update_seconds) if found else "-",
        "in all": _range(on_workers([found], plan.workers)) if found else "-",
    }


def _explain_estimate(plan: Plan, estimates: Sequence[Estimate], start: float) -> None:
    from icy.experiments.estimate import on_workers
    from icy.experiments.expected_updates import QUANTILES

    for text in {row.job.side: row.job.conditions_text() for row in plan.rows}.values():
        if text is not None:
            note(text)
    if any(row.job.parameters.get("true") != row.job.parameters.get("published") for row in plan.rows):
        note("Parameters are trained parameters; the published count is after the stroke.")
    if not plan.total:
        note(f"Nothing to train: {sum(len(row.filed) for row in plan.rows)} on file in {plan.store.folder}.")
        return
    what, workers = counted(plan.total, "replicate"), counted(max(1, plan.workers), "worker")
    where = "the Ray cluster" if plan.runner == "ray" else plan.device
    times = "the time cannot be estimated"
    if estimates:
        low, high = on_workers(estimates, plan.workers)
        times = _range((low + start if low else 0, high + start))
    note(f"{what} on {where} with {workers}: {times}. Nothing was trained or written.")
    if not estimates:
        return
    if left_out := sum(bool(row.missing) for row in plan.rows) - len(estimates):
        note(f"This does not include {counted(left_out, 'row')}, which cannot be estimated.")
    updates = [one for found in estimates for one in found.updates.values()]
    between = dict.fromkeys((round(min(one.low for one in updates)), round(max(one.high for one in updates))))
    records = ", the {:.0%} and {:.0%} quantiles of similar records".format(*QUANTILES)
    needed = records if any(one.low < one.high for one in updates) else ""
    note(f"The time of an update was measured; a replicate takes {' to '.join(map(str, between))} updates{needed}.")
    if capped := sum(one.capped for one in updates):
        note(f"No record is similar to {counted(capped, 'replicate')}: its upper end is the maximum number of updates.")
    if untimed := sum(not found.timed for found in estimates):
        note(
            f"{len(estimates) - untimed} of {len(estimates)} rows were timed; of the others, an update is assumed to "
            "take as long as in the timed row of the next larger size."
        )


def _range(seconds: tuple[float, float]) -> str:
    """Return a range of durations."""
    low, high = (duration(end) for end in seconds)
    return f"at most {high}" if not seconds[0] else f"about {low}" if low == high else f"about {low} to {high}"


SMALL_SPACE = {"meanings": "3x4", "V": "4", "w": "2", "protocol": "acquire"}  # facts of rows with --quick


@dataclass(frozen=True)
class Output(TableOutput):
    """Output of a training command.

    Attributes:
        dry_run: show the planned training and its estimated time; train nothing.
        format_: output format; json has every replicate, other formats have the table.
    """

    dry_run: bool = False
    format_: str = option("table", flags=("--format",), type=click.Choice(FORMATS))
    verbose: Verbose = 0

    def __post_init__(self) -> None:
        set_up_log(self.quiet, self.verbose)

    def watcher(self) -> Watcher | None:
        """Return the progress display, or None."""
        return None if self.quiet else make_watcher(stderr(), self.verbose > 0)

    def show(self, result: ProbeResult, **options: Any) -> None:
        """Print one table per kind of job and protocol, because each has its own measure.

        In csv they have one table, and json has one entry per replicate. Options as for `icy.analysis.bias_table`.
        """
        if self.format_ == "json":
            click.echo(result.table("json"))
            return
        parts = [result] if self.format_ == "csv" else result.parts() or [result]
        self.print(*(part.whole_table(self.spread, **options) for part in parts))


def run_command(
    plan: Plan,
    output: Output,
    show: Callable[[ProbeResult], None],
    track: str | Iterable[str] = (),
    retries: int = 0,
) -> int:
    """Run a plan with progress, show results and remarks, and return the exit code; or only show the plan."""
    if output.dry_run:
        print_plan(plan, output.format_, output.quiet)
        return DONE
    result = run_watched(plan, output.watcher(), track, retries)
    show(result)
    if not output.quiet:
        print_remarks(plan, result)
    return FAILED if result.failures else DONE


def run_watched(plan: Plan, watcher: Watcher | None, track: str | Iterable[str], retries: int) -> ProbeResult:
    """Train missing replicates with progress and trackers; Ctrl-C becomes a sentence."""
    started = time.time()
    try:
        return run_plan(plan, watching(watcher, track, plan.store.folder), retries)
    except KeyboardInterrupt as error:
        kept = interrupt_text(error) or finished_text(plan, started)
        again = same_command(click.get_current_context())
        raise Interrupted(f"{kept}. To continue, run the same command again: {again}") from None


# -- afterwards --------------------------------------------------------------------------------------------------------


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
    if plan.total and plan.kinds == ["probe"] and any(row.facts.items() >= SMALL_SPACE.items() for row in plan.rows):
        note("A model can learn the 64 meanings of 3x4 by heart, so grammars may have another order at 5x10.")
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


# -- commands of registered kinds of jobs, made from their requests ----------------------------------------------------


def command_of_kind(kind: str, name: str) -> Callable[[Callable[[], None]], click.Command]:
    """Return a decorator that makes the command of a kind of job; a docstring with examples is the end of its help."""
    return lambda examples: job_command(job_kind(kind), name, inspect.getdoc(examples) or "")


def job_command(kind: JobKind, name: str | None = None, examples: str = "") -> click.Command:
    """Return the command of a kind of job: one option per field of its request, and of all training commands.

    Args:
        kind: any registered kind.
        name: name of the command in a group; by default the kind's name.
        examples: end of its help.
    """
    asked = kind.request_class()

    def train(*, chosen: dict[str, Any], output: Output) -> int:
        request = asked.asked(**chosen)
        return run_command(make_plan(request), output, output.show, request.track)

    train.__annotations__ = {"chosen": Annotated[dict[str, Any], request_options(asked)], "output": Output}
    train.__doc__ = f"{registry.get(kind.name, JOB).description}\n\n{examples}"
    return command(name or kind.name)(train)
