"""Submissions to other processes: their records so far, and the unfinished replicates after a worker is lost."""

from __future__ import annotations

import contextlib
import json
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

from icy.core.errors import SurroundingsError
from icy.core.types import Fields
from icy.records.record import Record
from icy.records.store import Store
from icy.training.job import Job, Reading, Replicate

from .base import JobReport, RecordCallback

# -- events of worker processes (readings, finished records, log lines), sent to their parent through files ------------


_icy_log = logging.getLogger("icy")


class EventLog:
    """Events from workers to this process: the worker of a job appends to a file, and this process reads it.

    A line is a pair: "read" and readings, "filed" and the key of a record, or "log" and a log record.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    @staticmethod
    def path(folder: str | Path, ticket: int) -> Path:
        """Return the path of a ticket's file."""
        return Path(folder) / f"{ticket}.jsonl"

    @staticmethod
    @contextlib.contextmanager
    def writing(folder: str | Path, ticket: int) -> Iterator[Callable[[str, Any], None]]:
        """Open the file of a ticket for its worker; yield a function that appends a line of kind and content.

        Lines that cannot be written, for example to a full disk, are left out, as they only affect the display.
        """
        with contextlib.ExitStack() as stack:
            file: BinaryIO | None = None
            with contextlib.suppress(OSError):
                # Without a buffer: with a full disk, closing the file would raise for the rest of the buffer.
                file = stack.enter_context(EventLog.path(folder, ticket).open("ab", buffering=0))

            def append(line: str) -> None:
                if file is not None:
                    with contextlib.suppress(OSError):
                        file.write(f"{line}\n".encode())

            append("")  # ends a line that a killed worker may have left incomplete
            yield lambda kind, content: append(json.dumps([kind, content]))

    def collect(self) -> Iterator[tuple[int, str, Any]]:
        """Yield ticket, kind and content of every line since the last call."""
        for path in sorted(self._folder.glob("*.jsonl"), key=lambda p: int(p.stem)):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole, newline, _ = file.read().rpartition(b"\n")  # the last line may be half written
            self._read[path] = self._read.get(path, 0) + len(whole) + len(newline)
            for line in whole.splitlines():
                with contextlib.suppress(ValueError):  # an incomplete line of a killed worker
                    kind, content = json.loads(line)
                    yield int(path.stem), kind, content


class LogForwarder(logging.Handler):
    """Forwards a worker's log to its parent within a block."""

    def __init__(self, write: Callable[[str, Any], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        level, text = record.levelno, record.getMessage()
        self._write("log", {"name": record.name, "levelno": level, "levelname": record.levelname, "msg": text})

    def __enter__(self) -> Self:
        _icy_log.addHandler(self)
        _icy_log.propagate = False
        return self

    def __exit__(self, *exception: object) -> None:
        _icy_log.removeHandler(self)


def forward_log(content: Fields, logged: set[str]) -> None:
    """Log a worker's line in this process; if several stacks log the same line, only once.

    Args:
        content: the line, as from LogForwarder.
        logged: lines that were logged before; updated in place.
    """
    text = f"{content['name']} {content['msg']}"
    if text not in logged:
        logged.add(text)
        logging.getLogger(content["name"]).handle(logging.makeLogRecord(dict(content)))


KILLED = "A worker process was killed, perhaps for lack of memory. Finished replicates are kept."
log = logging.getLogger(__name__)


@dataclass
class Submission:
    """A job that is submitted to a worker.

    Attributes:
        ticket: number of the submission.
        job: the whole job.
        deaths: number of workers that were lost during the job.
        records: records since the submission, by key.
        before: finishing times of records on file at the submission, by key.
    """

    ticket: int
    job: Job
    deaths: int = 0
    records: dict[str, Record] = field(default_factory=dict)
    before: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.before = {record["key"]: record["finished"] for record in self._on_file()}

    def add_record(self, record: Record) -> None:
        """Add a record."""
        self.records[record["key"]] = record

    @property
    def unfinished(self) -> tuple[Replicate, ...]:
        """Replicates without a record since the submission; older records are to be replaced."""
        return tuple(r for r in self.job.replicates if self.job.key(r) not in self.records)

    def unreported(self) -> list[Record]:
        """Return records that a lost worker saved but did not report."""
        return [record for record in self._on_file() if record["finished"] != self.before.get(record["key"])]

    def _on_file(self) -> list[Record]:
        store = Store(self.job.folder, warn=False)  # the run has warned already
        records = [store.get(self.job.key(replicate)) for replicate in self.unfinished]
        return [record for record in records if record is not None]

    def rest(self) -> Job:
        """Return a job of only the unfinished replicates."""
        known = {**self.job.baselines, **self.job.baselines_in(self.records.values())}
        return replace(self.job, replicates=self.unfinished, baselines=known)

    def may_retry(self, retries: int) -> bool:
        """Count a lost worker; return whether another worker should continue the job."""
        self.deaths += 1
        if not self.unfinished or self.deaths > retries:
            return False
        log.warning(
            "A worker or node was lost; %s replicates of %s are resumed or restarted.",
            len(self.unfinished),
            self.job.name,
        )
        return True

    def failures(self) -> list[Record]:
        """Return records of failure of the unfinished replicates."""
        return [self.job.failure(replicate, SurroundingsError(KILLED)) for replicate in self.unfinished]


class RemoteRunner(ABC):
    """Base of the runners that train in other processes: the queue, the records, and retries.

    Args:
        report: called in this process with the readings of every evaluation.
        on_record: called in this process with every record when it is stored.
        retries: how often a job is restarted after a lost worker, before its unfinished replicates are recorded as
            failed.
    """

    def __init__(self, report: JobReport | None, on_record: RecordCallback | None, retries: int) -> None:
        self._report, self._on_record, self.retries = report, on_record, retries
        self._waiting: deque[Submission] = deque()
        self._submitted = 0
        self._logged: set[str] = set()

    @abstractmethod
    def _fill(self) -> None:
        """Submit queued jobs to free workers."""

    def submit(self, job: Job) -> int:
        """Queue a job; return its ticket."""
        work = Submission(self._submitted, job)
        self._submitted += 1
        self._waiting.append(work)
        self._fill()
        return work.ticket

    def _note(self, work: Submission, record: Record) -> None:
        """Add a stored record to its submission, and pass the record to `on_record`."""
        work.add_record(record)
        if self._on_record is not None:
            self._on_record(record)

    def _put(self, work: Submission, record: Record, files: Mapping[str, bytes] | None = None) -> None:
        """Store a record and its files."""
        Store(work.job.folder).put(record, files or {})
        self._note(work, record)

    def _retry(self, work: Submission) -> bool:
        """Queue a job again after its worker is lost, or record failures; return whether it is queued."""
        for record in work.unreported():
            self._note(work, record)
        if work.may_retry(self.retries):
            self._waiting.appendleft(work)
            return True
        for record in work.failures():
            self._put(work, record)
        return False

    def _pass_on(self, work: Submission | None, kind: str, content: Any) -> None:
        """Forward a log line, or the readings of an active submission."""
        if kind == "log":
            forward_log(content, self._logged)
        elif kind == "read" and work is not None and self._report is not None:
            self._report(work.job, unpacked(content))


def packed(readings: Sequence[Reading]) -> list[list[Any]]:
    """Return readings in a form that JSON supports."""
    return [[r.replicate.condition, r.replicate.seed, r.steps, r.accuracy, r.phase] for r in readings]


def unpacked(content: Sequence[Sequence[Any]]) -> list[Reading]:
    """Return the readings from the output of `packed`."""
    return [Reading(Replicate(grammar, seed), *rest) for grammar, seed, *rest in content]
