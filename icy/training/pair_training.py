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

from .engine import Probes
from .job import Outcome, Reading, Replicate, Report
from .lockstep import Checkpoints, Lockstep, in_groups, seconds_of_update
from .pair_game import PairGame, Players, new_players
from .task_models import taught_pair
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
    course = Probes(alone)

    def report_phase(readings: list[Reading]) -> None:
        if report is not None:
            report([replace(reading, phase=side) for reading in readings])

    sides = {}
    for outcome in Lockstep(course).outcomes(report_phase):
        reached, diverged = outcome.reason == "target", outcome.reason == "diverged"
        weights = course.learner.weights(course.place(outcome.replicate)) if reached else None
        last = outcome.curve[-1][1]
        sides[outcome.replicate] = PretrainedSide(outcome.steps, last, weights, outcome.seconds, diverged)
    return sides


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

    def train(part: PairJob, checkpoints: Checkpoints) -> Iterator[Outcome]:
        """Resume games that have checkpoints; else pre-train and play."""
        if checkpoints.updates(part.replicates[0]):
            game = Lockstep(_new_game(part), checkpoints)
            if game.course.updates:
                yield from game.outcomes(report)
                return
        players = yield from _players(part, report)
        if players:
            yield from Lockstep(PairGame(part, players), checkpoints).outcomes(report)

    yield from in_groups(job, train)


def rehearse(job: PairJob, updates: int) -> float:
    """Time some updates of the game of all pairs, and discard the results; see `seconds_of_update`."""
    return seconds_of_update(_new_game(job), updates)


def _new_game(job: PairJob) -> PairGame:
    return PairGame(job, [new_players(job, replicate) for replicate in job.replicates])


def _players(job: PairJob, report: Report | None) -> Generator[Outcome, None, list[Players]]:
    """Pre-train the pairs that have a grammar; return the pairs that can play, and yield failures of pre-training."""
    taught = [r for r in job.replicates if r.condition != SCRATCH]
    players = [new_players(job, r) for r in job.replicates if r.condition == SCRATCH]
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
) -> Players | Outcome:
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
    models = [taught_pair(job.settings, replicate.seed, job.training, weights)]
    steps = job.settings.limit(known or 0)
    return Players(replicate, seconds=seconds, steps=steps, models=models, before=before, baseline=known)


def _failure(replicate: Replicate, reason: str, steps: int, seconds: float, extra: Choices) -> Outcome:
    return Outcome(replicate, reason, steps, math.nan, [], "", seconds, extra=extra)
