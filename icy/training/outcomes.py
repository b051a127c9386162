"""Results of training: replicates, readings of their evaluations, and outcomes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icy.core.types import Fields
from icy.records.record import FAILURES


@dataclass(frozen=True, order=True)
class Replicate:
    """One model of a stack: a condition and a seed. Records have the condition in the column `grammar`.

    Attributes:
        condition: in probes and pairs, the grammar that is learned; in games, the kind of distractors; in S2B, the
            speaker; in the recall task, the stimuli; in the study, the grammar of a game.
        seed: seed of the initial weights and of all other random numbers; in the study, the number of an instance.
    """

    condition: str
    seed: int

    @property
    def grammar(self) -> str:
        """The condition, under its name before version 0.3."""
        warnings.warn("Replicate.grammar is now Replicate.condition.", DeprecationWarning, stacklevel=2)
        return self.condition


@dataclass(frozen=True)
class Reading:
    """One replicate's accuracy at one evaluation; `phase` names the phase if a training has several."""

    replicate: Replicate
    steps: int
    accuracy: float
    phase: str = ""


@dataclass
class Outcome:
    """The result of a replicate, or its failure.

    Attributes:
        replicate: the replicate.
        reason: "target", "cap", "budget" or "steps" for a result; for a failure one of FAILURES.
        steps: number of updates, or the loop index with `steps_from_zero`.
        accuracy: accuracy at the end; NaN if training diverged.
        curve: a point per evaluation, with the columns of `JobKind.curve`, by default (steps, accuracy).
        engine: how the stack was trained.
        seconds: this replicate's share of the time of its stacks.
        baseline_steps: updates of the baseline at the same seed, if it reached the target.
        extra: further numbers, by their names in the record; see `JobKind.measures`.
        error: a sentence about the failure, for reasons that are not in FAILURES.
        files: files to keep with the record, by their path in the results folder.
        crossing: the number of updates at which the target was reached, if it was interpolated between two checks.
        baseline_crossing: the same number of the baseline.
    """

    replicate: Replicate
    reason: str
    steps: int
    accuracy: float
    curve: Sequence[Sequence[Any]] = ()
    engine: str = ""
    seconds: float = 0.0
    baseline_steps: int | None = None
    extra: Fields = field(default_factory=dict)
    error: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    crossing: float | None = None
    baseline_crossing: float | None = None

    @property
    def failed(self) -> bool:
        """Whether the replicate failed."""
        return self.error is not None or self.reason in FAILURES


Report = Callable[[list[Reading]], None]
