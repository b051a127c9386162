"""Estimates of time and memory: a few updates of every row are trained, and nothing is kept."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from icy.core.devices import release, resolve_device
from icy.core.errors import what_and_where
from icy.core.memory import PeakMemory
from icy.training.job import Job, Replicate
from icy.training.runners.base import one_thread, out_of_memory

from .plan import Plan, Row
from .run import stacks_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of training the missing replicates of a row.

    Attributes:
        row: the row.
        update_seconds: for one update of one replicate, with all workers at work.
        baselines: runs of concat to train.
        others: runs of other grammars to train.
        concat_steps: steps that the bounds assume: the mean of the baselines on file, else ASSUMED_STEPS.
        known: whether these steps are on file.
        cap: the longest another grammar is trained, as a multiple of these steps.
        stack: replicates that are trained together.
        memory: bytes that each of them takes at the peak, beside what a process takes anyhow; None where it cannot be
            measured.
        process: bytes that a process takes anyhow, on a CPU.
    """

    row: Row
    update_seconds: float
    baselines: int
    others: int
    concat_steps: float
    known: bool
    cap: float
    stack: int
    memory: int | None
    process: int | None = None

    @property
    def least(self) -> float:
        """Seconds if every grammar is as easy as concat."""
        return self.update_seconds * self.concat_steps * (self.baselines + self.others)

    @property
    def most(self) -> float:
        """Seconds if every other grammar is trained up to its limit."""
        return self.update_seconds * self.concat_steps * (self.baselines + self.cap * self.others)


def estimate(plan: Plan, updates: int = 3, told: Callable[[Row], None] = lambda row: None) -> list[Estimate]:
    """Time a few updates of every row that has something to train.

    Args:
        plan: what is going to be done.
        updates: how many are timed.
        told: called with every row before its turn.

    Returns:
        An estimate per row with missing replicates; none of a row that raises, with a remark in the log.

    Raises:
        IcyError: no row can be trained at all.
    """
    known: dict[str, _Rehearsal] = {}
    found: list[Estimate] = []
    errors: list[Exception] = []
    for row in plan.rows:
        if row.missing:
            told(row)
            try:
                found.append(_estimate_row(row, plan, updates, known))
            except Exception as error:  # whatever a model does; the others are worth knowing of
                errors.append(error)
                log.warning("%s cannot be timed: %s", row.name, what_and_where(error))
    if errors and not found:
        raise errors[0]
    return found


def _estimate_row(row: Row, plan: Plan, updates: int, known: dict[str, _Rehearsal]) -> Estimate:
    on_file = [steps for steps in row.baselines().values() if not isinstance(steps, str)]
    expected = row.job.expected_steps(sum(on_file) / len(on_file) if on_file else None)
    baselines = sum(row.job.is_baseline(r) for r in row.missing) if expected.apart else 0
    job = replace(row.job, replicates=largest_stack(row, plan), device=_device(plan)).rehearsal
    # Rows that differ in when to stop, and in no more, are trained alike.
    alike = f"{job.kind} {job.alike}"
    if alike not in known:
        known[alike] = _rehearsed(job, updates, first=not any(other.startswith(f"{job.kind} ") for other in known))
    stack, seconds, memory, process = known[alike]
    return Estimate(
        row,
        seconds / stack / max(1, plan.workers),
        baselines,
        len(row.missing) - baselines,
        expected.steps,
        expected.known,
        expected.cap,
        stack,
        None if memory is None else memory // stack,
        process,
    )


def largest_stack(row: Row, plan: Plan) -> tuple[Replicate, ...]:
    """Return the largest stack of a row."""
    return max((job.replicates for job in stacks_of(row, _device(plan), max(1, plan.workers))), key=len)


def _device(plan: Plan) -> str:
    """Return the device to measure on; for a cluster, this machine's."""
    return resolve_device(plan.device) if plan.runner == "local" or plan.device == "auto" else "cpu"


class _Rehearsal(NamedTuple):
    """Replicates of a stack, seconds for an update of it, bytes at its peak, and bytes of the process before."""

    stack: int
    seconds: float
    peak: int | None
    process: int | None


def _rehearsed(job: Job, updates: int, first: bool) -> _Rehearsal:
    """Rehearse a stack; of one that does not fit in memory its first half, as it would be trained in halves."""
    try:
        return _rehearsed_whole(job, updates, first)
    except Exception as error:
        if not out_of_memory(error) or len(job.replicates) == 1:
            raise
    release(job.device)
    return _rehearsed(replace(job, replicates=job.replicates[: (len(job.replicates) + 1) // 2]), updates, first=False)


def _rehearsed_whole(job: Job, updates: int, first: bool) -> _Rehearsal:
    with one_thread() if job.device == "cpu" else contextlib.nullcontext():
        if first:  # what is loaded and taken once, whatever is trained, is no replicate's
            replace(job, replicates=job.replicates[:1]).rehearse(1)
        with PeakMemory(job.device) as peak:
            seconds = job.rehearse(updates)
    return _Rehearsal(len(job.replicates), seconds, peak.bytes, peak.before)
