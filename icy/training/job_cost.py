"""The cost of a job: the time of an update, and the maximum number of updates."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Self

from icy.records.kinds import job_kind

from .job_training import JobTraining
from .outcomes import Reading


@dataclass(frozen=True, kw_only=True)
class JobCost(JobTraining):
    """The methods of a job that estimate its cost; see `Job`."""

    @property
    def update_cost(self) -> float:
        """Relative cost of one update of one replicate, used to order the rows of a plan."""
        return float(self.parameters.get("true", 1))

    def rehearse(self, updates: int) -> float:
        """Return the seconds of one update of all replicates; discard the results.

        They are timed by the function `rehearse` of the kind; by default between two evaluations of a replicate,
        or over the whole training if there are fewer.
        """
        if (kind := job_kind(self.kind)).rehearse is not None:
            return float(kind.function("rehearse")(self, updates))
        evaluations: list[tuple[float, list[Reading]]] = []

        def report(readings: list[Reading]) -> None:
            if not evaluations or readings[0].replicate == evaluations[0][1][0].replicate:
                evaluations.append((time.perf_counter(), readings))
            if len(evaluations) == 2:
                raise _Enough

        start = time.perf_counter()
        with contextlib.suppress(_Enough):
            steps = [outcome.steps for outcome in replace(self, checkpoints=False).train(report)]
        if len(evaluations) < 2:  # the training has ended
            return (time.perf_counter() - start) / fmean(steps) if any(steps) else math.nan
        (began, first), (ended, last) = evaluations
        updates = max(r.steps for r in last) - max(r.steps for r in first)
        together = len({r.replicate for r in last})  # 1 if replicates are trained one after another
        return (ended - began) / updates * len(self.replicates) / together if updates > 0 else math.nan

    @property
    def rehearsal(self) -> Self:
        """The job to time for an estimate, with baselines, because training may need these."""
        return replace(self, baselines={r.seed: 1 for r in self.replicates})

    @property
    def alike(self) -> str:
        """A key that is equal for jobs with updates of equal cost; by default each row has its own key."""
        return f"{self.row} {self.engine} {len(self.replicates)}"

    def most_updates(self, baseline: float | None) -> int | None:
        """Return the maximum number of updates of a replicate, also if `length` is not known; None for no maximum."""
        return self.length(baseline)


class _Enough(BaseException):  # not an Exception, which `train` may catch
    """Ends a rehearsal after two evaluations."""
