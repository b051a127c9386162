"""Jobs that others do: what has come of each, and what is left of it when the worker at it is lost."""

from __future__ import annotations

import logging
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
        deaths: how many workers were lost while they were at it.
        records: what has been filed since it was submitted, by key.
    """

    ticket: int
    job: Job
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

    def again(self, retries: int) -> bool:
        """Take note that the worker at it is lost; whether another is to go on with it."""
        self.deaths += 1
        if not self.left or self.deaths > retries:
            return False
        name = self.job.task.entry.qualified
        log.warning("A worker or node was lost; %s replicates of %s begin again.", len(self.left), name)
        return True

    def given_up(self) -> list[Record]:
        """Records of failure of what is left."""
        return [self.job.failure(replicate, IcyError(KILLED)) for replicate in self.left]
