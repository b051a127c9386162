"""Running jobs: in this process, or on a pool with one worker per core and one thread per worker.

The models are small. One of them cannot fill two cores, and threads within an operation of a hundred microseconds
cost more than they bring, so on a CPU each worker trains a stack of its own. loky runs the workers: it needs no
`if __name__ == "__main__"` in a user's script, and it carries models that were defined in a notebook.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from icy.errors import IcyError, StoreError
from icy.registry import Entry, registry
from icy.store import Record, Store

from .job import Job, Reading, Replicate, baselines_of
from .mail import Mailbox, MailedLog
from .protocols import BASELINE

KILLED = "A worker process was killed, perhaps for want of memory; what had finished is kept."
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
log = logging.getLogger(__name__)
Report = Callable[[Job, Sequence[Reading]], None]
Filed = Callable[[Record], None]


def run_job(job: Job, report: Report | None = None, filed: Filed | None = None) -> list[Record]:
    """Train a job's replicates and file each as it ends; an exception is filed for those it stopped.

    A stack that does not fit in memory is trained in halves, one after the other, which does not change its numbers.

    Args:
        job: what to train.
        report: called with the readings of every check.
        filed: called with every record once it is on file.

    Returns:
        The records, failed ones among them.
    """
    store, records = Store(job.folder), []
    remaining = set(job.replicates)

    def put(record: Record) -> None:
        store.put(record)
        records.append(record)
        if filed is not None:
            filed(record)

    try:
        for outcome in job.train(None if report is None else lambda readings: report(job, readings)):
            remaining.discard(outcome.replicate)
            put(job.record(outcome))
    except StoreError:
        raise  # a full disk or a vanished folder: there is nowhere to file anything
    except Exception as error:
        too_large = _out_of_memory(error) and len(remaining) > 1
        for replicate in () if too_large else sorted(remaining):
            put(job.failure(replicate, error))
    else:
        return records
    # Outside of the block above, as the error keeps what filled the memory alive.
    return records + (_in_halves(job, remaining, records, report, filed) if too_large else [])


def _out_of_memory(error: BaseException) -> bool:
    # torch has an error of its own for a GPU's memory, and none for a CPU's
    full = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return full or (isinstance(error, RuntimeError) and "allocate memory" in str(error))


def _in_halves(
    job: Job, remaining: Iterable[Replicate], records: Sequence[Record], report: Report | None, filed: Filed | None
) -> list[Record]:
    """Train in two stacks what did not fit in one; a seed's baseline before, or beside, what is compared with it."""
    ordered = sorted(remaining, key=lambda r: (r.seed, r.grammar != BASELINE, r.grammar))
    middle = (len(ordered) + 1) // 2
    log.warning(
        "%s: %s replicates do not fit in memory; half of them go first.", job.task.entry.qualified, len(ordered)
    )
    done: list[Record] = []
    for half in (ordered[:middle], ordered[middle:]):
        known = {**job.baselines, **baselines_of([*records, *done])}
        done += run_job(replace(job, replicates=tuple(half), baselines=known), report, filed)
    return done


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch's operations within the block, so that sums are added in the same order everywhere."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class LocalRunner:
    """Runs jobs one after another in this process."""

    workers = 1

    def __init__(self, report: Report | None = None, filed: Filed | None = None) -> None:
        self._report, self._filed = report, filed
        self._waiting: list[tuple[int, Job]] = []
        self._next = 0

    def __enter__(self) -> LocalRunner:
        return self

    def __exit__(self, *exception: object) -> None:
        self._waiting.clear()

    def submit(self, job: Job) -> int:
        """Queue a job; returns its ticket."""
        self._waiting.append((self._next, job))
        self._next += 1
        return self._next - 1

    def finished(self) -> Iterator[tuple[int, list[Record]]]:
        """Tickets and records of jobs, as they end; more may be submitted meanwhile."""
        while self._waiting:
            ticket, job = self._waiting.pop(0)
            with one_thread() if job.device == "cpu" else contextlib.nullcontext():
                yield ticket, run_job(job, self._report, self._filed)


class PoolRunner:
    """Runs jobs on worker processes.

    Args:
        workers: how many.
        report: called in this process with the readings of every check of every worker.
        filed: called in this process with every record once it is on file.
        retries: how often a job that was at work when a worker was killed is begun again, before what it lacks is
            filed as failed; 0, a worker that is killed is an error.
    """

    POLL_SECONDS = 0.3

    def __init__(
        self, workers: int, report: Report | None = None, filed: Filed | None = None, retries: int = 0
    ) -> None:
        self.workers, self.retries = workers, retries
        self._report, self._filed = report, filed
        self._futures: dict[Future[list[Record]], tuple[int, Job]] = {}
        self._begun: set[int] = set()  # tickets of jobs that a worker has taken
        self._deaths: dict[int, int] = {}  # of workers, while the job of a ticket was at work
        self._kept: dict[int, list[Record]] = {}  # what such a job had filed before
        self._logged: list[dict[str, Any]] = []
        self._told: dict[int, set[str]] = {}  # keys that the workers have filed, by ticket
        self._next = 0

    def __enter__(self) -> PoolRunner:
        self._spool = tempfile.TemporaryDirectory(prefix="icy-")
        self._mail = Mailbox(Path(self._spool.name))
        self._start()
        return self

    def _start(self) -> None:
        self._executor = ProcessPoolExecutor(
            max_workers=self.workers,
            initializer=_start_worker,
            initargs=(list(registry.plugin_files), registry.defined_by_user(), _icy_log.getEffectiveLevel()),
            env=dict.fromkeys(THREAD_VARIABLES, "1"),
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown(wait=True, kill_workers=kind is not None)
        self._spool.cleanup()

    def submit(self, job: Job) -> int:
        """Queue a job; returns its ticket."""
        ticket, self._next = self._next, self._next + 1
        self._begin(ticket, job)
        return ticket

    def _begin(self, ticket: int, job: Job) -> None:
        with _without_interrupts():
            future = self._executor.submit(_run_in_worker, job, ticket, self._spool.name)
        self._futures[future] = (ticket, job)

    def finished(self) -> Iterator[tuple[int, list[Record]]]:
        """Tickets and records of jobs, as they end; more may be submitted meanwhile.

        Raises:
            IcyError: a worker was killed.
        """
        while self._futures:
            done, _ = wait(self._futures, timeout=self.POLL_SECONDS, return_when=FIRST_COMPLETED)
            self._pass_on_mail()
            for future in done:
                ticket, _ = self._futures[future]
                try:
                    records = future.result()
                except TerminatedWorkerError as error:
                    if not self.retries:
                        raise IcyError(f"{KILLED} Run the same command to go on, with fewer --workers.") from error
                    yield from self._again(error)
                    break  # the futures of all jobs are void
                del self._futures[future]
                yield ticket, [*self._kept.pop(ticket, []), *records]

    def _again(self, error: BaseException) -> Iterator[tuple[int, list[Record]]]:
        """Begin again what was at work or waiting when a worker was killed; what is killed time and again fails."""
        lost, self._futures = list(self._futures.values()), {}
        self._executor.shutdown(wait=True, kill_workers=True)
        self._pass_on_mail(lost)
        self._start()
        for ticket, job in lost:
            store = Store(job.folder)
            found = {r: store.get(job.key(r)) for r in job.replicates}
            # Of a job that trains again what is on file, what is there may be from before.
            filed = [record for record in found.values() if record is not None and self._fresh(ticket, record)]
            keys = {record["key"] for record in filed}
            left = tuple(r for r in job.replicates if job.key(r) not in keys)
            self._kept.setdefault(ticket, []).extend(filed)
            if ticket in self._begun:
                self._deaths[ticket] = self._deaths.get(ticket, 0) + 1
            self._begun.discard(ticket)
            if not left:
                yield ticket, self._kept.pop(ticket)
            elif self._deaths.get(ticket, 0) > self.retries:
                yield ticket, [*self._kept.pop(ticket), *self._failed(job, left, error)]
            else:
                log.warning("A worker was killed; %s of %s begins again.", len(left), job.task.entry.qualified)
                known = {**job.baselines, **baselines_of(filed)}
                self._begin(ticket, replace(job, replicates=left, baselines=known))

    def _fresh(self, ticket: int, record: Record) -> bool:
        return record["key"] in self._told.get(ticket, ())

    def _failed(self, job: Job, replicates: Sequence[Replicate], error: BaseException) -> list[Record]:
        """Records of replicates whose workers were killed too often."""
        store, records = Store(job.folder), []
        for replicate in replicates:
            records.append(job.failure(replicate, IcyError(KILLED)))
            store.put(records[-1])
            if self._filed is not None:
                self._filed(records[-1])
        return records

    def _pass_on_mail(self, lost: Sequence[tuple[int, Job]] = ()) -> None:
        jobs = dict([*self._futures.values(), *lost])
        for ticket, kind, content in self._mail.collect():
            if kind == "log" and content not in self._logged:  # once, however many stacks say it
                self._logged.append(content)
                logging.getLogger(content["name"]).handle(logging.makeLogRecord(content))
            elif kind == "begun":
                self._begun.add(ticket)
            elif kind == "filed":
                self._told.setdefault(ticket, set()).add(content)
                if self._filed is None:
                    continue
                record = Store(jobs[ticket].folder).get(content)
                if record is not None:
                    self._filed(record)
            elif kind == "read" and self._report is not None:
                self._report(
                    jobs[ticket], [Reading(Replicate(g, seed), n, a, phase) for g, seed, n, a, phase in content]
                )


_icy_log = logging.getLogger("icy")


def _start_worker(plugin_files: list[str], user_entries: list[Entry], log_level: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    _icy_log.setLevel(log_level)
    import torch

    torch.set_num_threads(1)
    for file in plugin_files:
        registry.load_file(file)
    for entry in user_entries:
        registry.add(entry)


def _end_with_parent(parent: int) -> None:
    """End this worker once its parent is gone: killed, it leaves no one to hand results to, or to stop the worker."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _run_in_worker(job: Job, ticket: int, spool: str) -> list[Record]:
    with Mailbox.path(spool, ticket).open("a", buffering=1) as file:

        def write(kind: str, content: Any) -> None:
            with contextlib.suppress(OSError):  # a display is no reason to lose a run
                file.write(json.dumps([kind, content]) + "\n")

        def report(_: Job, readings: Sequence[Reading]) -> None:
            write("read", [[r.replicate.grammar, r.replicate.seed, r.steps, r.accuracy, r.phase] for r in readings])

        handler = MailedLog(write)
        _icy_log.addHandler(handler)
        _icy_log.propagate = False
        file.write("\n")  # after a line that a killed worker may have left unfinished
        write("begun", None)
        try:
            return run_job(job, report, lambda record: write("filed", record["key"]))
        finally:
            _icy_log.removeHandler(handler)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start workers with Ctrl-C ignored, which they inherit.

    Between its start and its own setting a worker would otherwise print a stack trace at Ctrl-C. One that comes in
    this moment, some milliseconds, is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Any = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def deal(replicates: Sequence[Replicate], workers: int, most: int) -> list[tuple[Replicate, ...]]:
    """Split replicates over workers, in stacks of at most `most`.

    They are dealt like cards, ordered by grammar, so that every stack gets its share of the grammars that train long.
    """
    if not replicates:
        return []
    stacks = min(len(replicates), workers * -(-len(replicates) // (workers * most)))
    ordered = sorted(replicates)
    return [tuple(ordered[i::stacks]) for i in range(stacks)]


Runner = LocalRunner | PoolRunner
