"""Handle signals that end a process: Ctrl-C, the end of a batch job, a lost connection."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import TracebackType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
NOTHING = "nothing was trained"  # the text of an interrupt before a training
KEPT = "kept"  # name of an attribute of a KeyboardInterrupt
_CAN_HOLD = hasattr(signal, "pthread_sigmask")  # not on Windows


@contextlib.contextmanager
def delay_signals() -> Iterator[None]:
    """Delay signals until the end of the block. Processes that are started in the block inherit this.

    Otherwise Ctrl-C in a worker that has not yet set its handlers would print a stack trace, and a signal to all
    processes of a job would kill it.
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
    """Ignore signals that end a process, because the parent of this worker handles them; drop delayed signals too."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    if _CAN_HOLD:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def hides_interrupt(error: BaseException | None) -> bool:
    """Return whether a KeyboardInterrupt caused this error: Python replaces an interrupt while it creates a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def interrupt_with(kept: str) -> KeyboardInterrupt:
    """Return a KeyboardInterrupt with a message about the finished part of a training.

    If a program does not catch the exception, Python prints a sentence instead of a stack trace, and exits as usual.
    Other exceptions are shown as before. A `sys.excepthook` of the program is not replaced.

    Args:
        kept: description of the finished part, such as "3 of 4 finished"; the attribute `kept` of the result.
    """
    error = KeyboardInterrupt(f"{kept}. To continue, run the same call or script again.")
    setattr(error, KEPT, kept)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show
    return error


@contextlib.contextmanager
def interrupted_with(kept: str) -> Iterator[None]:
    """Replace interrupts in the block by `interrupt_with(kept)`. It also works as a function decorator."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise error if interrupt_text(error) else interrupt_with(kept) from None


def interrupt_text(error: BaseException) -> str:
    """Return the text of an exception from `interrupt_with`; "" for other exceptions."""
    return str(getattr(error, KEPT, ""))


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if interrupt_text(error):
        print(f"\nInterrupted: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
