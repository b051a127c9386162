"""How long a probe may take: a few updates of every row are timed, nothing is kept."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from icy.planning import Plan, Row
from icy.training.job import Job, Reading, Replicate
from icy.training.pair_job import SCRATCH, PairJob
from icy.training.protocols import BASELINE
from icy.training.running import one_thread

STACK = 4  # replicates that are timed on a CPU, where a larger stack brings little more
ASSUMED_STEPS = 500  # of concat, where none is on file
OUT_OF_REACH = 2.0  # a target that no reading stops the timing by


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
    """

    row: Row
    update_seconds: float
    baselines: int
    others: int
    concat_steps: float
    known: bool
    cap: float

    @property
    def least(self) -> float:
        """Seconds if every grammar is as easy as concat."""
        return self.update_seconds * self.concat_steps * (self.baselines + self.others)

    @property
    def most(self) -> float:
        """Seconds if every other grammar is trained up to its limit."""
        return self.update_seconds * self.concat_steps * (self.baselines + self.cap * self.others)


def estimate(plan: Plan, updates: int = 3) -> list[Estimate]:
    """Time a few updates of every row that has something to train.

    Args:
        plan: what is going to be done.
        updates: how many are timed.

    Returns:
        An estimate per row with missing replicates.

    Raises:
        IcyError: a model cannot be trained at all.
    """
    return [_estimate_row(row, plan, updates) for row in plan.rows if row.missing]


def _estimate_row(row: Row, plan: Plan, updates: int) -> Estimate:
    on_file = [steps for steps in row.baselines().values() if isinstance(steps, int)]
    if isinstance(row.job, PairJob):
        return _estimate_pairs(row, row.job, plan, on_file, updates)
    baselines = sum(r.grammar == BASELINE for r in row.missing)
    size = STACK if plan.device == "cpu" else len(row.missing)
    stack = row.missing[:size]
    with one_thread() if plan.device == "cpu" else contextlib.nullcontext():
        seconds = time_updates(replace(row.job, replicates=stack), updates)
    return Estimate(
        row,
        seconds / len(stack) / max(1, plan.workers),
        baselines,
        len(row.missing) - baselines,
        sum(on_file) / len(on_file) if on_file else ASSUMED_STEPS,
        bool(on_file),
        row.job.protocol.cap,
    )


def _estimate_pairs(row: Row, job: PairJob, plan: Plan, on_file: Sequence[int], updates: int) -> Estimate:
    """The game alone: how long pre-training takes depends on the grammar."""
    stack = tuple(Replicate(SCRATCH, r.seed) for r in row.missing[: STACK if plan.device == "cpu" else None])
    protocol = replace(job.protocol, steps=2 * updates, report_every=updates)
    with one_thread() if plan.device == "cpu" else contextlib.nullcontext():
        seconds = _time_game(replace(job, replicates=stack, protocol=protocol), updates)
    concat = sum(on_file) / len(on_file) if on_file else ASSUMED_STEPS
    steps = job.length(round(concat)) or 0
    update = seconds / len(stack) / plan.workers
    return Estimate(row, update, 0, len(row.missing), steps, known=bool(on_file) and job.protocol.steps is None, cap=1)


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


def time_updates(job: Job, updates: int = 3) -> float:
    """Seconds for one update of a job's whole stack, the first few left out as they are slower."""
    settings = replace(job.settings, check_every=updates, evaluation_size=2, steps_from_zero=False)
    protocol = replace(job.protocol, target=OUT_OF_REACH, cap=1_000_000)
    baselines = {r.seed: 1 for r in job.replicates}
    times: list[float] = []

    def report(_: Sequence[Reading]) -> None:
        times.append(time.perf_counter())
        if len(times) == 2:
            raise _EnoughError

    with contextlib.suppress(_EnoughError):
        for _ in replace(job, settings=settings, protocol=protocol, baselines=baselines).train(report):
            pass
    return (times[1] - times[0]) / updates if len(times) == 2 else math.nan  # all of them diverged at once
