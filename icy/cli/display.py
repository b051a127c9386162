"""Progress displays on stderr: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from icy.experiments.plan import Plan
from icy.records.record import Record
from icy.training.job import Job, Reading

from .output import counted, duration
from .progress import Clock, ProgressWatcher, RowProgress

BAR = 10  # characters


class PlainWatcher(ProgressWatcher):
    """Prints a line for every replicate that ends, and one now and then in between."""

    SILENCE_SECONDS = 60.0
    _spoken = -math.inf

    def started(self, plan: Plan) -> None:
        """Called before the first update."""
        super().started(plan)
        self._say(_announcement(plan))

    def read(self, job: Job, readings: Sequence[Reading]) -> None:
        """Print a sign of life, if nothing was printed for a while."""
        super().read(job, readings)
        if self.clock() - self._spoken > self.SILENCE_SECONDS:
            row = self.rows[job.row]
            shown = ", ".join(f"{grammar} {accuracy:.2f}" for grammar, accuracy, _ in row.accuracies())
            now = f"; {_left(row) or row.doing}" if row.phase or _left(row) else ""
            self._say(f"[{self.done}/{self.total}] {row.label} at {row.steps} steps: {shown}{now}")

    def filed(self, record: Record) -> None:
        """Print the line of a replicate."""
        super().filed(record)
        self._say(self.line(record))

    def _say(self, text: str) -> None:
        self._spoken = self.clock()
        self.console.print(Text(text), soft_wrap=True)


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

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Display progress while open."""
        with self._live:
            yield

    def render(self) -> RenderableType:
        """Return the display as it is now."""
        if self.plan is None:
            return Text("")
        active = [row for row in self.rows.values() if row.active]
        width = max((len(row.label) for row in active), default=0)
        shown: list[RenderableType] = []
        for row in active:
            shown += [_row_line(row, self.clock(), width), Padding(_accuracy_line(row), (0, 0, 0, 2))]
        return Group(*shown, self._summary())

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
            parts.append(f"some {duration(left)} left")
        parts.append("Ctrl-C keeps what is finished")
        return Text(" · ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")


def _row_line(row: RowProgress, now: float, width: int) -> Text:
    elapsed = duration(now - (row.started if row.started is not None else now))
    full = BAR * row.done // row.total
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(row.label.ljust(width), style="bold cyan")
    line.append("  ").append("━" * full, style="green").append("━" * (BAR - full), style="bright_black")
    line.append(f"  {row.done}/{row.total}".ljust(7)).append(f"  {row.steps} steps".ljust(13))
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
    return f"{row.row.job.limit_text()} {duration(seconds)} left"


def _announcement(plan: Plan) -> str:
    on_file = sum(len(row.filed) for row in plan.rows)
    sizes, count = len(plan.hidden_sizes), len({row.name for row in plan.rows})
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
