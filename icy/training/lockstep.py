"""Lockstep: stacks of replicates that are equally far, with checkpoints between their updates."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from icy.core.types import State

from .checkpoints import Checkpoints, sweep_checkpoints
from .job import Job, Outcome, Replicate
from .learners import Learner

DRAWN_AT_ONCE = 64  # batches; bounds the memory they take, whatever the grid of checks
LONGEST = 5.0  # seconds of updates at once, so that a checkpoint is not long overdue
J = TypeVar("J", bound=Job)


def in_groups(job: J, train: Callable[[J, Checkpoints], Iterator[Outcome]]) -> Iterator[Outcome]:
    """Train a job's replicates as one stack, or as several where checkpoints are of different steps.

    Args:
        job: what to train.
        train: trains those that are equally far, given as a job of their own with the baselines that are known.
    """
    if job.checkpoints:
        sweep_checkpoints(job.folder)
    checkpoints, baselines = Checkpoints(job), dict(job.baselines)
    for group in checkpoints.groups():
        for outcome in train(replace(job, replicates=group, baselines=baselines), checkpoints):
            yield outcome
            checkpoints.forget(outcome.replicate)  # only now, as its record is on file
            if job.is_baseline(outcome.replicate):
                baselines = {**job.baselines_in([job.record(outcome)]), **baselines}


class Lockstep(ABC):
    """A stack of replicates that train in lockstep, from the beginning or from a checkpoint.

    Args:
        checkpoints: that it leaves and goes on from; none unless given.

    Attributes:
        checkpoints: the same.
        learner: of the replicates.
        updates: made so far.
    """

    learner: Learner

    def __init__(self, checkpoints: Checkpoints | None = None) -> None:
        self.checkpoints = Checkpoints() if checkpoints is None else checkpoints
        self.updates = 0
        self._pace = 0.0  # seconds of an update, as of the last ones

    def advance(self, until: int) -> None:
        """Make updates until so many have been made, with checkpoints in between; at the end a check may be due."""
        while self.updates < until:
            began, before = time.perf_counter(), self.updates
            with self.timed():
                self._update(min(self._few(), until - before))
            self._pace = (time.perf_counter() - began) / (self.updates - before)
            if self.updates < until:
                self.save_if_due()

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Share out the time that the block takes among the replicates."""
        began = time.perf_counter()
        yield
        self._share(time.perf_counter() - began)

    def _few(self) -> int:
        """Return how many updates to make at once."""
        return DRAWN_AT_ONCE if self._pace * DRAWN_AT_ONCE <= LONGEST else max(1, int(LONGEST / self._pace))

    def save_if_due(self) -> None:
        """Leave a checkpoint of every replicate now and then."""
        if self.checkpoints.due:
            self.save()

    def save(self) -> None:
        """Leave a checkpoint of every replicate."""
        self.checkpoints.save(self.learner, self.updates, self._own())

    @abstractmethod
    def _update(self, count: int) -> None:
        """Make so many updates, and count them."""

    @abstractmethod
    def _share(self, seconds: float) -> None:
        """Share time out among the replicates."""

    @abstractmethod
    def _own(self) -> Mapping[Replicate, State]:
        """Return what each replicate goes on from beside its learner, in their order."""
