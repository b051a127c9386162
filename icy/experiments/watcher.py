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
    """Callbacks that observe a run; override those you need.

    The command line's progress display is one, and every tracker of `icy.experiments.trackers`. All
    methods are called in the calling process.
    """

    plan: Plan | None = field(default=None, init=False)

    def started(self, plan: Plan) -> None:
        """Called before the first update, also if everything is on file and nothing is trained.

        Args:
            plan: the replicates to train, and the results on file.
        """
        self.plan = plan

    def read(self, job: Job, readings: Sequence[Reading]) -> None:
        """Called after every evaluation of every stack.

        Args:
            job: the stack.
            readings: one per replicate: step, accuracy and more.
        """

    def filed(self, record: Record) -> None:
        """Called as soon as a replicate is recorded.

        Args:
            record: of the replicate.
        """

    def found(self, record: Record) -> None:
        """Called when another run in the same folder turns out to have recorded a replicate of the plan.

        Args:
            record: of the replicate.
        """

    def ended(self) -> None:
        """Called after the last update, also after an interrupt or an error."""


class Watchers(Watcher):
    """Several watchers as one: each is called in the order given.

    Args:
        *watchers: who is told.

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
        """Call each."""
        super().started(plan)
        for watcher in self.watchers:
            watcher.started(plan)

    def read(self, job: Job, readings: Sequence[Reading]) -> None:
        """Call each."""
        for watcher in self.watchers:
            watcher.read(job, readings)

    def filed(self, record: Record) -> None:
        """Call each."""
        for watcher in self.watchers:
            watcher.filed(record)

    def found(self, record: Record) -> None:
        """Call each."""
        for watcher in self.watchers:
            watcher.found(record)

    def ended(self) -> None:
        """Call each, even if one raises: they may have files to close."""
        with contextlib.ExitStack() as stack:
            for watcher in reversed(self.watchers):
                stack.callback(watcher.ended)
