"""Pre-training: each side of a pair learns the language by itself, until it reaches the target."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from icy.config.protocols import BASELINE, Protocol
from icy.records.record import NOT_LEARNT
from icy.training.engine import Run
from icy.training.job import Outcome, Reading, Replicate, Report
from icy.training.probe_job import ProbeJob

from .pair_job import PairJob

LEARNING_ORDER = ("receiver", "sender")  # of the sides
PRETRAINING = Protocol("pretraining", "", "", target=0.99, cap=math.inf, stops_at_target=True, measure="accuracy")


@dataclass
class Learnt:
    """One side after pre-training.

    Attributes:
        steps: updates until the target, or until it was given up.
        accuracy: the last reading.
        diverged: whether it ended because its loss is no longer finite.
        weights: of the model; None if it did not reach the target.
        seconds: this replicate's share of the time.
    """

    steps: int
    accuracy: float
    weights: dict[str, Tensor] | None
    seconds: float
    diverged: bool = False


class Pretraining(Run):
    """Supervised training of one side, each replicate until it reaches the target."""

    needs_baseline = False

    def go(self, report: Report | None) -> Iterator[Outcome]:
        """Train as any run does; `learnt` fills as replicates end."""
        self.learnt: dict[Replicate, Learnt] = {}
        yield from super().go(report)

    def _verdict(self, reading: Reading, reached: float | None) -> str | None:
        if reached is not None:
            return "target"
        return "max_steps" if reading.steps >= self.settings.max_steps else None

    def _outcome(self, replicate: Replicate, reason: str, steps: int, accuracy: float, **extra: float) -> Outcome:
        place, seconds = self.active.index(replicate), self.seconds[replicate]
        weights = self.learner.weights(place) if reason == "target" else None
        outcome = super()._outcome(replicate, reason, steps, accuracy, **extra)
        self.learnt[replicate] = Learnt(steps, outcome.curve[-1][1], weights, seconds, reason == "diverged")
        return outcome

    def _compared(self, ended: list[Outcome]) -> Iterator[Outcome]:
        yield from ended


def pretrain(
    job: PairJob, side: str, replicates: Sequence[Replicate], report: Report | None
) -> dict[Replicate, Learnt]:
    """Pre-train one side of several pairs, each on its language."""
    settings, task = job.settings, job.task.alone(side, job.task.pretrain_representation)
    protocol = replace(PRETRAINING, target=job.protocol.target)
    alone = ProbeJob(
        task,
        protocol,
        settings,
        replicates=tuple(replicates),
        languages=job.languages,
        device=job.device,
        engine=job.engine,
    )
    run = Pretraining(alone)

    def pass_on(readings: list[Reading]) -> None:
        if report is not None:
            report([replace(reading, phase=side) for reading in readings])

    for _ in run.go(pass_on):
        pass
    return run.learnt


def measured_baselines(learnt: dict[str, dict[Replicate, Learnt]]) -> dict[int, float | str]:
    """Return concat's supervised steps by seed (the slower side's), as far as it was trained here."""
    found: dict[int, float | str] = {}
    for replicate in learnt["sender"]:
        if replicate.condition == BASELINE:
            sides = [learnt[side][replicate] for side in LEARNING_ORDER]
            done = all(side.weights is not None for side in sides)
            found[replicate.seed] = max(side.steps for side in sides) if done else NOT_LEARNT
    return found
