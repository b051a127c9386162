"""A pool of worker processes on this machine: one worker per core, and one thread per worker.

The models are small. A model cannot use two cores, and threads within an operation of a hundred microseconds cost more
time than they save, so on a CPU each worker trains its own stack. A few workers may share a GPU, so that one of them
launches operations while another computes.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend.reduction import dumps
from joblib.externals.loky.process_executor import BrokenProcessPool
from threadpoolctl import threadpool_limits

from icy.core import processes as signals
from icy.core.errors import IcyError, what_and_where
from icy.core.machine import keep_memory
from icy.core.processes import scratch_folder
from icy.core.registry import Additions, registry
from icy.records.record import Record
from icy.records.store import Store
from icy.training.job import Job

from .base import KILLED, EventLog, JobReport, LogForwarder, RecordCallback, RemoteRunner, Submission, packed, run_job

# -- processes of workers ----------------------------------------------------------------------------------------------

# A fresh process imports PyTorch and icy again, which takes one to two seconds of a core for every worker. A copy
# (fork) is ready in a hundredth of a second. It shares the memory of imported modules and of the languages of the plan.
#
# A copy has one thread, even if the original had several. A lock that another thread held stays locked forever, and
# OpenMP fails without its threads. So a process is copied only under all of these conditions:
#
# - The system is Linux, and training is on the CPU. CUDA does not work in a copy, and macOS has its own threads in
#   every process.
# - Python runs a single thread. A notebook runs several. A progress display runs another, so it starts later.
# - The system has a single thread after the first copy: no region of OpenMP has run, and no library has threads.
#   Libraries that support copies, such as OpenBLAS, have ended their threads by then and restart them when needed.
# - Every copy reports that it is ready, after the gradient of one number: some builds of PyTorch cannot compute
#   gradients in a copy.
#
# The copies do not start threads either: PyTorch and BLAS use one thread, as in PyTorch's own workers (`DataLoader`).
# If a condition is not met, all workers are fresh processes, started by loky, which does not need `if __name__ ==
# "__main__"` in a user's script and can transfer models that are defined in a notebook. A killed process is also
# replaced by a fresh process, as threads may run by then.


PATIENCE_SECONDS = 5.0  # limit for killing or copying a process
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has only the latter
THREADS = Path("/proc/self/task")  # an entry for each thread of this process, including threads of libraries
READY = b"ready"
LOOK_SECONDS = 1.0  # between two checks of the parent, in case the pipe does not report its end
Task = Callable[..., Any]
_running: dict[Any, int] = {}  # copies with the numbers of their parents, since a fork inherits copies of its parent
to_its_end = threading.Lock()  # held by a task while its process must not end, even if the parent has ended


class WorkerProcess(Protocol):
    """A process that runs a function on request."""

    def submit(self, *arguments: Any) -> Future[Any]:
        """Run the function in the process; the future fails with BrokenProcessPool if the process is lost."""

    def processes(self) -> list[Any]:
        """Return the process in a list, which is empty while the process is starting."""

    def kill(self) -> None:
        """Kill the process and wait until it has ended, so that it cannot write at the same time as its successor."""


class FreshProcess:
    """A fresh process, started by loky.

    Args:
        task: the function.
        start: called first in the process, with `arguments`.
        *arguments: arguments of `start`.
    """

    def __init__(self, task: Task, start: Task, *arguments: Any) -> None:
        self._task = task
        here = os.getpid()
        self._executor = ProcessPoolExecutor(
            max_workers=1,
            initializer=_begin_fresh,
            initargs=(here, _lifeline(here)[0], start, *arguments),
            env=dict.fromkeys(THREAD_VARIABLES, "1"),
        )

    def submit(self, *arguments: Any) -> Future[Any]:
        """Run the function in the process."""
        try:
            with signals.delay_signals():
                resource_tracker.ensure_running()  # before a worker, since its start delivers signals that are held
            with signals.delay_signals():
                future: Future[Any] = self._executor.submit(self._task, *arguments)
        except BrokenProcessPool as error:  # the process was killed while it was idle
            future = Future()
            future.set_exception(error)
        return future

    def processes(self) -> list[Any]:
        """Return the process in a list, which is empty while the process is starting."""
        return list((self._executor._processes or {}).values())

    def kill(self) -> None:
        """Kill the process and wait until it has ended.

        The usual shutdown of loky would not return if the process was killed while it held a lock of the executor's
        queues. Loky's own way to kill processes needs another package or program. The executor is shut down in a
        thread, since loky may wait forever.
        """
        processes = self.processes()
        _kill(processes)
        closing = threading.Thread(target=self._executor.shutdown, kwargs={"kill_workers": True}, daemon=True)
        closing.start()
        closing.join(PATIENCE_SECONDS)
        for process in processes:
            process.join(PATIENCE_SECONDS)


class CopiedProcess:
    """A copy of this process.

    Args:
        task: the function.
        start: called first in the process.
    """

    def __init__(self, task: Task, start: Task) -> None:
        self._here, there = multiprocessing.Pipe()
        with (
            there,
            signals.delay_signals(),
            warnings.catch_warnings(action="ignore"),
        ):  # ignore warnings of threads, which `copies` checks
            context: Any = multiprocessing.get_context("fork")
            here = os.getpid()
            _lifeline(here)  # created here, so that the copy inherits it
            self._process = context.Process(target=_serve, args=(there, task, start, here))
            self._process.start()
            _running[self._process] = here
        self._sender: ThreadPoolExecutor | None = None

    def ready(self, seconds: float) -> bool:
        """Return whether the process reports within some seconds that it is ready."""
        with contextlib.suppress(EOFError, OSError):
            return self._here.poll(seconds) and self._here.recv_bytes() == READY
        return False

    def submit(self, *arguments: Any) -> Future[Any]:
        """Run the function in the process."""
        self._sender = self._sender or ThreadPoolExecutor(1)  # created when all copies have been made
        return self._sender.submit(self._request, arguments)

    def _request(self, arguments: Any) -> Any:
        task = dumps(arguments)
        try:
            self._here.send_bytes(task)
            done, result = pickle.loads(self._here.recv_bytes())
        except (EOFError, OSError) as error:
            raise BrokenProcessPool("The process was lost.") from error
        if not done:
            raise result
        return result

    def processes(self) -> list[Any]:
        """Return the process in a list."""
        return [self._process]

    def kill(self) -> None:
        """Kill the process and wait until it has ended."""
        _kill([self._process])
        self._process.join(PATIENCE_SECONDS)
        _running.pop(self._process, None)
        if self._sender is not None:
            self._sender.shutdown()  # its thread ends with the process
        self._here.close()


def copies(count: int, task: Task, start: Task) -> list[CopiedProcess]:
    """Return copies of this process, ready to run `task`; an empty list if copying is not safe (see this module).

    Args:
        count: number of copies.
        task: the function.
        start: called first in each copy.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        return []
    from icy.core import gpu  # imports torch once, before copying

    if gpu.in_use():
        return []
    made: list[CopiedProcess] = []
    try:
        # Copies inherit the limit of BLAS. Setting the limit in a copy would start threads.
        with threadpool_limits(1, "blas"), signals.delay_signals():  # an interrupt waits until each copy is in `made`
            alone = True
            while alone and len(made) < count:
                made.append(CopiedProcess(task, start))
                alone = len(list(THREADS.iterdir())) == 1
        deadline = time.monotonic() + PATIENCE_SECONDS
        safe = alone and all(copy.ready(deadline - time.monotonic()) for copy in made)
    except OSError:  # too many processes, or too little memory
        safe = False
    except BaseException:
        _end(made)
        raise
    if not safe:
        _end(made)
    return made if safe else []


def _end(made: list[CopiedProcess]) -> None:
    for copy in made:
        copy.kill()


@atexit.register
def _end_forgotten() -> None:
    """Kill copies that are left after an interrupt, as Python would wait for them at its end."""
    _kill([process for process, parent in _running.items() if parent == os.getpid()])


def _kill(processes: list[Any]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            os.kill(process.pid, KILL)


@functools.cache
def _lifeline(parent: int) -> tuple[Connection, Connection]:
    """Return the two ends of a pipe, by which workers notice the end of this process. Nothing is written to the pipe.

    Args:
        parent: the number of this process; a copy with its own workers has its own pipe.
    """
    return multiprocessing.Pipe(duplex=False)


# -- in a worker -------------------------------------------------------------------------------------------------------


def _begin_fresh(parent: int, lifeline: Connection, start: Task, *arguments: Any) -> None:
    """Start a fresh process."""
    _end_with(parent, lifeline)
    start(*arguments)


def _end_with(parent: int, lifeline: Connection) -> None:
    """End this worker when its parent ends. A killed parent cannot stop its workers."""
    threading.Thread(target=_await_end, args=(parent, lifeline), daemon=True).start()


def _await_end(parent: int, lifeline: Connection) -> None:
    """Wait for the end of the parent, which may have ended already, and end this process.

    The pipe reports the end at once, unless another fork of the parent keeps the pipe open. So the number of the parent
    is checked once a second too; not on Windows, where the number does not change.
    """
    with contextlib.suppress(OSError):  # Windows raises at the end of a pipe
        while (os.name != "posix" or os.getppid() == parent) and not lifeline.poll(LOOK_SECONDS):
            pass
    to_its_end.acquire()
    os._exit(1)


def _serve(pipe: Connection, task: Task, start: Task, parent: int) -> None:
    """Report that the copy is ready, and run `task` for every request."""
    lifeline, end = _lifeline(parent)
    end.close()  # else this copy would keep the pipe open
    _end_with(parent, lifeline)
    gc.freeze()  # excludes objects of the original from collections, so that their memory stays shared
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # for libraries that are loaded later
    start()
    import numpy as np
    import torch

    # Seed the global random generators, as in a fresh process, since copies would draw the same numbers.
    np.random.seed()
    torch.default_generator.seed()
    # This raises if PyTorch cannot compute gradients in a copy.
    torch.ones(1, requires_grad=True, dtype=torch.float32, device="cpu").sum().backward()  # type: ignore[no-untyped-call]
    pipe.send_bytes(READY)
    while True:
        try:
            arguments = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return
        try:
            answer = dumps((True, task(*arguments)))
        except BaseException as error:
            answer = _packed_error(error)
        pipe.send_bytes(answer)


def _packed_error(error: BaseException) -> bytes:
    """Return an error as bytes, with its stack trace as a note."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        content: bytes = dumps((False, error))
        pickle.loads(content)
    except Exception:  # an error of a plug-in that cannot be unpickled
        content = dumps((False, IcyError(what_and_where(error))))
    return content


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
            signals.stop_if_ending()
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
