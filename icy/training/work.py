"""Jobs that others do: what has come of each, and what is left of it when the worker at it is lost."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from icy.errors import IcyError
from icy.store import Record

from .job import Job, Replicate, baselines_of

KILLED = "A worker process was killed, perhaps for want of memory; what had finished is kept."
log = logging.getLogger(__name__)


@dataclass
class Work:
    """A job that was handed to a worker.

    Attributes:
        ticket: its number.
        job: all of it.
        begun: whether a worker is at it.
        deaths: how many workers were lost while they were at it.
        records: what has been filed since it was submitted, by key.
    """

    ticket: int
    job: Job
    begun: bool = False
    deaths: int = 0
    records: dict[str, Record] = field(default_factory=dict)

    def filed(self, record: Record) -> None:
        """Take note of a record."""
        self.records[record["key"]] = record

    @property
    def left(self) -> tuple[Replicate, ...]:
        """What has not been filed. What is on file from before does not count: the job may be to train it again."""
        return tuple(r for r in self.job.replicates if self.job.key(r) not in self.records)

    def rest(self) -> Job:
        """The job of what is left."""
        known = {**self.job.baselines, **baselines_of(self.records.values())}
        return replace(self.job, replicates=self.left, baselines=known)

    def died(self) -> None:
        """Take note that the worker is lost."""
        self.deaths += self.begun
        self.begun = False
        name, left = self.job.task.entry.qualified, len(self.left)
        log.info("A worker was lost; %s replicates of %s are not done.", left, name)

    def given_up(self) -> list[Record]:
        """Records of failure of what is left."""
        return [self.job.failure(replicate, IcyError(KILLED)) for replicate in self.left]


def count_deaths(lost: Sequence[Work]) -> None:
    """Take note that workers are lost that were at some of this work.

    Where no one had begun, workers die before they can; then all of it counts as begun, or it would go on for ever.
    """
    if not any(work.begun for work in lost):
        for work in lost:
            work.begun = True
    for work in lost:
        work.died()
