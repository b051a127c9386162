"""Estimates of time and memory: a few updates of some rows are trained and discarded.

If there are many rows, a few of them are timed, in small stacks. The time of the others is inferred from the counted
operations of their updates (`icy.training.work`).
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from icy.core.devices import release, resolve_device
from icy.core.errors import what_and_where
from icy.core.memory import PeakMemory, out_of_memory
from icy.training.job import Job, Replicate
from icy.training.runners.base import one_thread
from icy.training.work import USUAL_RATES, Work

from .plan import Plan, Row
from .run import stacks_of
from .steps import expected_updates

log = logging.getLogger(__name__)
EACH = 3  # up to so many rows of different cost are all timed
ENOUGH = 7  # rows to infer others from
SECONDS = 5.0  # limit for counting and timing; a timing that would exceed it is not started
SHARING = 1.15  # factor of a stack's time while other workers run
RANGE = 2**0.5  # an estimate ranges from seconds / RANGE to seconds * RANGE
UPDATE_SECONDS = 0.2  # approximate seconds of an update of the small stack that represents a row
# Weights of the usual rates, in rows. The cost of a call differs most between machines; it is nearly all on a GPU.
PRIORS = (0.01, 1.0, 1.0)
Report = Callable[[str], None]


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of training the missing replicates of a row.

    Attributes:
        row: the row.
        update_seconds: seconds of one update of one replicate, when all workers train.
        seconds: seconds of the row on all workers.
        updates: expected updates of each missing replicate.
        known: whether the baseline's updates are on file.
        stack: replicates that are trained together.
        memory: peak bytes of each of these replicates, in addition to `process`; None where it cannot be measured.
        process: bytes of a process before training, on a CPU.
        timed: whether this row was timed; if not, its time is inferred from other rows.
        stacks: seconds of each stack, baselines first.
    """

    row: Row
    update_seconds: float
    seconds: float
    updates: Mapping[Replicate, float]
    known: bool
    stack: int
    memory: int | None
    process: int | None = None
    timed: bool = True
    stacks: Sequence[float] = ()

    @property
    def least(self) -> float:
        """The lower end of the range."""
        return self.seconds / RANGE

    @property
    def most(self) -> float:
        """The upper end of the range, twice the lower end."""
        return self.seconds * RANGE


def estimate(
    plan: Plan, updates: int = 3, report: Report = lambda doing: None, within: float = SECONDS
) -> list[Estimate]:
    """Estimate the cost of every row that has something to train.

    Args:
        plan: the replicates to train.
        updates: number of updates to time, if there are few rows.
        report: called with a short description of each step before it starts.
        within: seconds for timing; a timing that would exceed them is not started.

    Returns:
        An estimate per row with missing replicates. A row that raises has no estimate, and its error is logged.

    Raises:
        IcyError: none of the rows can be trained.
    """
    jobs = {row.job.row: _rehearsal(row, plan) for row in plan.rows if row.missing}
    errors: list[Exception] = []
    different = {_cost_key(job): job for job in jobs.values()}
    known = _Costs(updates, report, errors, time.monotonic() + within).find(different)
    rows = [row for row in plan.rows if row.missing and _cost_key(jobs[row.job.row]) in known]
    if errors and not rows:
        raise errors[0]
    return [_estimate_row(row, plan, known[_cost_key(jobs[row.job.row])]) for row in rows]


def total_seconds(plan: Plan, estimates: Sequence[Estimate], start: float = 0.0) -> float:
    """Return the seconds of all rows on the workers of a plan. Each worker takes the next stack when it is free.

    Args:
        plan: the replicates to train.
        estimates: estimates of the plan's rows.
        start: seconds before the first stack begins.
    """
    return start + _shared([seconds for one in estimates for seconds in one.stacks], plan.workers)


def _shared(stacks: Sequence[float], workers: int) -> float:
    """Return the seconds until all stacks have ended, if each worker takes the next stack when it is free."""
    ends = [0.0] * max(1, workers)
    for seconds in stacks:
        heapq.heapreplace(ends, ends[0] + seconds)
    return max(ends)


def _rehearsal(row: Row, plan: Plan) -> Job:
    """Return the job that is timed for a row: its largest stack."""
    return replace(row.job, replicates=largest_stack(row, plan), device=_device(plan)).rehearsal


def _cost_key(job: Job) -> str:
    """Return a key that jobs share if they differ only in when to stop, so that their updates cost the same."""
    return f"{job.kind} {job.alike}"


def _estimate_row(row: Row, plan: Plan, known: _Rehearsal) -> Estimate:
    updates = expected_updates(row)
    device, workers = _device(plan), max(1, plan.workers)
    slower = SHARING if workers > 1 and device == "cpu" else 1.0
    stacks = [
        slower * _stack_seconds([updates[r] for r in job.replicates], known) for job in stacks_of(row, device, workers)
    ]
    return Estimate(
        row,
        known.seconds / known.stack / workers,
        _shared(stacks, workers),
        updates,
        row.job.expected_steps(_mean_baseline(row)).known,
        known.stack,
        None if known.peak is None else known.peak // known.stack,
        known.process,
        known.timed,
        stacks,
    )


def _mean_baseline(row: Row) -> float | None:
    on_file = [steps for steps in row.baselines().values() if not isinstance(steps, str)]
    return sum(on_file) / len(on_file) if on_file else None


def _stack_seconds(updates: Sequence[float], known: _Rehearsal) -> float:
    """Return the seconds of a stack, given the updates of each replicate."""
    total, before = known.setup, 0.0
    for place, steps in enumerate(sorted(updates)):
        total += (steps - before) * known.of_size(len(updates) - place)
        before = steps
    return total


def largest_stack(row: Row, plan: Plan) -> tuple[Replicate, ...]:
    """Return the largest stack of a row."""
    return max((job.replicates for job in stacks_of(row, _device(plan), max(1, plan.workers))), key=len)


def _device(plan: Plan) -> str:
    """Return the device to measure on; for a cluster, this machine's."""
    return resolve_device(plan.device) if plan.runner == "local" or plan.device == "auto" else "cpu"


class _Rehearsal(NamedTuple):
    """Cost of a stack.

    Attributes:
        stack: number of replicates.
        seconds: seconds of an update of the stack.
        peak: peak memory in bytes.
        process: bytes of the process before training.
        timed: whether the stack was timed.
        setup: seconds before the first update.
        fixed: fraction of an update's seconds that does not depend on the number of replicates.
    """

    stack: int
    seconds: float
    peak: int | None
    process: int | None
    timed: bool = True
    setup: float = 0.0
    fixed: float = 0.0

    def of_size(self, replicates: int) -> float:
        """Return the seconds of an update of a stack with this number of replicates."""
        return self.seconds * (self.fixed + (1 - self.fixed) * replicates / self.stack)

    def of_stack(self, replicates: int) -> _Rehearsal:
        """Return the cost of a larger stack, in which every replicate costs as much as here."""
        times = replicates / self.stack
        return self._replace(
            stack=replicates, seconds=self.seconds * times, peak=None if self.peak is None else int(self.peak * times)
        )


@dataclass
class _Costs:
    """Finds the costs of stacks.

    Attributes:
        updates: number of updates to time, if there are few stacks.
        report: called with a short description of each step before it starts.
        errors: errors of stacks that could not be timed.
        until: time on the monotonic clock after which no timing is started.
    """

    updates: int
    report: Report
    errors: list[Exception]
    until: float
    _kinds: set[str] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    _longest: float = 0.0  # seconds of the longest timing
    _slowness: dict[str, float] = field(default_factory=dict)  # of this machine, by kind of job

    def find(self, jobs: Mapping[str, Job]) -> dict[str, _Rehearsal]:
        """Time as many jobs as the time limit allows, and infer the others of their kind."""
        works = self._count(jobs)
        costs: dict[str, _Rehearsal] = {}
        for kind in dict.fromkeys(job.kind for job in jobs.values()):
            mine = {key: job for key, job in jobs.items() if job.kind == kind and key not in self._failed}
            counted = {
                key: work for key, job in mine.items() if (work := works.get(key)) is not None and _has_work(work)
            }
            few, alone = len(mine) <= EACH, [key for key in mine if key in works and key not in counted]
            for key in alone:  # rows without counted operations: look-up tables, or models that cannot be counted
                one = self._time_in_limit(key, mine[key], None, self.updates if few else 1)
                if one is not None:
                    costs[key] = one
            costs |= self._timed(mine, counted) if few else self._infer(mine, counted)
            rest = {key: job for key, job in mine.items() if key not in costs and key not in self._failed}
            costs |= self._guess(rest, {key: one for key, one in costs.items() if key in mine}, works, mine)
        return costs

    def _count(self, jobs: Mapping[str, Job]) -> dict[str, Work | None]:
        works: dict[str, Work | None] = {}
        half = time.monotonic() + (self.until - time.monotonic()) / 2
        cheap_first = sorted(jobs.items(), key=lambda item: item[1].update_cost)
        for place, (key, job) in enumerate(cheap_first, start=1):
            if place > EACH and time.monotonic() > half:
                break
            self.report(f"counting the operations of {job.name}, {place} of {len(jobs)}")
            with self._failing(job, key), one_thread() if job.device == "cpu" else contextlib.nullcontext():
                works[key] = job.work()
        return works

    def _timed(self, jobs: Mapping[str, Job], works: Mapping[str, Work]) -> dict[str, _Rehearsal]:
        """Time every job."""
        found = {key: self._time_in_limit(key, jobs[key], work, self.updates) for key, work in works.items()}
        return {key: one for key, one in found.items() if one is not None and one.seconds > 0}

    def _infer(self, jobs: Mapping[str, Job], works: Mapping[str, Work]) -> dict[str, _Rehearsal]:
        """Time some of these jobs, evenly spread by cost, and infer all."""
        tried = self._sample(jobs, works)
        timed = {key: one for key, one in tried.items() if one.seconds > 0}  # NaN where a job reports only once
        if not timed:
            return {}
        rates = fitted_rates([(works[key], one.stack, one.seconds) for key, one in timed.items()])
        peaks = [(works[key].kept, one.peak / one.stack) for key, one in timed.items() if one.peak]
        memory, setup = fitted_memory(peaks), float(np.median([one.setup for one in timed.values()]))
        process = next(iter(timed.values())).process
        found = {}
        for key, work in works.items():
            stack = len(jobs[key].replicates)
            seconds = _seconds(rates, work, stack, timed.get(key))
            peak = None if memory is None else int(stack * (memory[0] + memory[1] * work.kept))
            fixed = rates[0] * work.calls / float(np.dot(rates, work.units(stack)))
            found[key] = _Rehearsal(stack, seconds, peak, process, key in timed, setup, fixed)
        return found

    def _sample(self, jobs: Mapping[str, Job], works: Mapping[str, Work]) -> dict[str, _Rehearsal]:
        """Time some of these jobs, each in a small stack."""
        tried: dict[str, _Rehearsal] = {}
        for key in spread_out(sorted(works, key=lambda key: works[key].usual_seconds(1)), ENOUGH):
            work = works[key]
            few = max(1, int(UPDATE_SECONDS / work.usual_seconds(1)))
            one = self._time_in_limit(key, replace(jobs[key], replicates=jobs[key].replicates[:few]), work, 1)
            if one is not None:
                tried[key] = one
        return tried

    def _guess(
        self,
        jobs: Mapping[str, Job],
        found: Mapping[str, _Rehearsal],
        works: Mapping[str, Work | None],
        every: Mapping[str, Job],
    ) -> dict[str, _Rehearsal]:
        """Infer the costs of jobs that were not timed: from their work, their relative cost, or the timed jobs.

        Args:
            jobs: jobs to infer.
            found: costs of the timed jobs of their kind.
            works: work of all jobs that were counted.
            every: all jobs of their kind.
        """
        timed = [one.seconds / one.stack for one in found.values() if one.seconds > 0]
        shares = [
            work.usual_seconds(1) / job.update_cost
            for key, job in every.items()
            if (work := works.get(key)) is not None and _has_work(work)
        ]
        guessed: dict[str, _Rehearsal] = {}
        if not jobs:
            return guessed
        # Small updates may be slow because of their calls. Large updates are not.
        slowness = min(_measured_slowness(), *self._slowness.values()) if self._slowness else _measured_slowness()
        for key, job in jobs.items():
            work, stack = works.get(key), len(job.replicates)
            if work is not None and _has_work(work):
                seconds, peak = work.usual_seconds(stack) * slowness, int(2 * work.kept * stack)
                guessed[key] = _Rehearsal(stack, seconds, peak, None, timed=False)
            elif key not in works and shares:  # counting was skipped to save time
                seconds = float(np.median(shares)) * job.update_cost * stack * slowness
                guessed[key] = _Rehearsal(stack, seconds, None, None, timed=False)
            elif timed:
                guessed[key] = _Rehearsal(stack, float(np.median(timed)) * stack, None, None, timed=False)
            else:  # only timing can show its cost
                one = self._time(key, replace(job, replicates=job.replicates[:1]), 1)
                if one is not None:
                    guessed[key] = one.of_stack(stack)
                    timed.append(one.seconds)
        return guessed

    def slowness(self, kind: str) -> float:
        """Return the time of jobs of a kind on this machine, relative to a usual machine.

        Timed jobs determine it; without them, a matrix product does.
        """
        if kind not in self._slowness:
            self._slowness[kind] = _measured_slowness()
        return self._slowness[kind]

    def _time_in_limit(self, key: str, job: Job, work: Work | None, updates: int) -> _Rehearsal | None:
        """Time a job, or a part of its stack, if this fits in the time limit."""
        left = self.until - time.monotonic()
        stack = len(job.replicates)
        if work is None:
            found = (
                None if left <= self._longest else self._time(key, replace(job, replicates=job.replicates[:1]), updates)
            )
            return None if found is None else found.of_stack(stack)

        def expected(replicates: int, updates: int) -> float:
            first = 0.0 if job.kind in self._kinds else work.usual_seconds(1) * 3
            return (work.usual_seconds(replicates) * (2 * updates + 1) + first) * self.slowness(job.kind)

        whole_stack = ((stack, count) for count in dict.fromkeys((4 * updates, updates, 1)))
        for replicates, count in (*whole_stack, (max(1, stack // 4), 1), (1, 1)):
            if expected(replicates, count) <= (left / 4 if count > updates else left):
                break
        else:
            return None
        found = self._time(key, replace(job, replicates=job.replicates[:replicates]), count)
        if found is None:
            return None
        usual = work.usual_seconds(found.stack)
        if found.seconds > 0:
            self._slowness[job.kind] = found.seconds / usual
        found = found._replace(fixed=work.usual_seconds(0) / usual)
        if found.stack == stack or replicates == stack:  # a smaller found.stack: all did not fit in memory
            return found
        times = work.usual_seconds(stack) / usual
        peak = None if found.peak is None else found.peak * stack // found.stack
        fixed = work.usual_seconds(0) / work.usual_seconds(stack)
        return found._replace(stack=stack, seconds=found.seconds * times, peak=peak, fixed=fixed)

    def _time(self, key: str, job: Job, updates: int) -> _Rehearsal | None:
        self.report(f"timing {job.name}")
        began = time.monotonic()
        with self._failing(job, key):
            first = job.kind not in self._kinds
            self._kinds.add(job.kind)
            found = _rehearsed(job, updates, first and job.work() is not None)
            self._longest = max(self._longest, time.monotonic() - began)
            return found
        return None

    @contextlib.contextmanager
    def _failing(self, job: Job, key: str) -> Iterator[None]:
        """Log and collect the error of a model, so that the other rows are still timed."""
        try:
            yield
        except Exception as error:
            self.errors.append(error)
            self._failed.add(key)
            log.warning("%s cannot be timed: %s", job.name, what_and_where(error))


def _has_work(work: Work) -> bool:
    """Return whether any operation was counted."""
    return any(work.units(1))


def _measured_slowness() -> float:
    """Return the time of a matrix product on this machine, relative to a usual machine."""
    import torch

    size, seconds = 512, []
    matrix = torch.ones(size, size, dtype=torch.float32, device="cpu")
    with one_thread():
        for _ in range(10):
            began = time.thread_time()  # excludes the varying time of other programs
            matrix @ matrix
            seconds.append(time.thread_time() - began)
    # The usual rates are for updates, and a forward pass is a third of an update.
    return float(np.median(seconds)) / (2 * size**3 * USUAL_RATES[2] / 3)


def _seconds(rates: NDArray[np.float64], work: Work, stack: int, timed: _Rehearsal | None) -> float:
    """Return the seconds of an update of a stack: by fitted rates, or by scaling the timing of a smaller stack."""
    inferred = float(np.dot(rates, work.units(stack)))
    if timed is None:
        return inferred
    there = float(np.dot(rates, work.units(timed.stack)))
    return timed.seconds * inferred / there if there > 0 else timed.of_stack(stack).seconds


def spread_out(keys: Sequence[str], most: int) -> list[str]:
    """Return at most `most` of the keys, spread evenly: those near the ends first, then those in the middle.

    Example:
        >>> spread_out("abcdefghij", 4)
        ['b', 'i', 'd', 'g']
    """
    count = min(most, len(keys))
    places = [int((place + 0.5) * len(keys) / count) for place in range(count)]
    return [keys[place] for place in sorted(places, key=lambda place: (-abs(2 * place + 1 - len(keys)), place))]


def fitted_rates(timed: Sequence[tuple[Work, int, float]]) -> NDArray[np.float64]:
    """Fit the seconds per call, per element and per operation of products to timings.

    Least squares of relative errors with non-negative rates (Lawson and Hanson 1974), slightly regularized towards the
    usual rates times the slowness of this machine, since a few rows may not determine all three rates.

    Args:
        timed: for each stack, the work of an update, the number of replicates, and the seconds of an update.
    """
    from scipy.optimize import nnls

    seconds = np.array([took for *_, took in timed])
    units = np.array([work.units(stack) for work, stack, _ in timed])
    usual = np.array(USUAL_RATES)
    usual *= math.exp(float(np.mean(np.log(seconds / (units @ usual)))))
    relative = units * usual / seconds[:, None]  # in usual rates, so that all columns have a similar scale
    weights = np.sqrt(PRIORS)
    rates, _ = nnls(np.vstack([relative, np.diag(weights)]), np.concatenate([np.ones(len(timed)), weights]))
    found: NDArray[np.float64] = rates * usual
    return found


def fitted_memory(peaks: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Fit the memory of a replicate: a constant, plus a multiple of the bytes that its forward pass keeps.

    Args:
        peaks: pairs of bytes per replicate: kept by the forward pass, and at the peak.
    """
    from scipy.optimize import nnls

    if not peaks:
        return None
    kept, peak = np.array(peaks).T
    scale = float(np.mean(peak))  # so that both columns have a similar scale
    units = np.stack([np.full(len(peak), scale), kept], axis=1) / peak[:, None]
    (own, share), _ = nnls(units, np.ones(len(peak)))
    return float(own * scale), float(share)


def _rehearsed(job: Job, updates: int, first: bool) -> _Rehearsal:
    """Rehearse a stack; if it does not fit in memory, rehearse its first half, since training would split it."""
    try:
        return _rehearsed_whole(job, updates, first)
    except Exception as error:
        if not out_of_memory(error) or len(job.replicates) == 1:
            raise
    release(job.device)
    return _rehearsed(replace(job, replicates=job.replicates[: (len(job.replicates) + 1) // 2]), updates, first=False)


def _rehearsed_whole(job: Job, updates: int, first: bool) -> _Rehearsal:
    with one_thread() if job.device == "cpu" else contextlib.nullcontext():
        if first:  # load libraries and allocate shared memory first, so that no replicate is charged for them
            replace(job, replicates=job.replicates[:1]).rehearse(1)
        began = time.perf_counter()
        with PeakMemory(job.device) as peak:
            seconds = job.rehearse(updates)
        setup = time.perf_counter() - began - (0 if math.isnan(seconds) else 2 * updates * seconds)
    return _Rehearsal(len(job.replicates), seconds, peak.bytes, peak.before, setup=max(0.0, setup))
