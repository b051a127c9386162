"""The cost of a job: the expected updates of its replicates, and the time of an update, timed or counted."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, replace
from typing import Self

from icy.records.kinds import job_kind

from .job_training import JobTraining
from .outcomes import Reading
from .work import Work

ASSUMED_STEPS = 500  # of a baseline, in estimates without a baseline on file


@dataclass(frozen=True, kw_only=True)
class JobCost(JobTraining):
    """The methods of a job that estimate its cost; see `Job`."""

    @property
    def update_cost(self) -> float:
        """Relative cost of one update of one replicate, used to order the rows of a plan."""
        return float(self.parameters.get("true", 1))

    def work(self) -> Work | None:
        """Return the work of an update of one replicate, in arbitrary units; None if only timing can determine it."""
        return Work(0.0, self.update_cost, 0.0, self.update_cost)

    def rehearse(self, updates: int) -> float:
        """Return the seconds of one update of all replicates; discard the results.

        They are timed by the function `rehearse` of the kind; by default between two evaluations of the training.
        """
        if (kind := job_kind(self.kind)).rehearse is not None:
            return float(kind.function("rehearse")(self, updates))
        evaluations: list[tuple[float, list[Reading]]] = []

        def report(readings: list[Reading]) -> None:
            evaluations.append((time.perf_counter(), readings))
            if len(evaluations) == 2:
                raise _Enough

        with contextlib.suppress(_Enough):
            for _ in replace(self, checkpoints=False).train(report):
                pass
        if len(evaluations) < 2:
            return math.nan
        (began, first), (ended, last) = evaluations
        steps = max(r.steps for r in last) - max(r.steps for r in first)
        together = len({r.replicate for r in last})  # 1 if replicates are trained one after another
        return (ended - began) / steps * len(self.replicates) / together if steps > 0 else math.nan

    @property
    def rehearsal(self) -> Self:
        """The job to time for an estimate, with baselines, because training may need these."""
        return replace(self, baselines={r.seed: 1 for r in self.replicates})

    @property
    def alike(self) -> str:
        """A key that is equal for jobs with updates of equal cost; by default each row has its own key."""
        return f"{self.row} {self.engine} {len(self.replicates)}"

    def expected_steps(self, baseline: float | None) -> float:
        """Return the expected updates of a replicate, given the mean of the baselines on file, if there are any."""
        own = self.length(None if baseline is None else round(baseline))
        return ASSUMED_STEPS if own is None else own


class _Enough(BaseException):  # not an Exception, which `train` may catch
    """Ends a rehearsal after two evaluations."""
