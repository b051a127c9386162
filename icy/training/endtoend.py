"""Training sender and receiver together: pre-training of both on a language, then the game."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from .game import Game, Player
from .job import Outcome, Reading, Replicate
from .pair_job import NOT_LEARNT, SCRATCH, PairJob
from .pair_model import make_pair
from .pretraining import SIDES, Learnt, measured_baselines, pretrain

Report = Callable[[list[Reading]], None]


def train_pairs(job: PairJob, report: Report | None = None) -> Iterator[Outcome]:
    """Pre-train and play a job's pairs in lockstep; each is yielded when it ends.

    Args:
        job: what to train, and how. Unless the protocol fixes the updates of the game, concat of each seed must be
            among its replicates or its baselines.
        report: called with the readings of every check.
    """
    scratch = [r for r in job.replicates if r.grammar == SCRATCH]
    taught = [r for r in job.replicates if r.grammar != SCRATCH]
    players = [Player(r, job.protocol.limit(0), make_pair(job.task, r.seed, job.settings)) for r in scratch]
    if taught:
        learnt = {side: pretrain(job, side, taught, report) for side in SIDES}
        baselines = {**measured_baselines(learnt), **job.baselines}
        for replicate in taught:
            ready = _ready_player(job, replicate, {side: learnt[side][replicate] for side in SIDES}, baselines)
            if isinstance(ready, Outcome):
                yield ready
            else:
                players.append(ready)
    if players:
        yield from Game(job, players).play(report)


def _ready_player(
    job: PairJob, replicate: Replicate, sides: dict[str, Learnt], baselines: dict[int, int | str]
) -> Player | Outcome:
    """A pair after pre-training; or how it ended, if that failed."""
    before: dict[str, Any] = {f"{side}_steps": found.steps for side, found in sides.items()}
    seconds, baseline = sum(found.seconds for found in sides.values()), baselines.get(replicate.seed)
    readings = {f"{side}_accuracy": found.accuracy for side, found in sides.items()}
    if any(found.weights is None for found in sides.values()):
        return _failure(replicate, NOT_LEARNT, max(s.steps for s in sides.values()), seconds, {**before, **readings})
    if job.protocol.steps is None and not isinstance(baseline, int):
        return _failure(replicate, "no_baseline", max(s.steps for s in sides.values()), seconds, {**before, **readings})
    known = baseline if isinstance(baseline, int) else None
    pair = make_pair(job.task, replicate.seed, job.settings)
    for side, found in sides.items():
        assert found.weights is not None
        getattr(pair, side).load_state_dict(found.weights)
    return Player(replicate, job.protocol.limit(known or 0), pair, before, seconds=seconds, baseline=known)


def _failure(replicate: Replicate, reason: str, steps: int, seconds: float, extra: dict[str, Any]) -> Outcome:
    return Outcome(replicate, reason, steps, math.nan, [], "", seconds, extra=extra)
