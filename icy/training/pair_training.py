"""Training of pairs: pre-training of both sides on a language, then the game."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from icy.config.protocols import BASELINE, SCRATCH, Protocol
from icy.core.types import Choices
from icy.records.record import NOT_LEARNED
from icy.training.language_job import LanguageJob, PairJob
from icy.training.pair_settings import LEARNING_ORDER

from .engine import Run
from .job import Outcome, Reading, Replicate, Report
from .lockstep import Checkpoints, in_groups
from .pair_game import PairStack, PlayingPair
from .population_game import PopulationStack
from .task_models import make_pair, taught_pair
from .weights import unpack_weights

# -- pre-training ------------------------------------------------------------------------------------------------------


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


def pretrain(
    job: PairJob, side: str, replicates: Sequence[Replicate], report: Report | None
) -> dict[Replicate, PretrainedSide]:
    """Pre-train one side of several pairs, each on its own language."""
    own = job.settings
    lesson = replace(PRETRAINING, target=own.target)
    alone = LanguageJob(
        settings=own.alone(side, own.pretrain_representation, lesson=lesson),
        replicates=tuple(replicates),
        languages=job.languages,
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


def train_pairs(job: PairJob, report: Report | None = None) -> Iterator[Outcome]:
    """Pre-train and play a job's pairs in lockstep; yield each when it ends.

    Games with checkpoints of different steps are played as separate stacks.

    Args:
        job: the job. Unless the protocol fixes the updates of the game, concat of each seed must be among its
            replicates or its baselines.
        report: called with the readings of every check.
    """
    stack = PairStack if job.settings.population.is_pair else PopulationStack

    def train(part: PairJob, checkpoints: Checkpoints) -> Iterator[Outcome]:
        """Resume games that have checkpoints; else pre-train and play."""
        game = stack.from_checkpoints(part, checkpoints)
        if game is None:
            players = yield from _players(part, report)
            game = stack(part, players, checkpoints) if players else None
        if game is not None:
            yield from game.play(report)

    yield from in_groups(job, train)


def _players(job: PairJob, report: Report | None) -> Generator[Outcome, None, list[PlayingPair]]:
    """Pre-train the pairs that have a grammar; return the pairs that can play, and yield failures of pre-training."""
    scratch = [r for r in job.replicates if r.condition == SCRATCH]
    taught = [r for r in job.replicates if r.condition != SCRATCH]
    players = [PlayingPair(r, job.settings.limit(0), make_pair(job.settings, r.seed, job.training)) for r in scratch]
    # If concat is known to have failed at the seed, the length of the game is undefined.
    lacking = [r for r in taught if job.settings.updates is None and isinstance(job.baselines.get(r.seed), str)]
    for replicate in lacking:
        taught.remove(replicate)
        yield _failure(replicate, "no_baseline", 0, 0.0, {})
    if taught:
        pretrained = {side: _pretrained(job, side, taught, report) for side in LEARNING_ORDER}
        baselines = {**measured_baselines(pretrained), **job.baselines}
        for replicate in taught:
            sides = {side: pretrained[side][replicate] for side in LEARNING_ORDER}
            ready = _ready_player(job, replicate, sides, baselines)
            if isinstance(ready, Outcome):
                yield ready
            else:
                players.append(ready)
    return players


def _pretrained(
    job: PairJob, side: str, replicates: Sequence[Replicate], report: Report | None
) -> dict[Replicate, PretrainedSide]:
    """Return one side of several pairs: pre-trained now, or the saved models of a probe."""
    if not job.settings.pretrained:
        return pretrain(job, side, replicates, report)
    saved = {replicate: job.saved_sides[side, replicate] for replicate in replicates}
    return {
        replicate: PretrainedSide(one.steps, one.accuracy, unpack_weights(one.weights()) if one.reached else None, 0.0)
        for replicate, one in saved.items()
    }


def _ready_player(
    job: PairJob, replicate: Replicate, sides: dict[str, PretrainedSide], baselines: dict[int, float | str]
) -> PlayingPair | Outcome:
    """Return a pair after pre-training, or the outcome if pre-training failed."""
    before: Choices = {f"{side}_steps": trained.steps for side, trained in sides.items()}
    seconds = sum(trained.seconds for trained in sides.values())
    # A game with a fixed length does not depend on concat, which may not be on file.
    baseline = baselines.get(replicate.seed) if job.settings.updates is None else None
    known = int(baseline) if isinstance(baseline, int | float) else None
    if known is None and job.settings.updates is None and replicate.condition != BASELINE:
        return _failure(replicate, "no_baseline", 0, seconds, {})  # as if this had been known before pre-training
    if not all(trained.weights is not None for trained in sides.values()):
        readings = {f"{side}_accuracy": trained.accuracy for side, trained in sides.items()}
        diverged = [side for side, trained in sides.items() if trained.diverged]
        lost = {"diverged": " and ".join(diverged)} if diverged else {}
        steps = max(trained.steps for trained in sides.values())
        return _failure(replicate, NOT_LEARNED, steps, seconds, {**before, **readings, **lost})
    weights = {side: trained.weights for side, trained in sides.items() if trained.weights is not None}
    pair = taught_pair(job.settings, replicate.seed, job.training, weights)
    return PlayingPair(replicate, job.settings.limit(known or 0), pair, before, seconds=seconds, baseline=known)


def _failure(replicate: Replicate, reason: str, steps: int, seconds: float, extra: Choices) -> Outcome:
    return Outcome(replicate, reason, steps, math.nan, [], "", seconds, extra=extra)
