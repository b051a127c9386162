"""Progress of each row of a run, which the displays render."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console

from icy.core.text import duration
from icy.records.kinds import RowKey
from icy.records.record import Record, checked_accuracy
from icy.training.job import Job, Reading, Replicate

from .expected_updates import ExpectedUpdates
from .plan import Plan, Row

# -- callbacks that observe a run: the interface of progress displays and trackers -------------------------------------


@dataclass
class Watcher:
    """Callbacks that observe a run. Override the methods that you need.

    The command line's progress display and the trackers in `icy.experiments.trackers` are watchers. All methods are
    called in the calling process.
    """

    plan: Plan | None = field(default=None, init=False)

    def started(self, plan: Plan) -> None:
        """Called before the first update, also if all results are on file.

        Args:
            plan: the replicates to train, and the results on file.
        """
        self.plan = plan

    def read(self, job: Job, readings: Sequence[Reading]) -> None:
        """Called after every evaluation of every stack.

        Args:
            job: the stack.
            readings: a reading per replicate: step, accuracy and more.
        """

    def filed(self, record: Record) -> None:
        """Called as soon as a replicate is recorded.

        Args:
            record: record of the replicate.
        """

    def found(self, record: Record) -> None:
        """Called when another run in the same folder has recorded a replicate of the plan.

        Args:
            record: record of the replicate.
        """

    def ended(self) -> None:
        """Called after the last update, also after an interrupt or an error."""


class Watchers(Watcher):
    """Several watchers as one. They are called in the given order.

    Args:
        *watchers: the watchers.

    Example:
        >>> class Loud(Watcher):
        ...     def ended(self) -> None:
        ...         print("ended")
        >>> Watchers(Loud(), Loud()).ended()
        ended
        ended
    """

    def __init__(self, *watchers: Watcher) -> None:
        super().__init__()
        self.watchers = watchers

    def started(self, plan: Plan) -> None:
        """Forward the event to every watcher."""
        super().started(plan)
        for watcher in self.watchers:
            watcher.started(plan)

    def read(self, job: Job, readings: Sequence[Reading]) -> None:
        """Forward the event to every watcher."""
        for watcher in self.watchers:
            watcher.read(job, readings)

    def filed(self, record: Record) -> None:
        """Forward the event to every watcher."""
        for watcher in self.watchers:
            watcher.filed(record)

    def found(self, record: Record) -> None:
        """Forward the event to every watcher."""
        for watcher in self.watchers:
            watcher.found(record)

    def ended(self) -> None:
        """Forward the event to every watcher, even if a watcher raises an error: others may have files to close."""
        with contextlib.ExitStack() as stack:
            for watcher in reversed(self.watchers):
                stack.callback(watcher.ended)


AT_MOST = "at most"  # the words before the remaining time of a job that may end before its limit
Clock = Callable[[], float]
PREFIXES = {"hidden size": "E=", "V": "V=", "w": "w=", "target": "target ", "cap": "cap ", "max updates": "updates "}


@dataclass
class RowProgress:
    """Progress of one row.

    Attributes:
        label: the model, and the settings that distinguish the row from others.
        row: the row of the plan.
        latest: the last reading of every replicate that has been evaluated.
        finished: records since the run began.
        baseline_steps: the known updates of the baseline, by seed.
        started: time of the first reading.
        before: updates of each replicate at its first reading; above 0 if its training resumed from a checkpoint.
        updated: time of the last reading.
        phase: phase of the last reading.
        expected: updates that few similar records exceed (`ExpectedUpdates`), for replicates that may end early.
    """

    label: str
    row: Row
    latest: dict[Replicate, Reading] = field(default_factory=dict)
    finished: dict[Replicate, Record] = field(default_factory=dict)
    baseline_steps: dict[int, float] = field(default_factory=dict)
    started: float | None = None
    before: dict[Replicate, int] = field(default_factory=dict)
    updated: float = 0.0
    phase: str = ""
    expected: dict[Replicate, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.baseline_steps = {s: n for s, n in self.row.baselines().items() if not isinstance(n, str)}

    @property
    def doing(self) -> str:
        """Description of the current phase, shown while the time left is not known."""
        return self.row.job.phase_text(self.phase) or self.row.job.waiting_text()

    @property
    def total(self) -> int:
        """Number of replicates of the row."""
        return len(self.row.job.replicates)

    @property
    def done(self) -> int:
        """Number of replicates on file."""
        return len(self.row.filed) + len(self.finished)

    @property
    def active(self) -> bool:
        """Whether the row is being trained."""
        return self.started is not None and self.done < self.total

    @property
    def steps(self) -> int:
        """Largest number of updates of the row's replicates."""
        return max((r.steps for r in self.latest.values()), default=0)

    def read(self, readings: Sequence[Reading], now: float) -> None:
        """Record the readings of an evaluation."""
        self.updated = now
        new_phase = self.phase != readings[0].phase  # each phase counts its updates from zero
        if self.started is None or new_phase:
            self.started, self.before = now, {}
        for reading in readings:  # a stack may resume from a checkpoint
            self.before.setdefault(reading.replicate, reading.steps)
        if new_phase:
            self.phase, self.latest = readings[0].phase, {}
        self.latest.update({r.replicate: r for r in readings})

    def filed(self, record: Record) -> None:
        """Record a replicate that ended."""
        replicate = Replicate(record["grammar"], record["seed"])
        self.finished[replicate] = record
        if not record["failed"]:
            known = self.row.job.baselines_in([record])
            self.baseline_steps |= {seed: steps for seed, steps in known.items() if not isinstance(steps, str)}

    def accuracies(self) -> Iterator[tuple[str, float, bool]]:
        """Yield each grammar, the mean accuracy in the last readings of its seeds, and whether all seeds are done."""
        on_file = [r for r in self.row.filed if r.get("accuracy") is not None]
        readings = {(r["grammar"], r["seed"]): checked_accuracy(r) for r in on_file}
        readings |= {(r.condition, r.seed): reading.accuracy for r, reading in self.latest.items()}
        ended = {(r["grammar"], r["seed"]) for r in self.row.filed} | {(r.condition, r.seed) for r in self.finished}
        for grammar in dict.fromkeys(r.condition for r in self.row.job.replicates):
            mine = [(r.condition, r.seed) for r in self.row.job.replicates if r.condition == grammar]
            seen = [readings[m] for m in mine if m in readings]
            if seen:
                yield grammar, sum(seen) / len(seen), all(m in ended for m in mine)

    def remaining(self) -> float | None:
        """Return the seconds until every replicate has its expected updates, at the mean pace so far; None if unknown.

        Without similar records, and after the expected updates, it is the time until the limit, which is known when
        concat has finished at the same seed. On a CPU the time of a stack is
        the sum over its replicates; on a GPU, about the maximum.
        """
        waiting = [r for r in self.row.missing if r not in self.finished]
        if self.started is None or self.updated <= self.started or not waiting:
            return 0.0 if not waiting else None
        limits = [self._end(r) for r in waiting]
        if self.row.job.phase_text(self.phase) is not None or None in limits:
            return None
        left = [max(0, (limit or 0) - self._steps(r)) for limit, r in zip(limits, waiting, strict=True)]
        made = [self._steps(r) - self.before.get(r, 0) for r in self.latest]
        elapsed = self.updated - self.started
        together = self.row.job.device == "cpu"
        work, pace = (sum(left), sum(made)) if together else (max(left), max(made))
        return work * elapsed / pace if pace else None

    def _end(self, replicate: Replicate) -> float | None:
        """Return the expected updates of a replicate, or its maximum; None if unknown."""
        expected = self.expected.get(replicate, math.inf)
        limit = self.row.job.length(self.baseline_steps.get(replicate.seed))
        if not self._steps(replicate) < expected < math.inf:
            return limit
        return expected if limit is None else min(expected, limit)

    def _steps(self, replicate: Replicate) -> int:
        return self.latest[replicate].steps if replicate in self.latest else 0


class ProgressWatcher(Watcher):
    """Tracks the progress of every row; subclasses display it."""

    def __init__(self, console: Console, clock: Clock = time.monotonic, engines: bool = False) -> None:
        super().__init__()
        self.console, self.clock, self.engines = console, clock, engines
        self.rows: dict[RowKey, RowProgress] = {}
        self._of_key: dict[str, RowProgress] = {}
        self.begun = clock()

    def started(self, plan: Plan) -> None:
        """Called before the first update."""
        super().started(plan)
        self.begun = self.clock()
        for row, label in zip(plan.rows, _labels(plan), strict=True):
            self.rows[row.job.row] = RowProgress(label, row)
            self._of_key.update(dict.fromkeys(map(row.job.key, row.job.replicates), self.rows[row.job.row]))
        early = [row for row in self.rows.values() if row.row.missing and row.row.job.limit_text() == AT_MOST]
        if early:  # their limit, often twenty times concat's updates, would be a poor estimate
            updates = ExpectedUpdates(plan, [record for row in plan.rows for record in row.filed])
            for progress in early:
                found = updates.of_row(progress.row)
                progress.expected = {r: most.high for r, most in found.items() if not most.capped}

    def read(self, job: Job, readings: Sequence[Reading]) -> None:
        """Called after every evaluation of every stack."""
        self.rows[job.row].read(readings, self.clock())

    def filed(self, record: Record) -> None:
        """Called as soon as a replicate is recorded."""
        self._of_key[record["key"]].filed(record)

    def found(self, record: Record) -> None:
        """Count a replicate that another run recorded."""
        self._of_key[record["key"]].filed(record)

    @property
    def done(self) -> int:
        """Number of replicates on file."""
        return sum(row.done for row in self.rows.values())

    @property
    def total(self) -> int:
        """Number of replicates of the whole run."""
        return sum(row.total for row in self.rows.values())

    @property
    def failed(self) -> int:
        """Number of replicates that failed since the run began."""
        return sum(record["failed"] for row in self.rows.values() for record in row.finished.values())

    def left(self) -> float | None:
        """Return the seconds left, at the mean pace so far; None before six replicates have ended."""
        ended = sum(len(row.finished) for row in self.rows.values())
        if len(self.rows) < 2 or ended < 6:
            return None
        return (self.clock() - self.begun) / ended * (self.total - self.done)

    def line(self, record: Record) -> str:
        """Return the line that reports the end of a replicate."""
        row = self._of_key[record["key"]]
        engine = f", engine {record['engine']}" if self.engines and record.get("engine") else ""
        if record["failed"]:
            ended = f"failed: {record['error']}"
        else:
            ended = f"{row.row.job.summary(record)}, {duration(record['seconds'])}"
        return f"[{self.done}/{self.total}] {row.label} {record['grammar']} seed {record['seed']}: {ended}{engine}"


def _labels(plan: Plan) -> list[str]:
    """Return for each row the shortest label that distinguishes the row from the others."""
    models = {row.name: row.job.short_name for row in plan.rows}
    names = list(models.values())
    short = {model: name if names.count(name) == 1 else model for model, name in models.items()}
    return [
        " ".join([short[row.name], *(PREFIXES.get(n, "") + row.facts[n] for n in plan.varying if n in row.facts)])
        for row in plan.rows
    ]
