"""Pre-training: each side of a pair learns the language by itself, until it reaches the target."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from icy.config.protocols import BASELINE, Protocol
from icy.records.record import NOT_LEARNED
from icy.training.engine import Run
from icy.training.job import Outcome, Reading, Replicate, Report
from icy.training.probe_job import ProbeJob

from .pair_job import LEARNING_ORDER, PairJob

PRETRAINING = Protocol("pretraining", "", "", target=0.99, cap=math.inf, stops_at_target=True, measure="accuracy")


@dataclass
class PretrainedSide:
    """One side of a pair after pre-training.

    Attributes:
        steps: updates until the target or the limit.
        accuracy: the last accuracy.
        diverged: whether training ended because the loss was not finite.
        weights: weights of the model; None if the model did not reach the target.
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
        """Train as in other runs, and add an entry to `sides` for each replicate that ends."""
        self.sides: dict[Replicate, PretrainedSide] = {}
        yield from super().go(report)

    def _verdict(self, reading: Reading, reached: float | None) -> str | None:
        if reached is not None:
            return "target"
        return "max_steps" if reading.steps >= self.settings.max_steps else None

    def _outcome(self, replicate: Replicate, reason: str, steps: int, accuracy: float, **extra: float) -> Outcome:
        place, seconds = self.active.index(replicate), self.seconds[replicate]
        weights = self.learner.weights(place) if reason == "target" else None
        outcome = super()._outcome(replicate, reason, steps, accuracy, **extra)
        self.sides[replicate] = PretrainedSide(steps, outcome.curve[-1][1], weights, seconds, reason == "diverged")
        return outcome

    def _compared(self, ended: list[Outcome]) -> Iterator[Outcome]:
        yield from ended


def pretrain(
    job: PairJob, side: str, replicates: Sequence[Replicate], report: Report | None
) -> dict[Replicate, PretrainedSide]:
    """Pre-train one side of several pairs, each on its own language."""
    settings, task = job.settings, job.task.alone(side, job.task.pretrain_representation)
    protocol = replace(PRETRAINING, target=job.protocol.target)
    alone = ProbeJob(
        task,
        protocol,
        settings,
        replicates=tuple(replicates),
        languages=job.languages,
        draws=job.draws,
        frequencies=job.frequencies,
        device=job.device,
        engine=job.engine,
    )
    run = Pretraining(alone)

    def report_phase(readings: list[Reading]) -> None:
        if report is not None:
            report([replace(reading, phase=side) for reading in readings])

    for _ in run.go(report_phase):
        pass
    return run.sides


def measured_baselines(pretrained: dict[str, dict[Replicate, PretrainedSide]]) -> dict[int, float | str]:
    """Return the supervised steps of concat by seed, of the slower side, for the seeds that were trained here."""
    baselines: dict[int, float | str] = {}
    for replicate in pretrained["sender"]:
        if replicate.condition == BASELINE:
            sides = [pretrained[side][replicate] for side in LEARNING_ORDER]
            done = all(side.weights is not None for side in sides)
            baselines[replicate.seed] = max(side.steps for side in sides) if done else NOT_LEARNED
    return baselines
