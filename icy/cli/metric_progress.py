"""Progress of `icy metrics`: bars on a terminal, and lines elsewhere."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from icy.cli.output import every, note, stderr
from icy.core.text import duration

if TYPE_CHECKING:
    from icy.metrics import Score
    from icy.metrics.evaluation import ScoreCallback
    from icy.metrics.topographic.progress import Progress

SECONDS_A_LINE = 10.0  # between two lines


@contextlib.contextmanager
def metric_progress(
    names: Sequence[str], languages: int, quiet: bool
) -> Iterator[tuple[ScoreCallback | None, Progress | None, Progress | None]]:
    """Show progress bars on a terminal: over metrics, over the pairs of a running topsim, and over permutations.

    Where the output is not a terminal, such as a file, print a line about the permutations now and then.
    """
    console = stderr()
    if quiet:
        yield None, None, None
        return
    measured = itertools.cycle(names)
    if not console.is_terminal:
        yield _progress_lines(measured)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Bars(*columns, console=console, transient=True) as bars:
        whole = bars.add_task(next(measured), total=languages * len(names))
        pairs = bars.add_task("pairs of topsim", total=None, visible=False)
        orders = bars.add_task("permutations", total=None, visible=False)

        def told(name: str, score: Score) -> None:
            bars.update(whole, advance=1, description=next(measured))
            for bar in (pairs, orders):
                bars.update(bar, visible=False)

        def show(bar: TaskID) -> Progress:
            return lambda done, total: bars.update(bar, completed=done, total=total, visible=True)

        yield told, show(pairs), show(orders)


def _progress_lines(measured: Iterator[str]) -> tuple[ScoreCallback, None, Progress]:
    """Return functions that print a line every SECONDS_A_LINE; `measured` yields the metrics in order."""
    name, began = next(measured), time.monotonic()
    due = every(SECONDS_A_LINE)

    def told(done: str, score: Score) -> None:
        nonlocal name, began
        name, began = next(measured), time.monotonic()

    def permuted(done: int, total: int) -> None:
        if done < total and due():
            left = duration((time.monotonic() - began) / done * (total - done))
            note(f"{name}: {done} of {total} permutations, about {left} left.")

    return told, None, permuted
