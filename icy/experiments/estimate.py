"""How long a probe may take, and how much memory: a few updates of every row are made, nothing is kept."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from icy.config.protocols import BASELINE, SCRATCH
from icy.core.devices import release, resolve_device
from icy.core.errors import what_and_where
from icy.core.memory import PeakMemory
from icy.training.job import Job, Reading, Replicate
from icy.training.pairs.job import PairJob
from icy.training.runners.base import one_thread, out_of_memory

from .plan import Plan, Row
from .run import stacks_of

log = logging.getLogger(__name__)

PAIRS = 4  # that are timed on a CPU, where a larger stack brings little more
ASSUMED_STEPS = 500  # of concat, where none is on file


@dataclass(frozen=True)
class Estimate:
    """What training the missing replicates of a row may take. It is an estimate, not a promise.

    Attributes:
        row: the row.
        update_seconds: for one update of one replicate, with all workers at work.
        baselines: runs of concat to train.
        others: runs of other grammars to train.
        concat_steps: that the bounds assume: the mean of what is on file, else ASSUMED_STEPS.
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
        told: of every row before its turn.

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
    on_file = [steps for steps in row.baselines().values() if isinstance(steps, int)]
    if isinstance(row.job, PairJob):
        return _estimate_pairs(row, row.job, plan, on_file, updates)
    baselines = sum(r.grammar == BASELINE for r in row.missing)
    job = replace(row.job, replicates=largest_stack(row, plan), device=_device(plan))
    # Rows that differ in when to stop, and in no more, are trained alike.
    alike = str((job.task, job.settings, job.engine, len(job.replicates)))
    if alike not in known:
        known[alike] = _rehearsed(job, updates, first=not known)
    stack, seconds, memory, process = known[alike]
    return Estimate(
        row,
        seconds / stack / max(1, plan.workers),
        baselines,
        len(row.missing) - baselines,
        sum(on_file) / len(on_file) if on_file else ASSUMED_STEPS,
        bool(on_file),
        row.job.protocol.cap,
        stack,
        None if memory is None else memory // stack,
        process,
    )


def largest_stack(row: Row, plan: Plan) -> tuple[Replicate, ...]:
    """The most replicates of a row that are trained together."""
    return max((job.replicates for job in stacks_of(row, _device(plan), max(1, plan.workers))), key=len)


def _device(plan: Plan) -> str:
    """Where to measure; for a cluster, on this machine."""
    return resolve_device(plan.device) if plan.runner == "local" or plan.device == "auto" else "cpu"


class _Rehearsal(NamedTuple):
    """Replicates of a stack, seconds for an update of it, bytes at its peak, and bytes of the process before."""

    stack: int
    seconds: float
    peak: int | None
    process: int | None


def _rehearsed(job: Job, updates: int, first: bool) -> _Rehearsal:
    """Of a stack that does not fit in memory, its first half, as it would be trained in halves."""
    try:
        return _rehearsed_whole(job, updates, first)
    except Exception as error:
        if not out_of_memory(error) or len(job.replicates) == 1:
            raise
    release(job.device)
    return _rehearsed(replace(job, replicates=job.replicates[: (len(job.replicates) + 1) // 2]), updates, first=False)


def _rehearsed_whole(job: Job, updates: int, first: bool) -> _Rehearsal:
    from icy.training.engine import rehearse

    with one_thread() if job.device == "cpu" else contextlib.nullcontext():
        if first:  # what is loaded and taken once, whatever is trained, is no replicate's
            rehearse(replace(job, replicates=job.replicates[:1]), 1)
        with PeakMemory(job.device) as peak:
            seconds = rehearse(job, updates)
    return _Rehearsal(len(job.replicates), seconds, peak.bytes, peak.before)


def _estimate_pairs(row: Row, job: PairJob, plan: Plan, on_file: Sequence[int], updates: int) -> Estimate:
    """The game alone: how long pre-training takes depends on the grammar."""
    stack = tuple(Replicate(SCRATCH, r.seed) for r in row.missing[: PAIRS if plan.device == "cpu" else None])
    if plan.device != "cpu":
        from icy.training.cuda_graphs import WARM_UP

        updates = max(updates, WARM_UP + 1)  # so that an update is captured before the clock starts
    protocol = replace(job.protocol, steps=2 * updates, report_every=updates)
    with one_thread() if plan.device == "cpu" else contextlib.nullcontext(), PeakMemory(plan.device) as peak:
        seconds = _time_game(replace(job, replicates=stack, protocol=protocol), updates)
    concat = sum(on_file) / len(on_file) if on_file else ASSUMED_STEPS
    steps = job.length(round(concat)) or 0
    update = seconds / len(stack) / plan.workers
    known, memory = bool(on_file) and job.protocol.steps is None, peak.bytes and peak.bytes // len(stack)
    return Estimate(row, update, 0, len(row.missing), steps, known, 1, len(stack), memory)


def _time_game(job: PairJob, updates: int) -> float:
    """Seconds for one update of a game's whole stack, the first few left out as they are slower."""
    settings = replace(job.settings, evaluation_size=2)
    times: list[float] = []

    def report(_: Sequence[Reading]) -> None:
        times.append(time.perf_counter())
        if len(times) == 2:
            raise _EnoughError

    with contextlib.suppress(_EnoughError):
        for _ in replace(job, settings=settings).train(report):
            pass
    return (times[1] - times[0]) / updates if len(times) == 2 else math.nan


class _EnoughError(Exception):
    """Two readings have been taken."""
