"""The cost of a job: how many updates its replicates take, and how long one takes, timed or counted."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, replace
from typing import Self

from .job_training import JobTraining
from .outcomes import Reading
from .work import Work

ASSUMED_STEPS = 500  # of a baseline, in estimates, where none is on file


@dataclass(frozen=True)
class ExpectedSteps:
    """How many updates replicates may take.

    Attributes:
        steps: of the baseline, or of every replicate where there is none.
        known: whether results on file say so.
        cap: the longest another replicate is trained, as a multiple of these.
        apart: whether baselines are trained for as long as `steps`, and others up to the cap.
    """

    steps: float
    known: bool
    cap: float = 1
    apart: bool = False


@dataclass(frozen=True, kw_only=True)
class JobCost(JobTraining):
    """The part of a job that estimates ask for; see `Job`."""

    @property
    def update_cost(self) -> float:
        """Relative cost of one update of one replicate; orders the rows of a plan."""
        return float(self.parameters.get("true", 1))

    def work(self) -> Work | None:
        """Return what an update of one replicate consists of, in any unit; None where only timing tells."""
        return Work(0.0, self.update_cost, 0.0, self.update_cost)

    def rehearse(self, updates: int) -> float:
        """Return the seconds of one update of all replicates: those between two evaluations. Nothing is kept."""
        seen: list[tuple[float, list[Reading]]] = []

        def report(readings: list[Reading]) -> None:
            seen.append((time.perf_counter(), readings))
            if len(seen) == 2:
                raise _Enough

        with contextlib.suppress(_Enough):
            for _ in replace(self, checkpoints=False).train(report):
                pass
        if len(seen) < 2:
            return math.nan
        (began, first), (ended, last) = seen
        steps = max(r.steps for r in last) - max(r.steps for r in first)
        together = len({r.replicate for r in last})  # of those that are trained one after another, one
        return (ended - began) / steps * len(self.replicates) / together if steps > 0 else math.nan

    @property
    def rehearsal(self) -> Self:
        """The job that is rehearsed in its place for an estimate: with baselines, as it may need them."""
        return replace(self, baselines={r.seed: 1 for r in self.replicates})

    @property
    def alike(self) -> str:
        """What jobs have in common whose updates cost the same; the default tells all rows apart."""
        return f"{self.row} {self.engine} {len(self.replicates)}"

    def expected_steps(self, baseline: float | None) -> ExpectedSteps:
        """Return how many updates replicates may take, given the mean of the baselines on file, if there are any."""
        own = self.length(None if baseline is None else round(baseline))
        return ExpectedSteps(ASSUMED_STEPS if own is None else own, baseline is not None)


class _Enough(BaseException):  # no Exception: a `train` that catches those lets it pass
    """Two evaluations have been made."""
