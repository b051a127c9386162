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
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool

from icy.errors import IcyError
from icy.registry import Entry, registry
from icy.store import Record, Store

from .job import Job, Reading, Replicate
from .mail import Mailbox, MailedLog, pass_on_log
from .running import Filed, Report, run_job
from .work import KILLED, Work, count_deaths

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
log = logging.getLogger(__name__)
_icy_log = logging.getLogger("icy")


class PoolRunner:
    """Runs jobs on worker processes.

    Args:
        workers: how many.
        report: called in this process with the readings of every check of every worker.
        filed: called in this process with every record once it is on file.
        retries: how often a job that was at work when a worker was killed is begun again, before what it lacks is
            filed as failed; 0, a worker that is killed is an error.
        device: where the workers compute.
    """

    POLL_SECONDS = 0.3
    PATIENCE_SECONDS = 5.0

    def __init__(
        self,
        workers: int,
        report: Report | None = None,
        filed: Filed | None = None,
        retries: int = 0,
        device: str = "cpu",
    ) -> None:
        self.workers, self.retries, self.device = workers, retries, device
        self._report, self._filed = report, filed
        self._futures: dict[Future[list[Record]], Work] = {}
        self._said: set[str] = set()
        self._next = 0

    def __enter__(self) -> Self:
        self._spool = tempfile.TemporaryDirectory(prefix="icy-", ignore_cleanup_errors=True)
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
        self._kill()
        self._spool.cleanup()

    def _kill(self) -> None:
        """End the workers at once, and wait until they are gone, so that none writes beside those that follow."""
        processes = list((self._executor._processes or {}).values())
        # Not asked to end, as loky would: a worker that was killed as it held a lock of the executor's queues keeps the
        # others from hearing of it. In a thread, since loky may then wait for ever.
        closing = threading.Thread(target=self._executor.shutdown, kwargs={"kill_workers": True}, daemon=True)
        closing.start()
        closing.join(self.PATIENCE_SECONDS)
        for process in processes:
            with contextlib.suppress(Exception):  # it is gone already
                process.kill()
                process.join(self.PATIENCE_SECONDS)

    def submit(self, job: Job) -> int:
        """Queue a job; returns its ticket."""
        ticket, self._next = self._next, self._next + 1
        self._begin(Work(ticket, job))
        return ticket

    def _begin(self, work: Work) -> None:
        try:
            with _without_interrupts():
                future = self._executor.submit(_run_in_worker, work.rest(), work.ticket, self._spool.name)
        except BrokenProcessPool as error:  # a worker was lost this moment; it shows when futures are looked at
            future = Future()
            future.set_exception(error)
        self._futures[future] = work

    def finished(self) -> Iterator[tuple[int, list[Record]]]:
        """Tickets and records of jobs, as they end; more may be submitted meanwhile.

        Raises:
            IcyError: a worker was killed, and there are no retries.
        """
        while self._futures:
            done, _ = wait(self._futures, timeout=self.POLL_SECONDS, return_when=FIRST_COMPLETED)
            self._pass_on_mail(self._futures.values())
            for future in done:
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    if not self.retries:
                        raise IcyError(f"{KILLED} Run the same command to go on, with fewer --workers.") from error
                    yield from self._again()
                    break  # the futures of all jobs are void
                work = self._futures.pop(future)
                for record in future.result():
                    work.filed(record)
                yield work.ticket, list(work.records.values())

    def _again(self) -> Iterator[tuple[int, list[Record]]]:
        """Begin again what was at work or waiting when a worker was killed; what is killed time and again fails."""
        self._kill()
        lost, self._futures = list(self._futures.values()), {}
        self._pass_on_mail(lost)
        count_deaths(lost)
        self._start()
        for work in lost:
            if work.left and work.deaths <= self.retries:
                if work.deaths:
                    name = work.job.task.entry.qualified
                    log.warning("A worker was killed; %s replicates of %s begin again.", len(work.left), name)
                self._begin(work)
                continue
            for record in work.given_up():
                Store(work.job.folder).put(record)
                self._file(work, record)
            yield work.ticket, list(work.records.values())

    def _file(self, work: Work, record: Record) -> None:
        work.filed(record)
        if self._filed is not None:
            self._filed(record)

    def _pass_on_mail(self, at_work: Any) -> None:
        works = {work.ticket: work for work in at_work}
        for ticket, kind, content in self._mail.collect():
            work = works[ticket]
            if kind == "log":
                pass_on_log(content, self._said)
            elif kind == "begun":
                work.begun = True
            elif kind == "filed":
                record = Store(work.job.folder).get(content)
                if record is not None:
                    self._file(work, record)
            elif kind == "read" and self._report is not None:
                self._report(work.job, unpacked(content))


def packed(readings: Sequence[Reading]) -> list[list[Any]]:
    """Readings as JSON takes them."""
    return [[r.replicate.grammar, r.replicate.seed, r.steps, r.accuracy, r.phase] for r in readings]


def unpacked(content: Sequence[Sequence[Any]]) -> list[Reading]:
    """Readings as `packed` made them."""
    return [Reading(Replicate(grammar, seed), *rest) for grammar, seed, *rest in content]


# -- in a worker -------------------------------------------------------------------------------------------------------


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
    store = Store(job.folder)
    with Mailbox.path(spool, ticket).open("a", buffering=1) as file:

        def write(kind: str, content: Any) -> None:
            with contextlib.suppress(OSError):  # a display is no reason to lose a run
                file.write(json.dumps([kind, content]) + "\n")

        def put(record: Record) -> None:
            store.put(record)
            write("filed", record["key"])

        file.write("\n")  # after a line that a killed worker may have left unfinished
        write("begun", None)
        with MailedLog(write):
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
