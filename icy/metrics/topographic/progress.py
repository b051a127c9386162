"""Report the progress of long counts."""

import contextlib
from collections.abc import Callable, Iterator

Progress = Callable[[int, int], None]  # called with the number of finished pairs or permutations, and the total


@contextlib.contextmanager
def progress_callback(progress: bool | Progress | None, what: str = "pairs") -> Iterator[Progress | None]:
    """Yield `progress` if it is a callback, a callback that moves a progress bar if it is True, and None if False."""
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
