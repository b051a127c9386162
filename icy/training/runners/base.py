"""Runners train jobs and record the results: the interface, common functions, and the in-process runner."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self

from icy.core.errors import IcyError, StoreError, SurroundingsError
from icy.core.machine import out_of_memory, release
from icy.core.processes import hides_interrupt
from icy.core.progress import silence
from icy.core.surroundings import require_training_failed, standard_state
from icy.records.record import Record
from icy.records.store import Store
from icy.training.job import Job, Reading, Replicate

log = logging.getLogger(__name__)
JobReport = Callable[[Job, Sequence[Reading]], None]
RecordCallback = Callable[[Record], None]
Recorder = Callable[[Record, Mapping[str, bytes]], None]  # stores a record and its files


class Runner(Protocol):
    """Runs jobs in this process, on a pool of local processes, or on a cluster.

    A runner is a context manager: it acquires its resources on entry and releases them on exit. An error within the
    block ends the running jobs. All runners give the same records under the same keys.

    Attributes:
        workers: number of jobs that may run at once.
        device: where jobs compute: "cpu", "cuda", ...
    """

    workers: int
    device: str

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def submit(self, job: Job) -> int:
        """Queue a job; return its ticket."""

    def finished(self) -> Iterator[tuple[int, list[Record]]]:
        """Yield tickets and records of jobs as they end; more may be submitted meanwhile."""


def run_job(job: Job, report: JobReport | None = None, put: Recorder | None = None) -> list[Record]:
    """Train a job's replicates; record each replicate when it ends. After an exception, record the others as failed.

    A stack that does not fit in memory is trained in two halves, one after the other, with the same results.

    Args:
        job: the job to train.
        report: called with the readings of every evaluation.
        put: stores a record and its files; by default in the job's folder.

    Returns:
        The records, including failures.
    """
    put = put or Store(job.folder).put
    records: list[Record] = []
    remaining = set(job.replicates)
    too_large = False

    def file(record: Record, files: Mapping[str, bytes]) -> None:
        put(record, files)
        records.append(record)

    result: Result | Exception | None = None
    with standard_state(), silence():  # a plug-in may have changed the state when it was loaded
        for result in _results(job, report):
            if isinstance(result, Exception):
                too_large = out_of_memory(result) and len(remaining) > 1
                for replicate in () if too_large else sorted(remaining):
                    file(job.failure(replicate, result), {})
                break
            replicate, record, files = result
            file(record, files)
            remaining.discard(replicate)
        result = None  # an exception keeps references to tensors that fill the memory
    if too_large or job.device != "cpu":
        release(job.device)
    return records + (_in_halves(job, remaining, records, report, put) if too_large else [])


Result = tuple[Replicate, Record, Mapping[str, bytes]]


def _results(job: Job, report: JobReport | None) -> Iterator[Result | Exception]:
    """Train a job and yield each replicate with its record and files; if training fails, yield the exception last.

    Exceptions with other causes are raised: storage, the callback, the environment, and Ctrl-C.
    """
    remaining = set(job.replicates)
    of_callback: list[Exception] = []

    def report_readings(readings: Sequence[Reading]) -> None:
        assert report is not None
        try:
            report(job, readings)
        except Exception as error:
            of_callback.append(error)
            raise

    began = time.perf_counter()
    try:
        for outcome in job.train(None if report is None else report_readings):
            if outcome.replicate not in remaining:
                raise IcyError(f"{job.name} gave an unexpected result of {outcome.replicate}.")
            remaining.discard(outcome.replicate)
            now = time.perf_counter()
            seconds, began = outcome.seconds or now - began, now  # by default since the last outcome
            files = {**job.own_files(outcome.replicate), **outcome.files}
            outcome = replace(outcome, files=files, seconds=seconds)
            yield outcome.replicate, job.record(outcome), outcome.files
        if remaining:
            raise IcyError(f"{job.name} ended without a result of this replicate.")
    except (StoreError, SurroundingsError):
        raise  # a full disk or a server that fails: the other replicates cannot be trained or stored either
    except Exception as error:
        if error in of_callback:
            raise
        if hides_interrupt(error):
            raise KeyboardInterrupt from error  # not a failure of the model, so its training can be resumed
        require_training_failed(error)
        yield error


def _in_halves(
    job: Job, remaining: Iterable[Replicate], records: Sequence[Record], report: JobReport | None, put: Recorder
) -> list[Record]:
    """Train a stack that does not fit in memory as two stacks: baselines with, or before, other runs of their seed."""
    ordered = sorted(remaining, key=lambda r: (r.seed, not job.is_baseline(r), r.condition))
    middle = (len(ordered) + 1) // 2
    log.warning("%s: %s replicates do not fit in memory; they are trained in two halves.", job.name, len(ordered))
    done: list[Record] = []
    for half in (ordered[:middle], ordered[middle:]):
        known = {**job.baselines, **job.baselines_in([*records, *done])}
        done += run_job(replace(job, replicates=tuple(half), baselines=known), report, put)
    return done


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread for PyTorch's operations within the block, so that the order of sums is always the same."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class LocalRunner:
    """Runs jobs one after another in this process.

    Args:
        report: called with the readings of every evaluation.
        on_record: called with every record when it is stored.
        device: where to compute.
    """

    workers = 1

    def __init__(
        self, report: JobReport | None = None, on_record: RecordCallback | None = None, device: str = "cpu"
    ) -> None:
        self._report, self._on_record, self.device = report, on_record, device
        self._waiting: list[tuple[int, Job]] = []
        self._next = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._waiting.clear()

    def submit(self, job: Job) -> int:
        """Queue a job; return its ticket."""
        self._waiting.append((self._next, job))
        self._next += 1
        return self._next - 1

    def finished(self) -> Iterator[tuple[int, list[Record]]]:
        """Yield tickets and records of jobs as they end; more may be submitted meanwhile."""
        while self._waiting:
            ticket, job = self._waiting.pop(0)
            with one_thread() if job.device == "cpu" else contextlib.nullcontext():
                yield ticket, run_job(job, self._report, self._putting(Store(job.folder)))

    def _putting(self, store: Store) -> Recorder:
        def put(record: Record, files: Mapping[str, bytes]) -> None:
            store.put(record, files)
            if self._on_record is not None:
                self._on_record(record)

        return put


def deal(replicates: Sequence[Replicate], workers: int, most: int) -> list[tuple[Replicate, ...]]:
    """Split replicates over workers, in stacks of at most `most`.

    Replicates are dealt in turn, ordered by grammar, so that grammars with long training are spread over all stacks.
    """
    if not replicates:
        return []
    stacks = min(len(replicates), workers * -(-len(replicates) // (workers * most)))
    ordered = sorted(replicates)
    return [tuple(ordered[i::stacks]) for i in range(stacks)]


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


KILLED = "A worker process was killed, perhaps for lack of memory. Finished replicates are kept."


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
            text = f"{content['name']} {content['msg']}"
            if text not in self._logged:  # several stacks may log the same line
                self._logged.add(text)
                logging.getLogger(content["name"]).handle(logging.makeLogRecord(dict(content)))
        elif kind == "read" and work is not None and self._report is not None:
            self._report(work.job, unpacked(content))


def packed(readings: Sequence[Reading]) -> list[list[Any]]:
    """Return readings in a form that JSON supports."""
    return [[r.replicate.condition, r.replicate.seed, r.steps, r.accuracy, r.phase] for r in readings]


def unpacked(content: Sequence[Sequence[Any]]) -> list[Reading]:
    """Return the readings from the output of `packed`."""
    return [Reading(Replicate(grammar, seed), *rest) for grammar, seed, *rest in content]
