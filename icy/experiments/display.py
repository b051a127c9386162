"""Progress displays: live on a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import io
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from icy.config.requests import RunRequest
from icy.core.progress import progress_disabled
from icy.core.registry import SIDES
from icy.core.text import counted, duration
from icy.records.record import Record
from icy.training.job import Job, Reading

from .plan import Plan, make_plan
from .progress import Clock, ProgressWatcher, RowProgress, Watcher, Watchers
from .results import ProbeResult
from .run import run_plan
from .trackers import watching

BAR = 10  # characters
NOTEBOOK_WIDTH = 100  # characters


def with_progress(watcher: Watcher | None, progress: bool | None) -> Watcher | None:
    """Return the callbacks of a run in Python, with a display of its progress.

    Args:
        watcher: callbacks of the caller, if there are any.
        progress: whether to display the progress. By default (None) the display is live on a terminal and in a
            notebook, and a line per minute elsewhere, as in a log file. With a watcher or ICY_PROGRESS=0, the default
            is False.
    """
    if progress is None and (watcher is not None or progress_disabled()):
        return watcher
    if progress is False:
        return watcher
    console = Console(stderr=True, highlight=False)
    display: ProgressWatcher
    if in_notebook():
        display = NotebookWatcher(console)
    elif console.is_terminal or progress:
        display = make_watcher(console)
    else:
        display = SparseWatcher(console)
    return display if watcher is None else Watchers(display, watcher)


def callbacks_of(request: RunRequest, watcher: Watcher | None, progress: bool | None) -> Watcher | None:
    """Return the callbacks of a run in Python: the caller's, a display of progress, and the trackers of its request."""
    return watching(with_progress(watcher, progress), request.track, request.out)


def run_request(request: RunRequest, watcher: Watcher | None, progress: bool | None) -> ProbeResult:
    """Run a request to a function of the library; models may be classes, functions and modules."""
    from .user_models import with_model_names  # imports torch

    named = with_model_names(request, *(name for name in ("model", *SIDES) if hasattr(request, name)))
    return run_plan(make_plan(named), callbacks_of(named, watcher, progress))


def make_watcher(console: Console, engines: bool = False) -> ProgressWatcher:
    """Return the display that suits a console: live on a terminal, else line by line."""
    return (LiveWatcher if console.is_terminal else PlainWatcher)(console, engines=engines)


def in_notebook() -> bool:
    """Return whether this runs in a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class PlainWatcher(ProgressWatcher):
    """Prints a line for every replicate that ends, and a progress line after each minute without output."""

    SILENCE_SECONDS = 60.0
    _spoken = -math.inf

    def started(self, plan: Plan) -> None:
        """Called before the first update."""
        super().started(plan)
        if plan.total:
            self._say(_announcement(plan))

    def read(self, job: Job, readings: Sequence[Reading]) -> None:
        """Print the progress of a row, if nothing was printed for a minute."""
        super().read(job, readings)
        if self.clock() - self._spoken > self.SILENCE_SECONDS:
            row = self.rows[job.row]
            shown = ", ".join(f"{grammar} {accuracy:.2f}" for grammar, accuracy, _ in row.accuracies())
            now = f"; {_left(row) or row.doing}" if row.phase or _left(row) else ""
            self._say(f"[{self.done}/{self.total}] {row.label} at {row.steps} updates: {shown}{now}")

    def filed(self, record: Record) -> None:
        """Print the line of a replicate."""
        super().filed(record)
        self._say(self.line(record))

    def _say(self, text: str) -> None:
        self._spoken = self.clock()
        self.console.print(Text(text), soft_wrap=True)


class SparseWatcher(PlainWatcher):
    """Prints at most one line a minute, to keep the log files of scripts short."""

    def started(self, plan: Plan) -> None:
        """Called before the first update."""
        self._spoken = self.clock()
        super().started(plan)

    def _say(self, text: str) -> None:
        if self.clock() - self._spoken > self.SILENCE_SECONDS:
            super()._say(text)


class LiveWatcher(ProgressWatcher):
    """Live display: a line per active row with its accuracies below it, and a summary."""

    def __init__(self, console: Console, clock: Clock = time.monotonic, engines: bool = False) -> None:
        super().__init__(console, clock, engines)
        self._live = Live(
            console=console, get_renderable=self.render, refresh_per_second=4, transient=True, vertical_overflow="crop"
        )

    def filed(self, record: Record) -> None:
        """Print a line above the display, with --verbose or at a failure."""
        super().filed(record)
        if self.engines or record["failed"]:
            self.console.print(Text(self.line(record), style="red" if record["failed"] else "dim"))

    def started(self, plan: Plan) -> None:
        """Start the display."""
        super().started(plan)
        if plan.total:
            self._live.start()

    def ended(self) -> None:
        """Remove the display."""
        self._live.stop()

    def render(self) -> RenderableType:
        """Return the display as it is now."""
        if self.plan is None:
            return Text("")
        active = [row for row in self.rows.values() if row.active]
        width = max((len(row.label) for row in active), default=0)
        lines: list[RenderableType] = []
        for row in active:
            lines += [_row_line(row, self.clock(), width), Padding(_accuracy_line(row), (0, 0, 0, 2))]
        return Group(*lines, self._summary())

    @property
    def _kind(self) -> str:
        """Return the noun for a row."""
        several = self.plan is not None and len({row.name for row in self.plan.rows}) < len(self.plan.rows)
        return "row" if several else "model"

    def _summary(self) -> Text:
        rows = self.rows.values()
        waiting = sum(row.started is None and row.done < row.total for row in rows)
        parts = [f"{self.done} of {counted(self.total, 'replicate')}", f"{duration(self.clock() - self.begun)} elapsed"]
        if len(rows) > 1:
            complete = sum(row.done == row.total for row in rows)
            parts.insert(0, f"{complete} of {len(rows)} {self._kind}s")
        if waiting:
            parts.append(f"{counted(waiting, self._kind)} waiting")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if (left := self.left()) is not None:
            parts.append(f"about {duration(left)} left")
        if self.done < self.total:
            parts.append("Ctrl-C keeps finished replicates")
        return Text(" · ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")


class NotebookWatcher(LiveWatcher):
    """Live display in the output of a notebook cell; its summary stays after the run."""

    SECONDS = 0.5  # between two changes

    def __init__(self, console: Console, clock: Clock = time.monotonic, engines: bool = False) -> None:
        super().__init__(console, clock, engines)
        self._output: Any = None
        self._shown = -math.inf

    def started(self, plan: Plan) -> None:
        """Start the display."""
        ProgressWatcher.started(self, plan)
        if plan.total:
            from IPython import display

            show: Any = display.display
            self._output = show(self._text(), raw=True, display_id=True)

    def read(self, job: Job, readings: Sequence[Reading]) -> None:
        """Called after every evaluation of every stack."""
        super().read(job, readings)
        self._refresh()

    def filed(self, record: Record) -> None:
        """Called as soon as a replicate is recorded."""
        super().filed(record)
        self._refresh()

    def ended(self) -> None:
        """Show the final summary."""
        self._shown = -math.inf
        self._refresh()

    def _refresh(self) -> None:
        if self._output is not None and self.clock() - self._shown > self.SECONDS:
            self._shown = self.clock()
            self._output.update(self._text(), raw=True)

    def _text(self) -> dict[str, str]:
        page = Console(file=io.StringIO(), width=NOTEBOOK_WIDTH, color_system=None)
        with page.capture() as captured:
            page.print(self.render())
        return {"text/plain": captured.get().rstrip()}


def _row_line(row: RowProgress, now: float, width: int) -> Text:
    elapsed = duration(now - (row.started if row.started is not None else now))
    full = BAR * row.done // row.total
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(row.label.ljust(width), style="bold cyan")
    line.append("  ").append("━" * full, style="green").append("━" * (BAR - full), style="bright_black")
    line.append(f"  {row.done}/{row.total}".ljust(7)).append(f"  {row.steps} updates".ljust(15))
    return line.append(f"{elapsed}, {_left(row) or row.doing}", style="dim")


def _accuracy_line(row: RowProgress) -> Text:
    line = Text()
    for grammar, accuracy, ended in row.accuracies():
        mark = "✓" if ended else " "
        line.append(f"{grammar}\N{NO-BREAK SPACE}", style="dim")
        line.append(f"{accuracy:.2f}{mark}", style="green" if ended else "")
        line.append("  ")
    return line


def _left(row: RowProgress) -> str:
    seconds = row.remaining()
    if seconds is None:
        return ""
    return f"{'about' if row.expected else row.row.job.limit_text()} {duration(seconds)} left"


def _announcement(plan: Plan) -> str:
    on_file = sum(len(row.filed) for row in plan.rows)
    count = len({row.name for row in plan.rows})
    sizes = len({row.facts["hidden size"] for row in plan.rows if "hidden size" in row.facts})
    models = counted(count, "model")
    if len(plan.rows) == count * sizes > count:
        models += f" at {sizes} hidden sizes"
    elif len(plan.rows) > count:
        models += f" in {len(plan.rows)} rows"
    where = (
        f"{plan.device}, {counted(plan.workers, 'worker')}" if plan.device == "cpu" or plan.workers > 1 else plan.device
    )
    where = "a Ray cluster" if plan.runner == "ray" else where
    kept = f"; {on_file} on file in {plan.store.folder}" if on_file else ""
    return f"{counted(plan.total, 'replicate')} of {models} to train on {where}{kept}"
