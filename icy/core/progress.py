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
from typing import TYPE_CHECKING, TypeVar

from .text import duration

if TYPE_CHECKING:
    from rich.console import Console

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
    shown = _Shown(what)
    try:
        yield shown.report
    finally:
        shown.end()


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


class _Shown:
    def __init__(self, what: str) -> None:
        self._what, self._began = what, time.monotonic()
        self._due = self._began + WAIT
        self._bar: Console | None = None

    def report(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._due or not 0 < done < total:
            return
        from rich.console import Console

        left = duration((now - self._began) / done * (total - done))
        text = f"{self._what}: {done} of {total}, about {left} left"
        console = Console(stderr=True, highlight=False)
        live = console.is_terminal and not console.is_dumb_terminal
        self._due = now + (REFRESH if live else BETWEEN)
        with contextlib.suppress(OSError, ValueError):  # a closed stream must not end the work
            if live:
                self._bar = console
                console.file.write(f"\r\x1b[2K{text[: console.width - 1]}")
                console.file.flush()
            else:
                console.print(text[0].upper() + text[1:] + ".", soft_wrap=True)

    def end(self) -> None:
        if self._bar is not None:
            with contextlib.suppress(OSError, ValueError):
                self._bar.file.write("\r\x1b[2K")
                self._bar.file.flush()
