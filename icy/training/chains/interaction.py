"""Pairs of one generation: sender and receiver meet after both have learned from the teacher's language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from icy.config.protocols import EndToEndProtocol
from icy.languages.language import Language
from icy.training.job import Replicate
from icy.training.pairs.game import PairStack, PlayingPair
from icy.training.pairs.model import taught_pair
from icy.training.pairs.pair_job import PairJob
from icy.training.tasks import PairTask

from .chain_job import ChainJob, ChainProtocol
from .learner_run import Lesson, TaughtJob, spoken

Sides = Mapping[str, Mapping[Replicate, Lesson]]  # results of senders and receivers, by side and learner


@dataclass(frozen=True)
class MeetingJob(TaughtJob, PairJob):
    """The pairs of one generation, as replicates of an end-to-end run."""


class Meeting(PairStack):
    """The pairs of one generation: the sender speaks, and the receiver reads its messages.

    Args:
        job: the pairs.
        passing: how languages are passed on.
        players: the pairs.

    Attributes:
        languages: the messages of each pair's sender for all meanings.
        communication: share of the attribute values that the pair's receiver reads correctly from these messages.
    """

    def __init__(self, job: MeetingJob, passing: ChainProtocol, players: list[PlayingPair]) -> None:
        super().__init__(job, players)
        self.passing = passing
        self.languages: dict[Replicate, Language] = {}
        self.communication: dict[Replicate, float] = {}

    def speak(self) -> None:
        """Fill `languages` and `communication`."""
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
        self.languages |= dict(zip(learners, said, strict=True))
        self.communication |= dict(zip(learners, read.double().mean((-2, -1)).tolist(), strict=True))


def _tokens(languages: Sequence[Language], device: torch.device) -> torch.Tensor:
    """Return the messages of some languages, [language, meaning, place]."""
    return torch.from_numpy(np.stack([one.messages for one in languages]).astype(np.int64)).to(device)


def meet(job: ChainJob, sides: Sides, taught: Mapping[Replicate, Language]) -> dict[Replicate, Lesson]:
    """Join the senders and receivers of one generation to pairs; return the results of the pairs.

    Args:
        job: the chains.
        sides: the results of both sides.
        taught: the language of the teacher, by learner.
    """
    assert isinstance(job.task, PairTask)
    learners = [learner for learner in taught if all(learner in lessons for lessons in sides.values())]
    if not learners:
        return {}
    players = [
        PlayingPair(
            *(learner, 0),
            taught_pair(
                job.task, learner.seed, job.settings, {side: of[learner].weights for side, of in sides.items()}
            ),
        )
        for learner in learners
    ]
    pairs = MeetingJob(
        job.task,
        EndToEndProtocol(steps=1, report_every=1),
        job.settings,
        replicates=tuple(learners),
        taught=taught,
        device=job.device,
        engine=job.engine,
    )
    meeting = Meeting(pairs, job.protocol, players)
    meeting.speak()
    return {
        learner: Lesson(
            sum(of[learner].updates for of in sides.values()),
            all(of[learner].reached for of in sides.values()),
            sum(of[learner].seconds for of in sides.values()),
            sides["sender"][learner].engine,
            meeting.languages[learner],
            meeting.communication[learner],
        )
        for learner in learners
    }
