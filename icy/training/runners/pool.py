"""A pool of worker processes on this machine: one worker per core, and one thread per worker.

The models are small. A model cannot use two cores, and threads within an operation of a hundred microseconds cost more
time than they save, so on a CPU each worker trains its own stack. A few workers may share a GPU, so that one of them
launches operations while another computes.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import TracebackType
from typing import Any, Self

from joblib.externals.loky.process_executor import BrokenProcessPool

from icy.core import processes as signals
from icy.core.errors import IcyError
from icy.core.machine import keep_memory
from icy.core.processes import scratch_folder
from icy.core.registry import Additions, registry
from icy.records.record import Record
from icy.records.store import Store
from icy.training.job import Job

from .base import JobReport, RecordCallback, run_job
from .events import EventLog, LogForwarder
from .processes import FreshProcess, WorkerProcess, copies, to_its_end
from .remote import KILLED, RemoteRunner, Submission, packed

POLL_SECONDS = 0.3
_icy_log = logging.getLogger("icy")


class Worker:
    """A worker process, and its current job.

    Each worker is a separate pool. In loky, the loss of a process is the loss of its pool, so this identifies the job
    of a killed process.

    Args:
        spool: the folder of events.
        process: the process of the worker; by default a fresh process.
    """

    def __init__(self, spool: str, process: WorkerProcess | None = None) -> None:
        self._spool = spool
        self._process = _fresh() if process is None else process
        self.work: Submission | None = None
        self.future: Future[list[Record]] | None = None

    def begin(self, work: Submission) -> None:
        """Submit a job to an idle worker."""
        self.work = work
        self.future = self._process.submit(work.rest(), work.ticket, self._spool)

    def end(self) -> Submission:
        """End the current job, and return its submission."""
        assert self.work is not None
        work, self.work, self.future = self.work, None, None
        return work

    def restart(self) -> None:
        """Replace the process by a fresh one."""
        self.kill()
        self._process = _fresh()

    def processes(self) -> list[Any]:
        """Return the process, as a list; the list is empty while the process is starting."""
        return self._process.processes()

    def kill(self) -> None:
        """Kill the process and wait until it has ended, so that it cannot write at the same time as its successor."""
        self._process.kill()


def _fresh() -> FreshProcess:
    level = _icy_log.getEffectiveLevel()
    return FreshProcess(_run_in_worker, _start_fresh_worker, registry.additions(), level)


class PoolRunner(RemoteRunner):
    """Runs jobs on worker processes.

    Args:
        workers: number of workers.
        report: called in this process with the readings of every check of every worker.
        on_record: called in this process with every record when it is on file.
        retries: how often a job is restarted after its worker was killed, before its unfinished replicates are recorded
            as failed. With 0, a killed worker is an error.
        device: where the workers compute.
    """

    def __init__(
        self,
        workers: int,
        report: JobReport | None = None,
        on_record: RecordCallback | None = None,
        retries: int = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__(report, on_record, retries)
        self.workers, self.device = workers, device
        self._pool: list[Worker] = []
        self._ready: list[WorkerProcess] = []  # processes without a worker yet

    def __enter__(self) -> Self:
        self._spool = scratch_folder("pool")
        self._mail = EventLog(self._spool)
        if self.device == "cpu":
            try:
                self._ready = [*copies(self.workers, _run_in_worker, _start_copied_worker)]
            except BaseException:
                self.__exit__(None, None, None)
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._pool:
            worker.kill()
        for process in self._ready:
            process.kill()
        shutil.rmtree(self._spool, ignore_errors=True)

    def _fill(self) -> None:
        """Submit waiting jobs to idle workers, and to new workers up to the maximum number."""
        while self._waiting:
            idle = next((worker for worker in self._pool if worker.work is None), None)
            if idle is None:
                if len(self._pool) >= self.workers:
                    return
                idle = Worker(str(self._spool), self._ready.pop() if self._ready else None)
                self._pool.append(idle)
            idle.begin(self._waiting.popleft())

    def finished(self) -> Iterator[tuple[int, list[Record]]]:
        """Yield tickets and records of jobs as they end; more may be submitted meanwhile.

        Raises:
            IcyError: a worker was killed, and there are no retries.
        """
        while busy := {worker.future: worker for worker in self._pool if worker.future is not None}:
            done, _ = wait(busy, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            self._pass_on_mail()
            for future in done:
                work = self._ended(busy[future], future)
                self._fill()
                if work is not None:
                    yield work.ticket, list(work.records.values())

    def _ended(self, worker: Worker, future: Future[list[Record]]) -> Submission | None:
        """Return the submission that a worker has finished; None if it is queued again."""
        work, error = worker.end(), future.exception()
        if not isinstance(error, BrokenProcessPool):
            for record in future.result():
                work.add_record(record)
            return work
        if not self.retries:
            raise IcyError(f"{KILLED} Run the same command with fewer --workers to resume.") from error
        worker.restart()
        return None if self._retry(work) else work

    def _pass_on_mail(self) -> None:
        at_work = {worker.work.ticket: worker.work for worker in self._pool if worker.work is not None}
        for ticket, kind, content in self._mail.collect():
            work = at_work.get(ticket)
            if kind == "filed" and work is not None:  # None for late events of a lost worker
                record = Store(work.job.folder).get(content)
                if record is not None:
                    self._note(work, record)
            else:
                self._pass_on(work, kind, content)


# -- in a worker -------------------------------------------------------------------------------------------------------


def _start_fresh_worker(additions: Additions, log_level: int) -> None:
    _start_worker()
    _icy_log.setLevel(log_level)
    registry.add_all(additions)


def _start_copied_worker() -> None:
    _icy_log.handlers.clear()  # handlers of the parent, which gets the log as events
    _start_worker()


def _start_worker() -> None:
    keep_memory()
    signals.leave_to_parent()
    import torch

    torch.set_num_threads(1)


def _run_in_worker(job: Job, ticket: int, spool: str) -> list[Record]:
    store = Store(job.folder)
    with EventLog.writing(spool, ticket) as write:

        def put(record: Record, files: Mapping[str, bytes]) -> None:
            with to_its_end:
                store.put(record, files)
            write("filed", record["key"])

        with LogForwarder(write):
            return run_job(job, lambda _, readings: write("read", packed(readings)), put)
