"""Estimates of time and memory: a few updates of some rows are trained, and nothing is kept.

Where there are many rows, a few of them are timed, in small stacks; the time of the others is inferred from what their
updates consist of (`icy.training.work`), which is counted.
"""

from __future__ import annotations

import contextlib
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

log = logging.getLogger(__name__)
EACH = 3  # rows that are all timed, if there are no more of different cost
AT_LEAST = 3  # rows to infer others from
ENOUGH = 7  # of these
SECONDS = 6.0  # for timing them; no further one is begun after that
UPDATE_SECONDS = 0.2  # of the stack that one of these is timed in, about
# Weights of the usual rates, in rows; what a call costs differs most between machines, and is nearly all on a GPU.
PRIORS = (0.01, 1.0, 1.0)
Told = Callable[[str], None]


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
        timed: whether this row was timed, or inferred from others.
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
    timed: bool = True

    @property
    def least(self) -> float:
        """Seconds if every grammar is as easy as concat."""
        return self.update_seconds * self.concat_steps * (self.baselines + self.others)

    @property
    def most(self) -> float:
        """Seconds if every other grammar is trained up to its limit."""
        return self.update_seconds * self.concat_steps * (self.baselines + self.cap * self.others)


def estimate(plan: Plan, updates: int = 3, told: Told = lambda doing: None) -> list[Estimate]:
    """Estimate the cost of every row that has something to train.

    Args:
        plan: what is going to be done.
        updates: how many are timed, of few rows.
        told: called with what is being done, in a few words, before it is.

    Returns:
        An estimate per row with missing replicates; none of a row that raises, with a remark in the log.

    Raises:
        IcyError: no row can be trained at all.
    """
    jobs = {row.job.row: _rehearsal(row, plan) for row in plan.rows if row.missing}
    errors: list[Exception] = []
    different = {_alike(job): job for job in jobs.values()}
    costs = _Costs(updates, told, errors)
    known = costs.timed(different) if len(different) <= EACH else costs.inferred(different)
    rows = [row for row in plan.rows if row.missing and _alike(jobs[row.job.row]) in known]
    if errors and not rows:
        raise errors[0]
    return [_estimate_row(row, plan, known[_alike(jobs[row.job.row])]) for row in rows]


def _rehearsal(row: Row, plan: Plan) -> Job:
    """Return the job that is timed for a row: its largest stack."""
    return replace(row.job, replicates=largest_stack(row, plan), device=_device(plan)).rehearsal


def _alike(job: Job) -> str:
    """Return what jobs have in common that differ in when to stop, and in no more, so that they are trained alike."""
    return f"{job.kind} {job.alike}"


def _estimate_row(row: Row, plan: Plan, known: _Rehearsal) -> Estimate:
    on_file = [steps for steps in row.baselines().values() if not isinstance(steps, str)]
    expected = row.job.expected_steps(sum(on_file) / len(on_file) if on_file else None)
    baselines = sum(row.job.is_baseline(r) for r in row.missing) if expected.apart else 0
    return Estimate(
        row,
        known.seconds / known.stack / max(1, plan.workers),
        baselines,
        len(row.missing) - baselines,
        expected.steps,
        expected.known,
        expected.cap,
        known.stack,
        None if known.peak is None else known.peak // known.stack,
        known.process,
        known.timed,
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
    timed: bool = True

    def of_stack(self, replicates: int) -> _Rehearsal:
        """Return the same of a larger stack, if every replicate costs as much."""
        times = replicates / self.stack
        return self._replace(
            stack=replicates, seconds=self.seconds * times, peak=None if self.peak is None else int(self.peak * times)
        )


@dataclass
class _Costs:
    """Finds what stacks cost.

    Attributes:
        updates: how many are timed, of few stacks.
        told: called before each.
        errors: what could not be timed, and why.
    """

    updates: int
    told: Told
    errors: list[Exception]
    _kinds: set[str] = field(default_factory=set)

    def timed(self, jobs: Mapping[str, Job]) -> dict[str, _Rehearsal]:
        """Time every job."""
        found = {key: self._time(job, self.updates, f"timing {job.name}") for key, job in jobs.items()}
        return {key: one for key, one in found.items() if one is not None}

    def inferred(self, jobs: Mapping[str, Job]) -> dict[str, _Rehearsal]:
        """Time a few jobs, and infer the others of their kind from what their updates consist of."""
        works = self._count(jobs)
        found: dict[str, _Rehearsal] = {}
        for kind in dict.fromkeys(job.kind for job in jobs.values()):
            mine = {key: (jobs[key], work) for key, work in works.items() if jobs[key].kind == kind}
            alone = [key for key, (_, work) in mine.items() if work is None or not any(work.units(1))]
            for key in alone:  # cheap ones, as they only look things up
                job = mine.pop(key)[0]
                one = self._time(replace(job, replicates=job.replicates[:1]), 1, f"timing {job.name}")
                if one is not None:
                    found[key] = one.of_stack(len(job.replicates))
            counted = {key: (job, work) for key, (job, work) in mine.items() if work is not None}
            few = len(counted) <= EACH
            found |= self.timed({key: job for key, (job, _) in counted.items()}) if few else self._infer(counted)
        return found

    def _count(self, jobs: Mapping[str, Job]) -> dict[str, Work | None]:
        found: dict[str, Work | None] = {}
        for place, (key, job) in enumerate(jobs.items(), start=1):
            self.told(f"counting the operations of {job.name}, {place} of {len(jobs)}")
            with self._failing(job), one_thread() if job.device == "cpu" else contextlib.nullcontext():
                found[key] = job.work()
        return found

    def _infer(self, jobs: Mapping[str, tuple[Job, Work]]) -> dict[str, _Rehearsal]:
        """Time some of these jobs, spread over all of them by cost, and infer all; if these tell no time, time all."""
        tried = self._sample(jobs)
        timed = {key: one for key, one in tried.items() if one.seconds > 0}  # NaN where a job reports only once
        if not timed:
            rest = self.timed({key: job for key, (job, _) in jobs.items() if key not in tried})
            return rest | {key: one.of_stack(len(jobs[key][0].replicates)) for key, one in tried.items()}
        rates = fitted_rates([(jobs[key][1], one.stack, one.seconds) for key, one in timed.items()])
        peaks = [(jobs[key][1].kept, one.peak / one.stack) for key, one in timed.items() if one.peak]
        memory = fitted_memory(peaks)
        process = next(iter(timed.values())).process
        found = {}
        for key, (job, work) in jobs.items():
            stack = len(job.replicates)
            seconds = _seconds(rates, work, stack, timed.get(key))
            peak = None if memory is None else int(stack * (memory[0] + memory[1] * work.kept))
            found[key] = _Rehearsal(stack, seconds, peak, process, key in timed)
        return found

    def _sample(self, jobs: Mapping[str, tuple[Job, Work]]) -> dict[str, _Rehearsal]:
        """Time some of these jobs, each in a small stack."""
        tried: dict[str, _Rehearsal] = {}
        began = time.monotonic()
        for key in spread_out(sorted(jobs, key=lambda key: jobs[key][1].usual_seconds(1)), ENOUGH):
            if len(tried) >= AT_LEAST and time.monotonic() - began > SECONDS:
                break
            job, work = jobs[key]
            few = max(1, int(UPDATE_SECONDS / work.usual_seconds(1)))
            one = self._time(replace(job, replicates=job.replicates[:few]), 1, f"timing {job.name}")
            if one is not None:
                tried[key] = one
        return tried

    def _time(self, job: Job, updates: int, doing: str) -> _Rehearsal | None:
        self.told(doing)
        with self._failing(job):
            first = job.kind not in self._kinds
            self._kinds.add(job.kind)
            return _rehearsed(job, updates, first)
        return None

    @contextlib.contextmanager
    def _failing(self, job: Job) -> Iterator[None]:
        """Keep what a model raises: the other rows are worth knowing of."""
        try:
            yield
        except Exception as error:
            self.errors.append(error)
            log.warning("%s cannot be timed: %s", job.name, what_and_where(error))


def _seconds(rates: NDArray[np.float64], work: Work, stack: int, timed: _Rehearsal | None) -> float:
    """Return the seconds of an update of a stack by fitted rates; of one that was timed, by how much larger it is."""
    inferred = float(np.dot(rates, work.units(stack)))
    if timed is None:
        return inferred
    there = float(np.dot(rates, work.units(timed.stack)))
    return timed.seconds * inferred / there if there > 0 else timed.of_stack(stack).seconds


def spread_out(keys: Sequence[str], most: int) -> list[str]:
    """Return some of the keys, spread evenly over all of them: towards the ends first, then those in the middle.

    Example:
        >>> spread_out("abcdefghij", 4)
        ['b', 'i', 'd', 'g']
    """
    count = min(most, len(keys))
    places = [int((place + 0.5) * len(keys) / count) for place in range(count)]
    return [keys[place] for place in sorted(places, key=lambda place: (-abs(2 * place + 1 - len(keys)), place))]


def fitted_rates(timed: Sequence[tuple[Work, int, float]]) -> NDArray[np.float64]:
    """Fit seconds per call, element and operation of products to what was timed.

    Least squares of relative errors with rates that are not negative (Lawson and Hanson 1974), drawn a little towards
    the usual rates times what this machine is slower, as few rows may not tell all three apart.

    Args:
        timed: work, replicates of the stack, and seconds of an update of it.
    """
    from scipy.optimize import nnls

    seconds = np.array([took for *_, took in timed])
    units = np.array([work.units(stack) for work, stack, _ in timed])
    usual = np.array(USUAL_RATES)
    usual *= math.exp(float(np.mean(np.log(seconds / (units @ usual)))))
    relative = units * usual / seconds[:, None]  # in usual rates, so that all columns are of a size
    weights = np.sqrt(PRIORS)
    rates, _ = nnls(np.vstack([relative, np.diag(weights)]), np.concatenate([np.ones(len(timed)), weights]))
    found: NDArray[np.float64] = rates * usual
    return found


def fitted_memory(peaks: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Fit the memory of a replicate: a part that all have, and a share of what its forward pass keeps.

    Args:
        peaks: what is kept of one replicate, and its share of the peak, in bytes.
    """
    from scipy.optimize import nnls

    if not peaks:
        return None
    kept, peak = np.array(peaks).T
    scale = float(np.mean(peak))  # so that both columns are of a size
    units = np.stack([np.full(len(peak), scale), kept], axis=1) / peak[:, None]
    (own, share), _ = nnls(units, np.ones(len(peak)))
    return float(own * scale), float(share)


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
