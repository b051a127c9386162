"""Processes of workers: copies of this process where that is safe, and fresh ones elsewhere.

A fresh process imports PyTorch and icy again, one to two seconds of a core for every worker. A copy (fork) has all that
is imported, and every language that was made for the plan, in a hundredth of a second, and shares their memory.

A copy has one thread, whatever the original had: what another thread held at that moment stays locked for ever, and the
threads of OpenMP are missed as soon as they are wanted. So a process is copied only if it is safe by all of these:

- Linux, and training on the CPU: CUDA does not work in a copy, and macOS has threads of its own in every process.
- Python runs a single thread. A notebook runs several, and so does a progress display, which therefore starts later.
- The system knows of a single thread once the first copy was made: no region of OpenMP has run, no library has threads.
  Those that know of copies, as OpenBLAS does, have ended theirs by then and start them again at need.
- Every copy says that it is ready, after a gradient of one number: PyTorch refuses those in a copy in some builds.

The copies make no threads either: PyTorch and BLAS compute with one, as PyTorch's own workers (`DataLoader`) do.
If one does not hold, all workers are fresh processes, started by loky, which needs no `if __name__ == "__main__"` in a
user's script and carries models that were defined in a notebook. So is the process that replaces one that was killed,
as threads may run by then.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend.reduction import dumps
from joblib.externals.loky.process_executor import BrokenProcessPool
from threadpoolctl import threadpool_limits

from icy.core import signals
from icy.core.errors import IcyError, what_and_where

PATIENCE_SECONDS = 5.0  # for a process that is being killed, or copied
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has only the latter
THREADS = Path("/proc/self/task")  # one entry for each thread of this process, of whatever library
READY = b"ready"
LOOK_SECONDS = 1.0  # between two looks for a parent whose end no pipe told
Task = Callable[..., Any]
_running: dict[
    Any, int
] = {}  # the copies, each with its parent: what a process inherits when it is forked is not its own
to_its_end = threading.Lock()  # held by a task for as long as its process must not end, though its parent is gone


class WorkerProcess(Protocol):
    """A process that runs a function as often as it is asked to."""

    def submit(self, *arguments: Any) -> Future[Any]:
        """Run the function there; the future fails with BrokenProcessPool if the process is lost."""

    def processes(self) -> list[Any]:
        """The process, or none while it is being started."""

    def kill(self) -> None:
        """End the process at once, and wait until it is gone, so that it writes nothing beside another."""


class FreshProcess:
    """A process that begins anew, by loky.

    Args:
        task: the function.
        start: called there first, with `arguments`.
        *arguments: of `start`.
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
        """Run the function there."""
        try:
            _start_tracker()
            with signals.delay_signals():
                future: Future[Any] = self._executor.submit(self._task, *arguments)
        except BrokenProcessPool as error:  # the process was killed while it had nothing to do
            future = Future()
            future.set_exception(error)
        return future

    def processes(self) -> list[Any]:
        """The process, or none while it is being started."""
        return list((self._executor._processes or {}).values())

    def kill(self) -> None:
        """End it.

        Not asked to end, as loky would: a process that was killed as it held a lock of the executor's queues leaves
        no one to hear of it. Nor left to loky's own way to kill, which needs another package or program. In a thread,
        since loky may wait for ever.
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
        start: called there first.
    """

    def __init__(self, task: Task, start: Task) -> None:
        self._here, there = multiprocessing.Pipe()
        with there, signals.delay_signals(), warnings.catch_warnings(action="ignore"):  # of threads: `copies` sees them
            context: Any = multiprocessing.get_context("fork")
            here = os.getpid()
            _lifeline(here)  # so that the copy has it
            self._process = context.Process(target=_serve, args=(there, task, start, here))
            self._process.start()
            _running[self._process] = here
        self._asking: ThreadPoolExecutor | None = None

    def ready(self, seconds: float) -> bool:
        """Whether it says within some seconds that it is ready."""
        with contextlib.suppress(EOFError, OSError):
            return self._here.poll(seconds) and self._here.recv_bytes() == READY
        return False

    def submit(self, *arguments: Any) -> Future[Any]:
        """Run the function there."""
        self._asking = self._asking or ThreadPoolExecutor(1)  # not before all copies are made
        return self._asking.submit(self._ask, arguments)

    def _ask(self, arguments: Any) -> Any:
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
        """The process."""
        return [self._process]

    def kill(self) -> None:
        """End it."""
        _kill([self._process])
        self._process.join(PATIENCE_SECONDS)
        _running.pop(self._process, None)
        if self._asking is not None:
            self._asking.shutdown()  # it hears that the process is gone
        self._here.close()


def copies(count: int, task: Task, start: Task) -> list[CopiedProcess]:
    """Return copies of this process, ready to run `task`; none where copying is not safe (see this module).

    Args:
        count: how many.
        task: what they run.
        start: called in each first.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        return []
    import torch  # here and once, if it is not yet

    if torch.cuda.is_initialized():
        return []
    made: list[CopiedProcess] = []
    try:
        # Copies inherit the limit of BLAS. In a copy it could no longer be set without starting the threads.
        with threadpool_limits(1, "blas"), signals.delay_signals():  # before a copy is known here
            alone = True
            while alone and len(made) < count:
                made.append(CopiedProcess(task, start))
                alone = len(list(THREADS.iterdir())) == 1
        deadline = time.monotonic() + PATIENCE_SECONDS
        safe = alone and all(copy.ready(deadline - time.monotonic()) for copy in made)
    except OSError:  # no more processes, or no memory
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
    """Kill copies that an interrupt at a bad moment left behind: Python would wait for their end at its own."""
    _kill([process for process, parent in _running.items() if parent == os.getpid()])


def _kill(processes: list[Any]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):  # it is gone already
            os.kill(process.pid, KILL)


@functools.cache
def _lifeline(parent: int) -> tuple[Connection, Connection]:
    """Return the two ends of a pipe of this process that nobody writes to: its workers read that this one has ended.

    Args:
        parent: the number of this process; a copy that starts workers of its own has a pipe of its own.
    """
    return multiprocessing.Pipe(duplex=False)


def _start_tracker() -> None:
    """Start Python's tracker of resources before a worker: as it starts, it lets signals through that are held."""
    with signals.delay_signals():
        resource_tracker.ensure_running()


# -- in a worker -------------------------------------------------------------------------------------------------------


def _begin_fresh(parent: int, lifeline: Connection, start: Task, *arguments: Any) -> None:
    """Begin a fresh process."""
    _end_with(parent, lifeline)
    start(*arguments)


def _end_with(parent: int, lifeline: Connection) -> None:
    """End this worker once its parent is gone: killed, it leaves no one to hand results to, or to stop the worker."""
    threading.Thread(target=_await_end, args=(parent, lifeline), daemon=True).start()


def _await_end(parent: int, lifeline: Connection) -> None:
    """Wait for the end of the parent, which may have come before this process could look, and end this one.

    The pipe tells at once. But whatever else the parent has forked holds the pipe open too, so the parent's number is
    looked at now and then; not on Windows, where that of a parent stays.
    """
    with contextlib.suppress(OSError):  # Windows has it for the end of a pipe
        while (os.name != "posix" or os.getppid() == parent) and not lifeline.poll(LOOK_SECONDS):
            pass
    to_its_end.acquire()
    os._exit(1)


def _serve(pipe: Connection, task: Task, start: Task, parent: int) -> None:
    """Say that the copy is ready, and run `task` with whatever comes."""
    lifeline, end = _lifeline(parent)
    end.close()  # else this copy would keep it open for the others, and for itself
    _end_with(parent, lifeline)
    gc.freeze()  # collections leave what came from the original alone, so that its memory stays shared
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # for libraries that are loaded from now on
    start()
    _begin_randomness_anew()
    _try_gradient()
    pipe.send_bytes(READY)
    while True:
        try:
            arguments = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return
        try:
            answer = dumps((True, task(*arguments)))
        except BaseException as error:
            answer = _told(error)
        pipe.send_bytes(answer)


def _told(error: BaseException) -> bytes:
    """Return an error as bytes, with its stack trace as a note."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        told: bytes = dumps((False, error))
        pickle.loads(told)
    except Exception:  # an error of a plug-in's own that cannot be read back
        told = dumps((False, IcyError(what_and_where(error))))
    return told


def _begin_randomness_anew() -> None:
    """Seed the generators that icy does not draw from, as in a fresh process: copies would draw the same numbers."""
    import numpy as np
    import torch

    np.random.seed()
    torch.default_generator.seed()


def _try_gradient() -> None:
    """Compute a gradient, which raises where PyTorch cannot after a copy."""
    import torch

    torch.ones(1, requires_grad=True, dtype=torch.float32, device="cpu").sum().backward()  # type: ignore[no-untyped-call]
