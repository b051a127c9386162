"""`--dry-run`: the planned training, its estimated time, and its memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from icy.core.text import counted, duration, size
from icy.experiments.plan import Plan, Row
from icy.experiments.run import require_engine
from icy.training.same_networks import warn_of_same_networks

from .output import note, print_rows, stderr

if TYPE_CHECKING:
    from icy.experiments.estimate import Estimate


START = 1.8  # seconds that a run spends on imports, workers and tables, per second spent on its plan
WITHIN, LEAST = 6.0, 1.5  # seconds from the start of a dry run to the end of its timing; minimum seconds of timing
PLAN_HEADINGS = ["model", "parameters", "to train", "memory", "1000 updates", "in all"]
RAW_HEADINGS = [
    "model", "hidden_size", "meanings", "representation", "protocol", "preset", "parameters", "parameters_published",
    "to_train", "on_file", "grammars", "memory_bytes", "update_seconds", "seconds", "least_seconds", "most_seconds",
    "timed",
]  # fmt: skip


def print_plan(plan: Plan, format_: str, quiet: bool) -> None:
    """Print the rows of a plan with their estimated costs, and the basis of the estimates."""
    warn_of_same_networks(row.job for row in plan.rows)
    require_engine(plan.rows)
    began = click.get_current_context().find_root().meta["icy.began"]
    start = START * (time.monotonic() - began)
    from icy.experiments.estimate import SECONDS, estimate, total_seconds  # imports torch

    if not quiet and plan.total:
        note(f"Timing a few updates of {counted(len(plan.rows), 'row')} ...")
    within = min(SECONDS, max(LEAST, WITHIN - (time.monotonic() - began)))
    with contextlib.nullcontext() if quiet else stderr().status("") as status:
        found = estimate(plan, report=status.update if status else lambda doing: None, within=within)
    total = total_seconds(plan, found, start)
    if len(found) == 1:
        found = [replace(found[0], seconds=total)]
    estimates = {e.row.job.row: e for e in found}
    if format_ in ("csv", "json"):
        print_rows(RAW_HEADINGS, [_raw_cells(row, estimates.get(row.job.row)) for row in plan.rows], format_)
    else:
        headings = [PLAN_HEADINGS[0], *plan.varying, *PLAN_HEADINGS[1:]]
        lines = [headings, *(_plan_cells(row, plan.varying, estimates.get(row.job.row)) for row in plan.rows)]
        print_rows(lines[0], lines[1:], format_)
    if not quiet:
        _explain_estimate(plan, list(estimates.values()), total)


def _raw_cells(row: Row, found: Estimate | None) -> list[Any]:
    parameters, grammars = row.job.parameters, " ".join(dict.fromkeys(r.condition for r in row.job.replicates))
    times: list[Any] = [None] * 6
    if found:
        times = [found.memory, found.update_seconds, found.seconds, found.least, found.most, found.timed]
    counts = [parameters.get("true"), parameters.get("published"), len(row.missing), len(row.filed)]
    facts = [row.facts.get(name) for name in ("meanings", "representation", "protocol", "preset")]
    hidden = row.facts.get("hidden size")
    return [row.name, None if hidden is None else int(hidden), *facts, *counts, grammars, *times]


def _plan_cells(row: Row, varying: Sequence[str], found: Estimate | None) -> list[str]:
    true, published = row.job.parameters.get("true", "-"), row.job.parameters.get("published", "-")
    count = f"{true}" if true == published else f"{true}/{published}"
    replicates = f"{len(row.missing)} of {len(row.job.replicates)}"
    times = ["-"] * 3
    if found:
        times = [size(found.memory), duration(1000 * found.update_seconds), _about(found.seconds)]
    return [row.name, *(row.facts.get(name, "-") for name in varying), count, replicates, *times]


def _explain_estimate(plan: Plan, estimates: Sequence[Estimate], total: float) -> None:
    for text in {row.job.side: row.job.conditions_text() for row in plan.rows}.values():
        if text is not None:
            note(text)
    if any(row.job.parameters.get("true") != row.job.parameters.get("published") for row in plan.rows):
        note("Parameters are trained parameters; the published count is after the stroke.")
    if not estimates:
        note(f"Nothing to train: {sum(len(row.filed) for row in plan.rows)} on file in {plan.store.folder}.")
        return
    what, workers = counted(plan.total, "replicate"), counted(max(1, plan.workers), "worker")
    where = "the Ray cluster" if plan.runner == "ray" else plan.device
    note(f"{what} on {where} with {workers}: {_about(total)}. Nothing was trained or written.")
    inferred = sum(not e.timed for e in estimates)
    if inferred == len(estimates):
        note("No row could be timed. This guess is from the operations of an update, and may be off by a factor of 3.")
    elif inferred:
        note(
            f"{len(estimates) - inferred} of {len(estimates)} rows were timed; the others are inferred from the "
            "operations of an update: mostly within a factor of 1.5 for times, and of 2 for memory."
        )
    if (memory := _memory(plan, estimates)) is not None:
        note(memory)
    for kind in plan.kinds:
        mine = [e for e in estimates if e.row.job.kind == kind]
        if mine:
            counts = [round(number) for e in mine for number in e.updates.values()]
            between = " to ".join(str(n) for n in dict.fromkeys((min(counts), max(counts))))
            on_file = " (the baseline's are on file)" * any(e.known for e in mine)
            note(mine[0].row.job.estimate_text(between + on_file))


def _memory(plan: Plan, estimates: Sequence[Estimate]) -> str | None:
    """Return a sentence on the memory of the largest stacks, if it could be measured."""
    if any(e.memory is None for e in estimates):
        return None
    peak, most = max((e.memory or 0) * e.stack for e in estimates), max(e.stack for e in estimates)
    workers = max(1, plan.workers)
    own = estimates[0].process if plan.device == "cpu" else None
    beside = "" if own is None else f", plus {size(own)} for each worker process"
    return (
        f"Memory is the peak of one replicate. Stacks of up to {most}, {counted(workers, 'worker')}: at most "
        f"{size(peak * workers)}{beside}."
    )


def _about(seconds: float) -> str:
    """Return a duration with its range."""
    from icy.experiments.estimate import RANGE

    return f"about {duration(seconds)} ({duration(seconds / RANGE)} to {duration(seconds * RANGE)})"
