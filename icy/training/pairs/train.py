"""Training of pairs: pre-training of both sides on a language, then the game."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence

from icy.config.protocols import BASELINE, SCRATCH
from icy.core.types import Choices
from icy.records.record import NOT_LEARNT
from icy.training.checkpoints import Checkpoints
from icy.training.job import Outcome, Replicate, Report
from icy.training.lockstep import in_groups
from icy.training.weights import unpack_weights

from .game import PairStack, PlayingPair
from .model import make_pair
from .pair_job import PairJob
from .pretraining import LEARNING_ORDER, Learnt, measured_baselines, pretrain


def train_pairs(job: PairJob, report: Report | None = None) -> Iterator[Outcome]:
    """Pre-train and play a job's pairs in lockstep; yield each when it ends.

    Games that go on from checkpoints of different steps are played apart.

    Args:
        job: what to train, and how. Unless the protocol fixes the updates of the game, concat of each seed must be
            among its replicates or its baselines.
        report: called with the readings of every check.
    """
    yield from in_groups(job, lambda part, checkpoints: _trained(part, checkpoints, report))


def _trained(job: PairJob, checkpoints: Checkpoints, report: Report | None) -> Iterator[Outcome]:
    """Go on with games that were under way; else pre-train and play."""
    game = PairStack.going_on(job, checkpoints)
    if game is None:
        players = yield from _players(job, report)
        game = PairStack(job, players, checkpoints) if players else None
    if game is not None:
        yield from game.play(report)


def _players(job: PairJob, report: Report | None) -> Generator[Outcome, None, list[PlayingPair]]:
    """Return the pairs that can play, those with a grammar after pre-training; yield those of which that failed."""
    scratch = [r for r in job.replicates if r.condition == SCRATCH]
    taught = [r for r in job.replicates if r.condition != SCRATCH]
    players = [PlayingPair(r, job.protocol.limit(0), make_pair(job.task, r.seed, job.settings)) for r in scratch]
    if taught:
        for replicate in [r for r in taught if _lacks_baseline(job, r)]:
            taught.remove(replicate)
            yield _failure(replicate, "no_baseline", 0, 0.0, {})
    if taught:
        learnt = {side: _learnt(job, side, taught, report) for side in LEARNING_ORDER}
        baselines = {**measured_baselines(learnt), **job.baselines}
        for replicate in taught:
            ready = _ready_player(job, replicate, {side: learnt[side][replicate] for side in LEARNING_ORDER}, baselines)
            if isinstance(ready, Outcome):
                yield ready
            else:
                players.append(ready)
    return players


def _learnt(job: PairJob, side: str, replicates: Sequence[Replicate], report: Report | None) -> dict[Replicate, Learnt]:
    """Return one side of several pairs after its language was learnt: here, or before in a probe."""
    if not job.pretrained:
        return pretrain(job, side, replicates, report)
    kept = {replicate: job.learnt[side, replicate] for replicate in replicates}
    return {
        replicate: Learnt(one.steps, one.accuracy, unpack_weights(one.weights()) if one.learnt else None, 0.0)
        for replicate, one in kept.items()
    }


def _lacks_baseline(job: PairJob, replicate: Replicate) -> bool:
    """Whether concat is known to have failed at the seed, so that the game would have no length."""
    return job.protocol.steps is None and isinstance(job.baselines.get(replicate.seed), str)


def _ready_player(
    job: PairJob, replicate: Replicate, sides: dict[str, Learnt], baselines: dict[int, float | str]
) -> PlayingPair | Outcome:
    """Return a pair after pre-training, or its outcome if that failed."""
    before: Choices = {f"{side}_steps": found.steps for side, found in sides.items()}
    seconds = sum(found.seconds for found in sides.values())
    # A game whose length is given asks nothing of concat, which may be in no record at all.
    baseline = baselines.get(replicate.seed) if job.protocol.steps is None else None
    known = int(baseline) if isinstance(baseline, int | float) else None
    if known is None and job.protocol.steps is None and replicate.condition != BASELINE:
        return _failure(replicate, "no_baseline", 0, seconds, {})  # the same as if that was known before it trained
    if not all(found.weights is not None for found in sides.values()):
        readings = {f"{side}_accuracy": found.accuracy for side, found in sides.items()}
        diverged = [side for side, found in sides.items() if found.diverged]
        lost = {"diverged": " and ".join(diverged)} if diverged else {}
        steps = max(found.steps for found in sides.values())
        return _failure(replicate, NOT_LEARNT, steps, seconds, {**before, **readings, **lost})
    pair = make_pair(job.task, replicate.seed, job.settings, taught=True)
    for side, found in sides.items():
        assert found.weights is not None
        # Not strict: tied parameters have one name here, and buffers that are not saved have one too many.
        getattr(pair, side).load_state_dict(found.weights, strict=False)
    return PlayingPair(replicate, job.protocol.limit(known or 0), pair, before, seconds=seconds, baseline=known)


def _failure(replicate: Replicate, reason: str, steps: int, seconds: float, extra: Choices) -> Outcome:
    return Outcome(replicate, reason, steps, math.nan, [], "", seconds, extra=extra)
