"""Callbacks that observe a run: the interface of progress displays and trackers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from icy.records.record import Record
from icy.training.job import Job, Reading

from .plan import Plan


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
