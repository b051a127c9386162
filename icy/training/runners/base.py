"""Runners train jobs and record the results: the interface, common functions, and the in-process runner."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Protocol, Self

from icy.core.errors import IcyError, StoreError
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

    try:
        for outcome in job.train(None if report is None else report_readings):
            if outcome.replicate not in remaining:
                raise IcyError(f"{job.name} gave an unexpected result of {outcome.replicate}.")
            remaining.discard(outcome.replicate)
            outcome = replace(outcome, files={**job.own_files(outcome.replicate), **outcome.files})
            yield outcome.replicate, job.record(outcome), outcome.files
        if remaining:
            raise IcyError(f"{job.name} ended without a result of this replicate.")
    except StoreError:
        raise  # a full disk or a missing folder: other records cannot be stored either
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
