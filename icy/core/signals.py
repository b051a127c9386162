"""Signals that ask a process to end: Ctrl-C, the end of a batch job, a lost connection."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import TracebackType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
KEPT = "kept"  # attribute of a KeyboardInterrupt
_CAN_HOLD = hasattr(signal, "pthread_sigmask")  # not on Windows


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Have signals that arrive within wait until its end. Processes that are started within inherit that they wait.

    A worker that had not yet come to its own setting would otherwise print a stack trace at Ctrl-C, or die of a signal
    that goes to all processes of a job.
    """
    if not _CAN_HOLD:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_to_parent() -> None:
    """Ignore these signals in a worker, also those that were held at its start: its parent handles them."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    if _CAN_HOLD:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def hides_interrupt(error: BaseException | None) -> bool:
    """Return whether an error was raised because of an interrupt, as Python does while it makes a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def interrupt_with(kept: str) -> KeyboardInterrupt:
    """Return a KeyboardInterrupt with a text about the finished part of a training.

    A program that does not catch it ends with one sentence instead of a stack trace, and otherwise as Python ends at
    Ctrl-C. Every other exception is shown as before, and a program that has set `sys.excepthook` keeps its own.

    Args:
        kept: the finished part, as the middle of a sentence: "3 of 4 finished"; the attribute `kept` of the result.
    """
    error = KeyboardInterrupt(f"{kept}. To continue, run the same call or script again.")
    setattr(error, KEPT, kept)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show
    return error


@contextlib.contextmanager
def interrupted_with(kept: str) -> Iterator[None]:
    """Give interrupts within the text of `interrupt_with`; also a decorator of functions."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise error if kept_of(error) else interrupt_with(kept) from None


def kept_of(error: BaseException) -> str:
    """Return the text that `interrupt_with` was given for an exception; "" for other exceptions."""
    return str(getattr(error, KEPT, ""))


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if kept_of(error):
        print(f"\nInterrupted: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
