"""Helpers for tests of games."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from icy.games.evaluation import Spoken
from icy.games.game_stack import Games
from icy.games.playing import batches, make_spoken
from icy.games.settings import GamesRequest, TurnSettings
from icy.games.turns import Turns
from icy.games.worlds.world import make_world
from icy.records.kinds import job_kind
from icy.training.combinations import jobs_of
from icy.training.job import Job
from icy.training.lockstep import Lockstep

TINY: dict[str, Any] = {
    "rule_length": 2, "targets": 3, "steps": 12, "seeds": 2, "sender_hidden": 8, "receiver_hidden": 8, "workers": 1,
    "world_options": {"attributes": 3, "values": 4},
}  # fmt: skip
FEW: dict[str, Any] = {"epoch": 6, "turns": 40}  # number of evaluations, and turns per evaluation


def silent(world: str, length: int, words: int = 1, turns: int = 1000) -> Spoken:
    """Return phrases of an evaluation, with constant messages."""
    drawn = Turns(make_world(world), TurnSettings(rule_length=length, targets=1, distractors=1), [0])
    numbers = torch.cat([batch.numbers[0, 0] for batch in batches(drawn, "test", turns, min(turns, 100))])
    return make_spoken(drawn, numbers, torch.zeros(len(numbers), words, dtype=torch.long))


def jobs(**given: Any) -> list[Job]:
    """Return the jobs of a request."""
    return list(jobs_of(job_kind("games"), GamesRequest.asked(**given)))


class Advancing(Games):
    """The training of a row, with the method of its loop that makes updates."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.advance = Lockstep(self).advance


def course_of(engine: str = "auto", **given: Any) -> Advancing:
    """Return the training of a row by an engine, with the tiny sizes where no others are given."""
    (job,) = jobs(**{**TINY, **given})
    return Advancing(replace(job, engine=engine))
