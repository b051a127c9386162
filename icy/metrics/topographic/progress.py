"""Progress of long counts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

Progress = Callable[[int, int], None]  # pairs done, pairs in all


@contextlib.contextmanager
def shown(progress: bool | Progress | None) -> Iterator[Progress | None]:
    """What to tell of progress: the function given, or one that moves a bar, in a notebook or on a terminal."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    from rich.progress import Progress as Bars

    with Bars(transient=True) as bars:
        bar = bars.add_task("pairs", total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)
