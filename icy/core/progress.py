"""Progress of work that takes longer than ten seconds: a line that changes on a terminal, a line a minute elsewhere.

Example:
    >>> with silence():
    ...     list(track([1, 2, 3], "numbers"))
    [1, 2, 3]
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import IO, TypeVar

from .text import duration

SWITCH = "ICY_PROGRESS"  # environment variable; 0 turns off all displays that the caller does not request
OFF = ("0", "no", "off", "false")
WAIT = 10.0  # seconds before anything is shown
BETWEEN = 60.0  # seconds between two lines where the output is not a terminal
REFRESH = 0.25  # seconds between two changes of a bar
Item = TypeVar("Item")
Report = Callable[[int, int], None]  # called with the numbers of finished and of all steps
_silent: ContextVar[bool] = ContextVar("silent", default=False)


def progress_disabled() -> bool:
    """Return whether the environment turns off displays of progress."""
    return os.environ.get(SWITCH, "").strip().lower() in OFF


@contextlib.contextmanager
def silence(quiet: bool = True) -> Iterator[None]:
    """Show no progress within this block, if `quiet` is true."""
    token = _silent.set(quiet or _silent.get())
    try:
        yield
    finally:
        _silent.reset(token)


@contextlib.contextmanager
def progress(what: str) -> Iterator[Report]:
    """Yield a function to call after each step. It shows nothing in the first ten seconds.

    Args:
        what: the steps, a plural noun.
    """
    if _silent.get() or progress_disabled():
        yield lambda done, total: None
        return
    began = time.monotonic()
    due = began + WAIT
    bar: IO[str] | None = None

    def report(done: int, total: int) -> None:
        nonlocal due, bar
        now = time.monotonic()
        if now < due or not 0 < done < total:
            return
        from rich.console import Console

        text = f"{what}: {done} of {total}, about {duration((now - began) / done * (total - done))} left"
        console = Console(stderr=True, highlight=False)
        live = console.is_terminal and not console.is_dumb_terminal
        due = now + (REFRESH if live else BETWEEN)
        with contextlib.suppress(OSError, ValueError):  # a closed stream must not end the work
            if live:
                bar = console.file
                bar.write(f"\r\x1b[2K{text[: console.width - 1]}")
                bar.flush()
            else:
                console.print(text[0].upper() + text[1:] + ".", soft_wrap=True)

    try:
        yield report
    finally:
        if bar is not None:
            with contextlib.suppress(OSError, ValueError):
                bar.write("\r\x1b[2K")
                bar.flush()


@contextlib.contextmanager
def progress_to(given: bool | Report | None, what: str) -> Iterator[Report]:
    """Yield `given` if it is a function, else a function as `progress` does; if `given` is False, it shows nothing."""
    if callable(given):
        yield given
    else:
        with silence() if given is False else contextlib.nullcontext(), progress(what) as report:
            yield report


def track(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Yield items, and show the progress, as `progress` does."""
    with progress(what) as report:
        for place, item in enumerate(items):
            yield item
            report(place + 1, len(items))
