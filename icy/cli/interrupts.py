"""Reaction of a command to signals that end it: Ctrl-C, the end of a batch job, a lost connection.

All three interrupt it alike, with KeyboardInterrupt, so that what is finished is kept and tables are written. While it
ends, further signals change nothing; if that takes long, another one interrupts that too.
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

from icy.core.signals import ENDING

PATIENCE_SECONDS = 10.0  # to end in
AGAIN_SECONDS = 0.05  # after an interrupt that got lost


class _Stopping:
    """The signals of one command.

    Attributes:
        number: of the first signal, if there was one.
        hook: reports exceptions that Python drops.
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
            os._exit(self.code)  # the process hangs at its end
        self.number, self._at = self.number or number, now
        _leave_lost_terminal()
        raise KeyboardInterrupt

    def end(self) -> None:
        """Note that the command has ended, so that signals have nothing to interrupt."""
        self._at, self._over = time.monotonic(), True

    @property
    def code(self) -> int:
        """The exit code after a signal, as shells have it."""
        return 128 + (self.number or signal.SIGINT)

    @property
    def said(self) -> str:
        """What happened, for the beginning of a sentence."""
        return "Interrupted" if self.number in (None, signal.SIGINT) else f"Ended by {signal.Signals(self.number).name}"

    def lost(self, told: Any) -> None:
        """Interrupt again, if Python dropped the exception, as it does in finalizers; other exceptions it reports."""
        if self.number is None or self._over or not issubclass(told.exc_type, KeyboardInterrupt):
            self.hook(told)
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
    """Return how a command was interrupted, as a sentence begins with it: "Interrupted" or "Ended by SIGTERM"."""
    return _stopping.said


def _forget_interrupt() -> None:
    """Have Python end with the exit code that it is given.

    It ends by SIGINT instead if an interrupt ever left an `exec` of text, in which dataclasses are made. Text that is
    evaluated afterwards clears that.
    """
    eval("0")


@contextlib.contextmanager
def interruptible(whole: bool) -> Iterator[None]:
    """Have signals interrupt the command within.

    What the process was told to ignore stays ignored: hang-ups under nohup, Ctrl-C in the background of a shell.

    Args:
        whole: whether the process ends with the command; else the handlers from before are put back.
    """
    global _stopping
    if threading.current_thread() is not threading.main_thread():  # no place for handlers
        yield
        return
    _stopping = now = _Stopping()
    if whole:
        atexit.register(_ignore)  # before what a command registers, so that it comes last
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
    """Ignore signals in the last moments of this process, in which Python takes its handlers away."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _leave_lost_terminal() -> None:
    """Write no more to a terminal that is gone, where every word would be an error."""
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")
        except OSError:
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
