"""Reaction of a command to signals that end it: Ctrl-C, the end of a batch job, a lost connection.

All three raise KeyboardInterrupt: finished results are saved, and tables are written. Meanwhile, further signals have
no effect for PATIENCE_SECONDS. After that, another signal interrupts the saving as well.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from icy.core.processes import ENDING

PATIENCE_SECONDS = 10.0  # before a second signal ends the process at once
AGAIN_SECONDS = 0.05  # before an interrupt that was lost is repeated


class _Stopping:
    """The signals of one command.

    Attributes:
        number: number of the first signal; None before any signal.
        hook: callback for exceptions that Python drops.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._at = -PATIENCE_SECONDS  # when the signal came
        self._over = False
        self.hook: Callable[[Any], object] = sys.__unraisablehook__

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        now = time.monotonic()
        if now - self._at < PATIENCE_SECONDS:
            return
        if self._over:
            os._exit(self.code)  # the process hangs while it ends
        self.number, self._at = self.number or number, now
        _leave_lost_terminal()
        raise KeyboardInterrupt

    def end(self) -> None:
        """Mark the command as ended: later signals interrupt nothing."""
        self._at, self._over = time.monotonic(), True

    @property
    def code(self) -> int:
        """The exit code after a signal, in the shells' convention."""
        return 128 + (self.number or signal.SIGINT)

    @property
    def said(self) -> str:
        """The signal, as the beginning of a sentence."""
        return "Interrupted" if self.number in (None, signal.SIGINT) else f"Ended by {signal.Signals(self.number).name}"

    def lost(self, unraisable: Any) -> None:
        """Interrupt again if Python dropped a KeyboardInterrupt, as in finalizers. Report other dropped exceptions."""
        if self.number is None or self._over or not issubclass(unraisable.exc_type, KeyboardInterrupt):
            self.hook(unraisable)
            return
        again = threading.Timer(AGAIN_SECONDS, self._again)
        again.daemon = True
        again.start()

    def _again(self) -> None:
        self._at = -PATIENCE_SECONDS
        os.kill(os.getpid(), self.number or signal.SIGINT)


_stopping = _Stopping()


def exit_code() -> int:
    """Return the exit code of a command that was interrupted."""
    return _stopping.code


def what_happened() -> str:
    """Return how a command was interrupted, as the beginning of a sentence: "Interrupted" or "Ended by SIGTERM"."""
    return _stopping.said


def _forget_interrupt() -> None:
    """Make Python end with the given exit code.

    Otherwise Python ends by SIGINT if an interrupt ever occurred in an `exec` of text, which dataclasses use.
    Evaluating another text clears this state.
    """
    eval("0")


@contextlib.contextmanager
def interruptible(whole: bool) -> Iterator[None]:
    """Make signals interrupt the command in the context.

    Signals that the process ignores stay ignored: hang-ups under nohup, Ctrl-C in the background of a shell.

    Args:
        whole: whether the process ends with the command; otherwise the earlier handlers are restored.
    """
    global _stopping
    if threading.current_thread() is not threading.main_thread():  # only the main thread can have handlers
        yield
        return
    _stopping = now = _Stopping()
    if whole:
        atexit.register(_ignore)  # registered first, so that it runs last
    heard = [number for number in ENDING if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    before: Any = {number: signal.signal(number, now.hear) for number in heard}
    now.hook, sys.unraisablehook = sys.unraisablehook, now.lost
    try:
        yield
    finally:
        if whole:
            now.end()
            _forget_interrupt()
        else:
            sys.unraisablehook = now.hook
            for number, handler in before.items():
                signal.signal(number, handler)


def _ignore() -> None:
    """Ignore signals in the last moments of this process, when Python removes its handlers."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _leave_lost_terminal() -> None:
    """Stop writing to a terminal that has closed: every write would be an error."""
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")
        except OSError:
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
