"""Jobs that others do: what has come of each, and what is left of it when the worker at it is lost."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from icy.core.errors import IcyError
from icy.records.record import Record, baselines_of
from icy.records.store import Store
from icy.training.job import Job, Reading, Replicate

from .base import Filed, Report
from .events import pass_on_log

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


class Workplace(ABC):
    """The common part of runners whose jobs are done elsewhere: what waits, what is filed, what begins again.

    Args:
        report: called in this process with the readings of every check.
        filed: called in this process with every record once it is on file.
        retries: how often a job is begun again whose worker was lost, before what it lacks is filed as failed.
    """

    def __init__(self, report: Report | None, filed: Filed | None, retries: int) -> None:
        self._report, self._filed, self.retries = report, filed, retries
        self._waiting: deque[Work] = deque()
        self._submitted = 0
        self._said: set[str] = set()

    @abstractmethod
    def _fill(self) -> None:
        """Hand out what waits, as far as there is someone to do it."""

    def submit(self, job: Job) -> int:
        """Queue a job; returns its ticket."""
        work = Work(self._submitted, job)
        self._submitted += 1
        self._waiting.append(work)
        self._fill()
        return work.ticket

    def _note(self, work: Work, record: Record) -> None:
        """Take note of a record that is on file."""
        work.filed(record)
        if self._filed is not None:
            self._filed(record)

    def _put(self, work: Work, record: Record) -> None:
        """File a record."""
        Store(work.job.folder).put(record)
        self._note(work, record)

    def _begins_again(self, work: Work) -> bool:
        """Whether a job whose worker is lost waits for another; if not, what it lacks is filed as failed."""
        if work.again(self.retries):
            self._waiting.appendleft(work)
            return True
        for record in work.given_up():
            self._put(work, record)
        return False

    def _pass_on(self, work: Work | None, kind: str, content: Any) -> None:
        """Pass on a line of log, or readings of work that is still known."""
        if kind == "log":
            pass_on_log(content, self._said)
        elif kind == "read" and work is not None and self._report is not None:
            self._report(work.job, unpacked(content))


def packed(readings: Sequence[Reading]) -> list[list[Any]]:
    """Readings as JSON takes them."""
    return [[r.replicate.grammar, r.replicate.seed, r.steps, r.accuracy, r.phase] for r in readings]


def unpacked(content: Sequence[Sequence[Any]]) -> list[Reading]:
    """Readings as `packed` made them."""
    return [Reading(Replicate(grammar, seed), *rest) for grammar, seed, *rest in content]
