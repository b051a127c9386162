"""What is told of a run while it goes on: the one interface of progress displays and trackers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from icy.records.record import Record
from icy.training.job import Job, Reading

from .plan import Plan


@dataclass
class Watcher:
    """What is told of a probe while it runs; override what you want to know.

    The command line's progress display is one, and every tracker of `icy.experiments.trackers`. All
    methods are called in the calling process.
    """

    plan: Plan | None = field(default=None, init=False)

    def started(self, plan: Plan) -> None:
        """Before the first update; also where all is on file, and nothing is going to be trained."""
        self.plan = plan

    def read(self, job: Job, readings: Sequence[Reading]) -> None:
        """After every check of every stack."""

    def filed(self, record: Record) -> None:
        """As soon as a replicate is on file."""

    def ended(self) -> None:
        """After the last update, also when it was interrupted or failed."""


class Watchers(Watcher):
    """Several watchers as one: each is told everything, in the order given.

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
        """Pass it on."""
        super().started(plan)
        for watcher in self.watchers:
            watcher.started(plan)

    def read(self, job: Job, readings: Sequence[Reading]) -> None:
        """Pass it on."""
        for watcher in self.watchers:
            watcher.read(job, readings)

    def filed(self, record: Record) -> None:
        """Pass it on."""
        for watcher in self.watchers:
            watcher.filed(record)

    def ended(self) -> None:
        """Pass it on, to all of them even if one raises: they may have files to close."""
        with contextlib.ExitStack() as stack:
            for watcher in reversed(self.watchers):
                stack.callback(watcher.ended)
