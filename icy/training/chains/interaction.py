"""Pairs of one generation: sender and receiver interact after both have learned from the teacher's language."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from icy.config.protocols import EndToEndProtocol
from icy.languages.language import Language
from icy.training.job import Outcome, Replicate, Report
from icy.training.pairs.game import PairStack, PlayingPair, Row
from icy.training.pairs.model import taught_pair
from icy.training.pairs.pair_job import PairJob
from icy.training.tasks import PairTask

from .chain_job import ChainJob, ChainProtocol
from .learner_run import Lesson, TaughtJob, spoken

Sides = Mapping[str, Mapping[Replicate, Lesson]]  # results of senders and receivers, by side and learner


@dataclass(frozen=True)
class InteractionJob(TaughtJob, PairJob):
    """The pairs of one generation, as replicates of an end-to-end run."""


class Interaction(PairStack):
    """The pairs of one generation play, if there is an interaction phase. Then senders speak and receivers read this.

    Args:
        job: the pairs.
        passing: how languages are passed on.
        players: the pairs.

    Attributes:
        languages: the messages of each pair's sender for all meanings, without pairs that diverged.
        communication: share of the attribute values that the pair's receiver reads correctly from these messages.
    """

    def __init__(self, job: InteractionJob, passing: ChainProtocol, players: list[PlayingPair]) -> None:
        super().__init__(job, players)
        self.passing = passing
        self.languages: dict[Replicate, Language] = {}
        self.communication: dict[Replicate, float] = {}

    def run(self, report: Report | None) -> None:
        """Play, and fill `languages` and `communication`."""
        if not self.passing.interaction:
            self._languages(range(len(self.players)))
            return
        for _ in self.play(report):
            pass

    def _languages(self, which: Sequence[int]) -> dict[int, Language]:
        space, device = self.job.task.space, torch.device(self.job.device)
        meanings = torch.from_numpy(space.all()).to(device).expand(len(self.players), -1, -1)
        learners = [player.replicate for player in self.players]
        taught = [self.job.language(learner) for learner in learners]
        sent = self._scores(meanings, _tokens(taught, device))[0]
        said = [
            spoken(scores, language, learner.seed, self.passing.transmission)
            for scores, language, learner in zip(sent, taught, learners, strict=True)
        ]
        read = self._scores(meanings, _tokens(said, device))[2].argmax(-1) == meanings
        communication = read.double().mean((-2, -1)).tolist()
        for place in which:
            self.languages[learners[place]], self.communication[learners[place]] = said[place], communication[place]
        return dict(enumerate(said))

    def _outcome(self, player: PlayingPair, final: Row, diverged: bool, language: Language) -> Outcome:
        if diverged:
            del self.languages[player.replicate]
        return Outcome(player.replicate, "diverged" if diverged else "steps", self.updates, math.nan)


def _tokens(languages: Sequence[Language], device: torch.device) -> torch.Tensor:
    """Return the messages of some languages, [language, meaning, place]."""
    return torch.from_numpy(np.stack([one.messages for one in languages]).astype(np.int64)).to(device)


def interact(
    job: ChainJob, sides: Sides, taught: Mapping[Replicate, Language], report: Report | None
) -> dict[Replicate, Lesson]:
    """Join the senders and receivers of one generation to pairs that play; return the results of the pairs.

    Args:
        job: the chains.
        sides: the results of both sides.
        taught: the language of the teacher, by learner.
        report: called with the readings of every evaluation.
    """
    assert isinstance(job.task, PairTask)
    learners = [learner for learner in taught if all(learner in lessons for lessons in sides.values())]
    if not learners:
        return {}
    length = job.protocol.interaction
    players = [
        PlayingPair(
            *(learner, length),
            taught_pair(
                job.task, learner.seed, job.settings, {side: of[learner].weights for side, of in sides.items()}
            ),
        )
        for learner in learners
    ]
    pairs = InteractionJob(
        job.task,
        EndToEndProtocol(steps=max(1, length), report_every=max(1, length)),
        job.settings,
        replicates=tuple(learners),
        taught=taught,
        device=job.device,
        engine=job.engine,
    )
    interaction = Interaction(pairs, job.protocol, players)
    interaction.run(report)
    seconds = {player.replicate: player.seconds for player in players}
    return {
        learner: Lesson(
            sum(of[learner].updates for of in sides.values()) + length,
            all(of[learner].reached for of in sides.values()),
            sum(of[learner].seconds for of in sides.values()) + seconds[learner],
            sides["sender"][learner].engine,
            interaction.languages[learner],
            interaction.communication[learner],
        )
        for learner in interaction.languages
    }
