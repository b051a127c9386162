"""Report the progress of long counts."""

import contextlib
from collections.abc import Callable, Iterator

Progress = Callable[[int, int], None]  # called with the number of finished pairs or permutations, and the total


@contextlib.contextmanager
def progress_callback(progress: bool | Progress | None, what: str = "pairs") -> Iterator[Progress | None]:
    """Yield a progress callback: `progress` if it is a function, a progress bar's if it is True, else None."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    from rich.progress import Progress as Bars

    with Bars(transient=True) as bars:
        bar = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)
