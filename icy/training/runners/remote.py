"""Submissions to other processes: their records so far, and what is left of a job whose worker is lost."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from icy.core.errors import SurroundingsError
from icy.records.record import Record
from icy.records.store import Store
from icy.training.job import Job, Reading, Replicate

from .base import JobReport, RecordCallback
from .events import forward_log

KILLED = "A worker process was killed, perhaps for want of memory; what had finished is kept."
log = logging.getLogger(__name__)


@dataclass
class Submission:
    """A job that was handed to a worker.

    Attributes:
        ticket: its number.
        job: all of it.
        deaths: how many workers were lost while they trained it.
        records: records since it was submitted, by key.
        before: when what was on file then had been finished, by key.
    """

    ticket: int
    job: Job
    deaths: int = 0
    records: dict[str, Record] = field(default_factory=dict)
    before: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.before = {record["key"]: record["finished"] for record in self._on_file()}

    def filed(self, record: Record) -> None:
        """Remember a record."""
        self.records[record["key"]] = record

    @property
    def left(self) -> tuple[Replicate, ...]:
        """Replicates without a record. Records from before do not count: the job may be to train them again."""
        return tuple(r for r in self.job.replicates if self.job.key(r) not in self.records)

    def unheard(self) -> list[Record]:
        """Return records of what is left that a lost worker stored, and did not come to tell."""
        return [record for record in self._on_file() if record["finished"] != self.before.get(record["key"])]

    def _on_file(self) -> list[Record]:
        store = Store(self.job.folder, warn=False)  # the run has told
        found = [store.get(self.job.key(replicate)) for replicate in self.left]
        return [record for record in found if record is not None]

    def rest(self) -> Job:
        """Return the job of what is left."""
        known = {**self.job.baselines, **self.job.baselines_in(self.records.values())}
        return replace(self.job, replicates=self.left, baselines=known)

    def again(self, retries: int) -> bool:
        """Count a lost worker; return whether another is to go on with the job."""
        self.deaths += 1
        if not self.left or self.deaths > retries:
            return False
        log.warning(
            "A worker or node was lost; %s replicates of %s go on or begin again.", len(self.left), self.job.name
        )
        return True

    def given_up(self) -> list[Record]:
        """Return records of failure of what is left."""
        return [self.job.failure(replicate, SurroundingsError(KILLED)) for replicate in self.left]


class RemoteRunner(ABC):
    """Base of the runners that train in other processes: the queue, the records, and retries.

    Args:
        report: called in this process with the readings of every evaluation.
        filed: called in this process with every record once it is stored.
        retries: how often a job whose worker was lost is begun again, before what it lacks is recorded as failed.
    """

    def __init__(self, report: JobReport | None, filed: RecordCallback | None, retries: int) -> None:
        self._report, self._filed, self.retries = report, filed, retries
        self._waiting: deque[Submission] = deque()
        self._submitted = 0
        self._said: set[str] = set()

    @abstractmethod
    def _fill(self) -> None:
        """Hand out queued jobs to free workers."""

    def submit(self, job: Job) -> int:
        """Queue a job; return its ticket."""
        work = Submission(self._submitted, job)
        self._submitted += 1
        self._waiting.append(work)
        self._fill()
        return work.ticket

    def _note(self, work: Submission, record: Record) -> None:
        """Remember a record that is stored, and pass it on."""
        work.filed(record)
        if self._filed is not None:
            self._filed(record)

    def _put(self, work: Submission, record: Record, files: Mapping[str, bytes] | None = None) -> None:
        """Store a record and its files."""
        Store(work.job.folder).put(record, files or {})
        self._note(work, record)

    def _begins_again(self, work: Submission) -> bool:
        """Queue a job whose worker is lost again and return True; or record what it lacks as failed."""
        for record in work.unheard():
            self._note(work, record)
        if work.again(self.retries):
            self._waiting.appendleft(work)
            return True
        for record in work.given_up():
            self._put(work, record)
        return False

    def _pass_on(self, work: Submission | None, kind: str, content: Any) -> None:
        """Pass on a log line, or the readings of a submission that is still known."""
        if kind == "log":
            forward_log(content, self._said)
        elif kind == "read" and work is not None and self._report is not None:
            self._report(work.job, unpacked(content))


def packed(readings: Sequence[Reading]) -> list[list[Any]]:
    """Return readings in a form that JSON takes."""
    return [[r.replicate.condition, r.replicate.seed, r.steps, r.accuracy, r.phase] for r in readings]


def unpacked(content: Sequence[Sequence[Any]]) -> list[Reading]:
    """Return the readings that `packed` packed."""
    return [Reading(Replicate(grammar, seed), *rest) for grammar, seed, *rest in content]
