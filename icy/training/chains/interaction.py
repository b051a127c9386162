"""Pairs of one generation: sender and receiver interact after both have learned from the teacher's language."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from icy.config.protocols import EndToEndProtocol
from icy.languages.language import Language
from icy.training.checkpoints import Checkpoint, Checkpoints
from icy.training.job import Outcome, Replicate, Report
from icy.training.pairs.game import PairStack, PlayingPair, Row
from icy.training.pairs.model import taught_pair
from icy.training.pairs.pair_job import PairJob
from icy.training.tasks import PairTask

from .chain_job import ChainJob, ChainProtocol
from .learner_run import Lesson, TaughtJob, spoken, tensor_of

Sides = Mapping[str, Mapping[Replicate, Lesson]]  # results of senders and receivers, by side and learner


@dataclass(frozen=True)
class InteractionJob(TaughtJob, PairJob):
    """The pairs of one generation, as replicates of an end-to-end run."""

    task: PairTask


class Interaction(PairStack):
    """The pairs of one generation play, if there is an interaction phase. Then senders speak and receivers read this.

    Args:
        job: the pairs.
        passing: how languages are passed on.
        sides: the results of both sides.
        checkpoints: the checkpoints to save and to resume from.

    Attributes:
        lessons: the results of the pairs that have ended and did not diverge.
    """

    def __init__(self, job: InteractionJob, passing: ChainProtocol, sides: Sides, checkpoints: Checkpoints) -> None:
        self.passing, self.sides = passing, sides
        self.lessons: dict[Replicate, Lesson] = {}
        players = []
        for learner in job.replicates:
            weights = {side: of[learner].weights for side, of in sides.items()}
            pair = taught_pair(job.task, learner.seed, job.settings, weights)
            players.append(PlayingPair(learner, passing.interaction, pair))
        super().__init__(job, players, checkpoints)

    def run(self, report: Report | None) -> None:
        """Play, and fill `lessons`."""
        if not self.passing.interaction:
            self._languages(range(len(self.players)))
            return
        for _ in self.play(report):
            pass

    def _languages(self, which: Sequence[int]) -> dict[int, Language]:
        """Return the messages of some senders for all meanings, and fill `lessons`."""
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
            alone = [lessons[learners[place]] for lessons in self.sides.values()]
            self.lessons[learners[place]] = Lesson(
                sum(lesson.updates for lesson in alone) + self.updates,
                all(lesson.reached for lesson in alone),
                sum(lesson.seconds for lesson in alone) + self.players[place].seconds,
                self.learner.engine,
                said[place],
                communication[place],
            )
        return {place: said[place] for place in which}

    def _outcome(
        self, player: PlayingPair, final: Row, diverged: bool, language: Language, equally: float | None
    ) -> Outcome:
        if diverged:
            del self.lessons[player.replicate]
        return Outcome(player.replicate, "diverged" if diverged else "steps", self.updates, math.nan)


def _tokens(languages: Sequence[Language], device: torch.device) -> torch.Tensor:
    """Return the messages of some languages, [language, meaning, place]."""
    return torch.stack([tensor_of(one) for one in languages]).to(device)


def interact(
    job: ChainJob,
    sides: Sides,
    taught: Mapping[Replicate, Language],
    files: Mapping[Replicate, Checkpoint],
    report: Report | None,
) -> dict[Replicate, Lesson]:
    """Join the senders and receivers of one generation to pairs that play; return the results of the pairs.

    Args:
        job: the chains.
        sides: the results of both sides, by side and learner.
        taught: the language of the teacher, by learner.
        files: the checkpoint of each learner.
        report: called with the readings of every evaluation.
    """
    assert isinstance(job.task, PairTask)
    length = max(1, job.protocol.interaction)
    pairs = InteractionJob(
        job.task,
        EndToEndProtocol(steps=length, report_every=length),
        job.settings,
        replicates=tuple(taught),
        taught=taught,
        device=job.device,
        engine=job.engine,
        checkpoints=job.checkpoints,
    )
    checkpoints = Checkpoints(pairs, files)
    lessons: dict[Replicate, Lesson] = {}
    for group in checkpoints.groups():
        interaction = Interaction(replace(pairs, replicates=group), job.protocol, sides, checkpoints)
        interaction.run(report)
        lessons |= interaction.lessons
    return lessons
