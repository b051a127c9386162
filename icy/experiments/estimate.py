"""Estimates of time and memory: a few updates of some rows are trained and discarded.

The work of an update of every row is counted (`icy.training.work`). Up to EACH rows of a kind are all timed; of more
rows, ENOUGH are timed, in small stacks. From these timings the rates of the machine are fitted, and with them the time
of every row is inferred from its work.
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
from .steps import expected_updates, mean_baseline

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
    costs = _Costs({_cost_key(job): job for job in jobs.values()}, updates, report, time.monotonic() + within)
    known = costs.find()
    rows = [row for row in plan.rows if row.missing and _cost_key(jobs[row.job.row]) in known]
    if costs.errors and not rows:
        raise next(iter(costs.errors.values()))
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


def _estimate_row(row: Row, plan: Plan, known: _StackCost) -> Estimate:
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
        mean_baseline(row) is not None and row.job.length(None) is None,
        known.stack,
        None if known.peak is None else known.peak // known.stack,
        known.process,
        known.timed,
        stacks,
    )


def _stack_seconds(updates: Sequence[float], known: _StackCost) -> float:
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


class _StackCost(NamedTuple):
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
    peak: int | None = None
    process: int | None = None
    timed: bool = True
    setup: float = 0.0
    fixed: float = 0.0

    def of_size(self, replicates: int) -> float:
        """Return the seconds of an update of a stack with this number of replicates."""
        return self.seconds * (self.fixed + (1 - self.fixed) * replicates / self.stack)

    def of_stack(self, replicates: int) -> _StackCost:
        """Return the cost of a larger stack, in which every replicate costs as much as here."""
        times = replicates / self.stack
        peak = None if self.peak is None else int(self.peak * times)
        return self._replace(stack=replicates, seconds=self.seconds * times, peak=peak)


@dataclass
class _Costs:
    """Finds the costs of stacks.

    Attributes:
        jobs: the stacks by key. A stack that does not fit in memory is replaced by a part of it that does.
        updates: number of updates to time, if there are few stacks.
        report: called with a short description of each step before it starts.
        until: time on the monotonic clock after which no timing is started.
        errors: errors of stacks that could not be timed, by key.
    """

    jobs: dict[str, Job]
    updates: int
    report: Report
    until: float
    errors: dict[str, Exception] = field(default_factory=dict)
    _longest: float = 0.0  # seconds of the longest timing
    _timed_kinds: set[str] = field(default_factory=set)
    _slowness: dict[str, float] = field(default_factory=dict)  # of this machine, by kind of job

    def find(self) -> dict[str, _StackCost]:
        """Time as many jobs as the time limit allows, and infer the others of their kind."""
        works = self._count()
        costs: dict[str, _StackCost] = {}
        for kind in dict.fromkeys(job.kind for job in self.jobs.values()):
            mine = [key for key, job in self.jobs.items() if job.kind == kind and key not in self.errors]
            updates = self.updates if len(mine) <= EACH else 1
            counted = {key: work for key in mine if (work := works.get(key)) is not None and any(work.units(1))}
            for key in (key for key in mine if key in works and key not in counted):  # look-up tables, for example
                if self.until - time.monotonic() > self._longest and (one := self._time(key, 1, updates)) is not None:
                    costs[key] = one.of_stack(len(self.jobs[key].replicates))
            costs |= self._infer(counted, few=len(mine) <= EACH) if counted else {}
            for key in (key for key in mine if key not in costs and key not in self.errors):
                if (one := self._like(key, {key: costs[key] for key in mine if key in costs}, works)) is not None:
                    costs[key] = one
        return costs

    def _count(self) -> dict[str, Work | None]:
        works: dict[str, Work | None] = {}
        half = time.monotonic() + (self.until - time.monotonic()) / 2
        cheap_first = sorted(self.jobs.items(), key=lambda item: item[1].update_cost)
        for place, (key, job) in enumerate(cheap_first, start=1):
            if place > EACH and time.monotonic() > half:
                break
            self.report(f"counting the operations of {job.name}, {place} of {len(self.jobs)}")
            with self._failing(key), one_thread() if job.device == "cpu" else contextlib.nullcontext():
                works[key] = job.work()
        return works

    def _infer(self, works: Mapping[str, Work], few: bool) -> dict[str, _StackCost]:
        """Time some stacks, evenly spread by cost, and infer the costs of all from their work."""
        timed: dict[str, _StackCost] = {}
        for key in spread_out(sorted(works, key=lambda key: works[key].usual_seconds(1)), ENOUGH):
            one = self._time_in_limit(key, works[key], few)
            if one is not None and one.seconds > 0:  # NaN where a job reports only once
                timed[key] = one
        timings = [(works[key], one.stack, one.seconds) for key, one in timed.items()]
        rates = fitted_rates(timings) if timed else np.array(USUAL_RATES) * _measured_slowness()
        memory = fitted_memory([(works[key].kept, one.peak / one.stack) for key, one in timed.items() if one.peak])
        own, share = memory or (0.0, 2.0)
        process = next((one.process for one in timed.values()), None)
        setup = float(np.median([one.setup for one in timed.values()])) if timed else 0.0
        found = {}
        for key, work in works.items():
            if key in self.errors:
                continue
            stack, one = len(self.jobs[key].replicates), timed.get(key)
            seconds = float(np.dot(rates, work.units(stack)))
            fixed = rates[0] * work.calls / seconds
            peak: int | None = int(stack * (own + share * work.kept))
            if one is None:
                found[key] = _StackCost(stack, seconds, peak, process, False, setup, fixed)
            else:
                seconds *= one.seconds / float(np.dot(rates, work.units(one.stack)))
                peak = one.peak if one.stack == stack else peak if memory else None
                found[key] = one._replace(stack=stack, seconds=seconds, peak=peak, fixed=fixed)
        return found

    def _like(self, key: str, known: Mapping[str, _StackCost], works: Mapping[str, Work | None]) -> _StackCost | None:
        """Infer the cost of a stack that was not timed from other stacks of its kind; without any, time it.

        If its work was not counted to save time, its relative cost determines it.
        """

        def size(other: str) -> float:
            return 1.0 if key in works else self.jobs[other].update_cost

        stack = len(self.jobs[key].replicates)
        used = {other: one for other, one in known.items() if one.seconds > 0 and size(other) > 0}
        shares = [one.seconds / one.stack / size(other) for other, one in used.items()]
        if shares:
            setup = float(np.median([one.setup for one in used.values()]))
            return _StackCost(stack, float(np.median(shares)) * size(key) * stack, timed=False, setup=setup)
        one = self._time(key, 1, 1)
        return None if one is None else one.of_stack(stack)

    def _time_in_limit(self, key: str, work: Work, few: bool) -> _StackCost | None:
        """Time a stack, or a part of it, if this fits in the time limit; if there are many stacks, a small part."""
        left, kind = self.until - time.monotonic(), self.jobs[key].kind
        if kind not in self._slowness:
            self._slowness[kind] = _measured_slowness()
        stack, updates = len(self.jobs[key].replicates), self.updates
        if not few:
            stack, updates = min(stack, max(1, int(UPDATE_SECONDS / work.usual_seconds(1)))), 1

        def expected(replicates: int, updates: int) -> float:
            first = 0.0 if kind in self._timed_kinds else work.usual_seconds(1) * 3
            return (work.usual_seconds(replicates) * (2 * updates + 1) + first) * self._slowness[kind]

        whole_stack = ((stack, count) for count in dict.fromkeys((4 * updates, updates, 1)))
        for replicates, count in (*whole_stack, (max(1, stack // 4), 1), (1, 1)):
            if expected(replicates, count) <= (left / 4 if count > updates else left):
                found = self._time(key, replicates, count)
                if found is not None and found.seconds > 0:
                    self._slowness[kind] = found.seconds / work.usual_seconds(found.stack)
                return found
        return None

    def _time(self, key: str, replicates: int, updates: int) -> _StackCost | None:
        """Time the first replicates of a stack; fewer, if they do not fit in memory."""
        job = self.jobs[key]
        self.report(f"timing {job.name}")
        began = time.monotonic()
        with self._failing(key):
            warm_up = job.kind not in self._timed_kinds and job.work() is not None
            self._timed_kinds.add(job.kind)
            found = _rehearsed(replace(job, replicates=job.replicates[:replicates]), updates, warm_up)
            if found.stack < replicates:
                self.jobs[key] = replace(job, replicates=job.replicates[: found.stack])
            self._longest = max(self._longest, time.monotonic() - began)
            return found
        return None

    @contextlib.contextmanager
    def _failing(self, key: str) -> Iterator[None]:
        """Log and collect the error of a model, so that the other rows are still timed."""
        try:
            yield
        except Exception as error:
            self.errors[key] = error
            log.warning("%s cannot be timed: %s", self.jobs[key].name, what_and_where(error))


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


def _rehearsed(job: Job, updates: int, warm_up: bool) -> _StackCost:
    """Time a stack; if it does not fit in memory, time its first half, since training would split it.

    Args:
        job: the stack.
        updates: number of updates.
        warm_up: whether to load libraries and allocate shared memory first, so that no replicate is charged for them.
    """
    try:
        with one_thread() if job.device == "cpu" else contextlib.nullcontext():
            if warm_up:
                replace(job, replicates=job.replicates[:1]).rehearse(1)
            began = time.perf_counter()
            with PeakMemory(job.device) as peak:
                seconds = job.rehearse(updates)
            setup = time.perf_counter() - began - (0 if math.isnan(seconds) else 2 * updates * seconds)
        return _StackCost(len(job.replicates), seconds, peak.bytes, peak.before, setup=max(0.0, setup))
    except Exception as error:
        if not out_of_memory(error) or len(job.replicates) == 1:
            raise
    release(job.device)
    half = job.replicates[: (len(job.replicates) + 1) // 2]
    return _rehearsed(replace(job, replicates=half), updates, warm_up=False)
