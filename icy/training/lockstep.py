"""Lockstep: stacks of replicates with equal numbers of updates, and with checkpoints between updates."""

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

DRAWN_AT_ONCE = 64  # most batches in memory
LONGEST = 5.0  # most seconds of updates in a call, so that checkpoints are not delayed
J = TypeVar("J", bound=Job)


def in_groups(job: J, train: Callable[[J, Checkpoints], Iterator[Outcome]]) -> Iterator[Outcome]:
    """Train a job's replicates as one stack, or as several stacks if their checkpoints are after different updates.

    Args:
        job: the job to train.
        train: trains a part of the job, with the known baselines. All its replicates have made equally many updates.
    """
    if job.checkpoints:
        sweep_checkpoints(job.folder)
    checkpoints, baselines = Checkpoints(job), dict(job.baselines)
    for group in checkpoints.groups():
        for outcome in train(replace(job, replicates=group, baselines=baselines), checkpoints):
            yield outcome
            checkpoints.forget(outcome.replicate)  # now the caller has put its record on file
            if job.is_baseline(outcome.replicate):
                baselines = {**job.baselines_in([job.record(outcome)]), **baselines}


class Lockstep(ABC):
    """A stack of replicates that train in lockstep, from the beginning or from a checkpoint.

    Args:
        checkpoints: the checkpoints to save and to resume from; by default none.

    Attributes:
        checkpoints: the checkpoints.
        learner: the learner of the replicates.
        updates: number of updates so far.
    """

    learner: Learner

    def __init__(self, checkpoints: Checkpoints | None = None) -> None:
        self.checkpoints = Checkpoints() if checkpoints is None else checkpoints
        self.updates = 0
        self._pace = 0.0  # seconds of an update, measured at the last updates

    def advance(self, until: int) -> None:
        """Make updates up to a total number, with checkpoints in between."""
        while self.updates < until:
            began, before = time.perf_counter(), self.updates
            with self.timed():
                self._update(min(self._few(), until - before))
            self._pace = (time.perf_counter() - began) / (self.updates - before)
            if self.updates < until:
                self.save_if_due()

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time of the block to the replicates, in equal shares."""
        began = time.perf_counter()
        yield
        self._share(time.perf_counter() - began)

    def _few(self) -> int:
        """Return the number of updates to make in a call."""
        return DRAWN_AT_ONCE if self._pace * DRAWN_AT_ONCE <= LONGEST else max(1, int(LONGEST / self._pace))

    def save_if_due(self) -> None:
        """Save a checkpoint of every replicate if checkpoints are due."""
        if self.checkpoints.due:
            self.save()

    def save(self) -> None:
        """Save a checkpoint of every replicate."""
        self.checkpoints.save(self.learner, self.updates, self._own())

    @abstractmethod
    def _update(self, count: int) -> None:
        """Make and count `count` updates."""

    @abstractmethod
    def _share(self, seconds: float) -> None:
        """Add a time to the replicates, in equal shares."""

    @abstractmethod
    def _own(self) -> Mapping[Replicate, State]:
        """Return the states of the replicates in addition to the learner's state, in the order of the stack."""
