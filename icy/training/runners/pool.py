"""A pool of worker processes on this machine: one worker per core, and one thread per worker.

The models are small. One of them cannot fill two cores, and threads within an operation of a hundred microseconds
cost more than they bring, so on a CPU each worker trains a stack of its own. On a GPU a few workers may share it, so
that one launches its work while another computes. loky runs the workers: it needs no `if __name__ == "__main__"` in a
user's script, and it carries models that were defined in a notebook.
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
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool

from icy.core.errors import IcyError
from icy.core.registry import Additions, registry
from icy.records.record import Record
from icy.records.store import Store
from icy.training.job import Job

from .base import JobReport, RecordCallback, run_job
from .events import EventLog, LogForwarder
from .remote import KILLED, RemoteRunner, Submission, packed

POLL_SECONDS = 0.3
PATIENCE_SECONDS = 5.0  # for a process that is being killed
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has only the latter
_icy_log = logging.getLogger("icy")
_filing = threading.Lock()  # held by a worker while it writes a record


class Worker:
    """A worker process, and the job that it is at.

    Each is a pool of its own: loky takes the loss of one process for the loss of its pool, and so it is known whose
    job was at work when a process was killed.

    Args:
        spool: the folder of the mail.
    """

    def __init__(self, spool: str) -> None:
        self._spool = spool
        self.work: Submission | None = None
        self.future: Future[list[Record]] | None = None
        self._start()

    def _start(self) -> None:
        self._executor = ProcessPoolExecutor(
            max_workers=1,
            initializer=_start_worker,
            initargs=(registry.additions(), _icy_log.getEffectiveLevel()),
            env=dict.fromkeys(THREAD_VARIABLES, "1"),
        )

    def begin(self, work: Submission) -> None:
        """Hand it a job; it must have none."""
        self.work = work
        try:
            with _without_interrupts():
                self.future = self._executor.submit(_run_in_worker, work.rest(), work.ticket, self._spool)
        except BrokenProcessPool as error:  # the process was killed while it had nothing to do
            self.future = Future()
            self.future.set_exception(error)

    def end(self) -> Submission:
        """Take the job from it."""
        assert self.work is not None
        work, self.work, self.future = self.work, None, None
        return work

    def restart(self) -> None:
        """Have another process in its place."""
        self.kill()
        self._start()

    def processes(self) -> list[Any]:
        """The process, or none while it is being started."""
        return list((self._executor._processes or {}).values())

    def kill(self) -> None:
        """End the process at once, and wait until it is gone, so that it writes nothing beside another.

        Not asked to end, as loky would: a process that was killed as it held a lock of the executor's queues leaves
        no one to hear of it. Nor left to loky's own way to kill, which needs another package or program. In a thread,
        since loky may wait for ever.
        """
        processes = self.processes()
        for process in processes:
            with contextlib.suppress(ProcessLookupError):  # it is gone already
                os.kill(process.pid, KILL)
        closing = threading.Thread(target=self._executor.shutdown, kwargs={"kill_workers": True}, daemon=True)
        closing.start()
        closing.join(PATIENCE_SECONDS)
        for process in processes:
            process.join(PATIENCE_SECONDS)


class PoolRunner(RemoteRunner):
    """Runs jobs on worker processes.

    Args:
        workers: how many.
        report: called in this process with the readings of every check of every worker.
        filed: called in this process with every record once it is on file.
        retries: how often a job whose worker was killed is begun again, before what it lacks is filed as failed; 0, a
            worker that is killed is an error.
        device: where the workers compute.
    """

    def __init__(
        self,
        workers: int,
        report: JobReport | None = None,
        filed: RecordCallback | None = None,
        retries: int = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__(report, filed, retries)
        self.workers, self.device = workers, device
        self._pool: list[Worker] = []

    def __enter__(self) -> Self:
        self._spool = tempfile.TemporaryDirectory(prefix="icy-", ignore_cleanup_errors=True)
        self._mail = EventLog(Path(self._spool.name))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._pool:
            worker.kill()
        self._spool.cleanup()

    def _fill(self) -> None:
        """Hand out what waits, to workers that have nothing to do and, up to their number, to new ones."""
        while self._waiting:
            idle = next((worker for worker in self._pool if worker.work is None), None)
            if idle is None:
                if len(self._pool) >= self.workers:
                    return
                idle = Worker(self._spool.name)
                self._pool.append(idle)
            idle.begin(self._waiting.popleft())

    def finished(self) -> Iterator[tuple[int, list[Record]]]:
        """Tickets and records of jobs, as they end; more may be submitted meanwhile.

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
        """The work that a worker has come to the end of; None if it waits to begin again."""
        work, error = worker.end(), future.exception()
        if not isinstance(error, BrokenProcessPool):
            for record in future.result():
                work.filed(record)
            return work
        if not self.retries:
            raise IcyError(f"{KILLED} Run the same command to go on, with fewer --workers.") from error
        worker.restart()
        return None if self._begins_again(work) else work

    def _pass_on_mail(self) -> None:
        at_work = {worker.work.ticket: worker.work for worker in self._pool if worker.work is not None}
        for ticket, kind, content in self._mail.collect():
            work = at_work.get(ticket)
            if kind == "filed" and work is not None:  # not of one that was lost, and said more before it was gone
                record = Store(work.job.folder).get(content)
                if record is not None:
                    self._note(work, record)
            else:
                self._pass_on(work, kind, content)


# -- in a worker -------------------------------------------------------------------------------------------------------


def _start_worker(additions: Additions, log_level: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    _icy_log.setLevel(log_level)
    import torch

    torch.set_num_threads(1)
    registry.add_all(additions)


def _end_with_parent(parent: int) -> None:
    """End this worker once its parent is gone: killed, it leaves no one to hand results to, or to stop the worker."""
    while os.getppid() == parent:
        time.sleep(1)
    _filing.acquire()  # a record that is being written is written to its end
    os._exit(1)


def _run_in_worker(job: Job, ticket: int, spool: str) -> list[Record]:
    store = Store(job.folder)
    with EventLog.path(spool, ticket).open("a", buffering=1) as file:

        def write(kind: str, content: Any) -> None:
            with contextlib.suppress(OSError):  # a display is no reason to lose a run
                file.write(json.dumps([kind, content]) + "\n")

        def put(record: Record, files: Mapping[str, bytes]) -> None:
            with _filing:
                store.put(record, files)
            write("filed", record["key"])

        file.write("\n")  # after a line that a killed worker may have left unfinished
        with LogForwarder(write):
            return run_job(job, lambda _, readings: write("read", packed(readings)), put)


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
