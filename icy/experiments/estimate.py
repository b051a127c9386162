"""Estimates of time: some updates of each model are timed and discarded, and multiplied by the updates of records."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from icy.core.errors import what_and_where
from icy.core.machine import out_of_memory, resolve_device
from icy.training.job import Job, Replicate
from icy.training.runners.base import one_thread

from .expected_updates import ExpectedUpdates, Updates
from .plan import Plan, Row
from .run import stacks_of

log = logging.getLogger(__name__)
UPDATES = 20  # timed updates of a model
SECONDS = 20.0  # for the timings of all models; each has an equal share
SLACK = 0.7, 1.5  # of the ends of a range, since evaluations, other workers and other programs take time


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of training the missing replicates of a row.

    Attributes:
        row: the row.
        update_seconds: seconds of one update of one replicate in its stack.
        timed: whether the row was timed; if not, the time is that of the next larger timed row, if any.
        updates: expected updates of each missing replicate.
        stacks: lowest and highest seconds of each stack.
    """

    row: Row
    update_seconds: float
    timed: bool
    updates: Mapping[Replicate, Updates]
    stacks: Sequence[tuple[float, float]]


def estimate(plan: Plan, report: Callable[[str], None] = lambda doing: None) -> list[Estimate]:
    """Estimate the cost of every row that has something to train.

    No timing starts after SECONDS, except the first of each kind of job.

    Args:
        plan: the replicates to train.
        report: called with a short description of each timing before it starts.

    Returns:
        An estimate per row with missing replicates. A row has no estimate if it raises an error, which is logged, or if
        its updates cannot be timed or have no known maximum.

    Raises:
        IcyError: none of the rows can be trained.
    """
    device = resolve_device(plan.device) if plan.runner == "local" or plan.device == "auto" else "cpu"
    rows = [(row, stacks_of(row, device, max(1, plan.workers))) for row in plan.rows if row.missing]
    jobs = [max(stacks, key=lambda job: len(job.replicates)).rehearsal for _, stacks in rows]
    timed, failed = _time_jobs(jobs, report)
    expected, found = ExpectedUpdates(plan), []
    for (row, stacks), job in zip(rows, jobs, strict=True):
        alike = [(one, seconds) for one, seconds in timed.values() if one.kind == job.kind]
        if not alike or _key(job) in failed:
            continue
        # Smaller jobs come last, because some are not recurrent.
        cost = job.update_cost
        nearest = min(alike, key=lambda one: (one[0].update_cost < cost, abs(one[0].update_cost - cost)))
        _, seconds = timed.get(_key(job), nearest)
        updates = expected.of_row(row)
        if all(math.isfinite(one.high) for one in updates.values()):
            of_stacks = [[updates[r] for r in stack.replicates] for stack in stacks]
            ends = [
                (
                    SLACK[0] * seconds * sum(one.low for one in stack),
                    SLACK[1] * seconds * sum(one.high for one in stack),
                )
                for stack in of_stacks
            ]
            found.append(Estimate(row, seconds, _key(job) in timed, updates, ends))
    return found


def on_workers(estimates: Sequence[Estimate], workers: int) -> tuple[float, float]:
    """Return the lowest and highest seconds of rows that share some workers."""
    lows, highs = zip(*(ends for one in estimates for ends in one.stacks), strict=True)
    return max(sum(lows) / max(1, workers), *lows), max(sum(highs) / max(1, workers), *highs)


def _key(job: Job) -> str:
    """Return a key that jobs share if their updates cost the same."""
    return f"{job.kind} {job.alike}"


def _time_jobs(
    jobs: Sequence[Job], report: Callable[[str], None]
) -> tuple[dict[str, tuple[Job, float]], dict[str, Exception]]:
    """Return the timed jobs by key, each with the seconds of an update of a replicate, and the errors by key."""
    distinct = sorted({_key(job): job for job in jobs}.items(), key=lambda one: one[1].update_cost)
    # In an order that covers all sizes evenly, wherever the time ends: multiples of the golden ratio.
    order = sorted(range(len(distinct)), key=lambda place: place * 0.618034 % 1)
    until, failed = time.monotonic() + SECONDS, {}
    timed: dict[str, tuple[Job, float]] = {}
    for count, (key, job) in enumerate(distinct[place] for place in order):
        if time.monotonic() > until and job.kind in {one.kind for one, _ in timed.values()}:
            continue
        report(f"timing {job.name}, {count + 1} of {len(distinct)}")
        try:
            seconds = _seconds_of_update(job, SECONDS / len(distinct))
        except Exception as error:
            failed[key] = error
            log.warning("%s cannot be timed: %s", job.name, what_and_where(error))
        else:
            if seconds > 0:  # NaN for a training without updates
                timed[key] = job, seconds
    if failed and not timed:
        raise next(iter(failed.values()))
    return timed, failed


def _seconds_of_update(job: Job, within: float) -> float:
    """Return the seconds of an update of one replicate, in its stack if this fits in the time."""
    one = replace(job, replicates=job.replicates[:1])
    with one_thread():
        seconds = one.rehearse(1)  # also loads libraries
        for part in (job, one):
            cost = 2 * len(part.replicates) * seconds  # as many updates run before the timed ones
            if cost > 0 and (updates := int(min(UPDATES, within / cost))) > 0:
                try:
                    return part.rehearse(updates) / len(part.replicates)
                except Exception as error:
                    if not out_of_memory(error):
                        raise
    return seconds
