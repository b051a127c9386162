"""One generation: learners train on the languages of their teachers, and speak when they stop."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from icy.config.protocols import EndToEndProtocol, Protocol
from icy.core.representations import without_start
from icy.core.streams import stream
from icy.core.types import State
from icy.languages.language import Language
from icy.languages.storage import IntegerArray
from icy.training.engine import Run
from icy.training.job import Outcome, Reading, Replicate, Report
from icy.training.learners import accuracy, examples_at_once
from icy.training.lockstep import Checkpoint, Checkpoints
from icy.training.pairs.game import PairStack, PlayingPair, Row
from icy.training.pairs.model import taught_pair
from icy.training.pairs.pair_job import PairJob
from icy.training.probe_job import LanguageJob, ProbeJob
from icy.training.tasks import PairTask

from .chain_job import ChainJob, ChainProtocol

MOST_READ = 4096  # an evaluation reads all meanings seen up to this number, and a sample of more
MOST_COMPARED = 2**22  # most combinations of a message and a meaning in memory
LEARNING = Protocol("iterated", "", "", target=1.0, cap=math.inf, stops_at_target=True, measure="accuracy")


@dataclass(frozen=True)
class Lesson:
    """Results of a learner of one generation.

    Attributes:
        updates: number of its updates.
        reached: whether it reached the target.
        seconds: its share of the time.
        engine: engine that trained it.
        language: its messages for all meanings; None for one side of a pair, as only the pair speaks.
        communication: share of the attribute values that a receiver reads correctly from these messages; NaN without a
            receiver.
        weights: weights of one side of a pair; empty for other learners.
    """

    updates: int
    reached: bool
    seconds: float
    engine: str
    language: Language | None = None
    communication: float = math.nan
    weights: Mapping[str, Tensor] = field(default_factory=dict)

    def state(self) -> State:
        """Return the results for a checkpoint."""
        messages = None if self.language is None else tensor_of(self.language)
        return {**vars(self), "weights": dict(self.weights), "language": messages}

    @classmethod
    def from_state(cls, state: State, first: Language) -> Lesson:
        """Return the results in a checkpoint of a chain with a first language."""
        messages = state["language"]
        return cls(**{**state, "language": None if messages is None else replace(first, messages=messages.numpy())})


def tensor_of(language: Language) -> Tensor:
    """Return the messages of a language, [meaning, place]."""
    return torch.from_numpy(language.messages.astype(np.int64))


@dataclass(frozen=True)
class TaughtJob(LanguageJob):
    """A job of learners that have teachers.

    Attributes:
        taught: the language of each learner's teacher.
    """

    taught: Mapping[Replicate, Language] = field(default_factory=dict, kw_only=True, repr=False)

    def language(self, replicate: Replicate) -> Language:
        """Return the language of the teacher."""
        return self.taught[replicate]

    def is_baseline(self, replicate: Replicate) -> bool:
        """Return False: learners are not compared with concat's."""
        return False


@dataclass(frozen=True)
class LearnerJob(TaughtJob, ProbeJob):
    """The learners of one generation, as replicates of a probe that learn the languages of the teachers."""


class LearnerRun(Run):
    """Training of senders or receivers of one generation, each to the target or for the maximum number of updates.

    Args:
        job: the learners.
        passing: how languages are passed on.
        checkpoints: the checkpoints to save and to resume from; by default none.

    Attributes:
        lessons: the results of the learners that have ended and did not diverge.
    """

    needs_baseline = False

    def __init__(self, job: LearnerJob, passing: ChainProtocol, checkpoints: Checkpoints | None = None) -> None:
        self.passing = passing
        self.lessons: dict[Replicate, Lesson] = {}
        self.seen = {learner: passing.seen(job.task.space, learner.seed) for learner in job.replicates}
        self._shown: dict[Replicate, tuple[Tensor, Tensor]] = {}
        super().__init__(job, checkpoints)

    def _verdict(self, reading: Reading, reached: float | None) -> str | None:
        if reached is not None and self.passing.target is not None:
            return "target"
        return "budget" if reading.steps >= self.passing.updates else None

    def _read(self, purpose: str, size: int, which: list[int] | None = None) -> list[float]:
        """Return accuracies on all meanings seen, where they are few, and otherwise on a sample."""
        learners = self.active if which is None else [self.active[i] for i in which]
        if len(self.seen[learners[0]]) > MOST_READ:
            return super()._read("check", size, which)
        inputs, targets = map(torch.stack, zip(*map(self._examples, learners), strict=True))
        readings: list[float] = accuracy(self.learner, inputs, targets, which).tolist()
        return readings

    def _examples(self, learner: Replicate) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of all meanings seen by a learner."""
        if learner not in self._shown:
            rows = self.seen[learner]
            both = self.task.space.meanings(rows), self.job.language(learner).messages[rows].astype(np.int64)
            meanings, messages = (torch.from_numpy(one).to(self.job.device) for one in both)
            self._shown[learner] = (meanings, messages) if self.task.side == "sender" else (messages, meanings)
        return self._shown[learner]

    def _measure(self, places: list[int]) -> list[dict[str, float]]:
        return [{"accuracy": self.curves[self.active[i]][-1][1]} for i in places]

    def _outcome(self, replicate: Replicate, reason: str, steps: int, accuracy: float, **extra: float) -> Outcome:
        place, seconds = self.active.index(replicate), self.seconds[replicate]
        outcome = super()._outcome(replicate, reason, steps, accuracy, **extra)
        if reason != "diverged":
            lesson = Lesson(steps, reason == "target", seconds, self.learner.engine)
            if self.task.paired:
                lesson = replace(lesson, weights=self.learner.weights(place))
            elif self.task.side == "sender":
                lesson = replace(lesson, language=self._speak(place))
            else:
                language, communication = self._speak_as_obverter(place)
                lesson = replace(lesson, language=language, communication=communication)
            self.lessons[replicate] = lesson
        return outcome

    def _compared(self, ended: list[Outcome]) -> Iterator[Outcome]:
        yield from ended

    def _speak(self, place: int) -> Language:
        """Return the messages of a sender for all meanings."""
        learner = self.active[place]
        scores = self._scores_of(self.task.space.all(), place)
        return spoken(scores, self.job.language(learner), learner.seed, self.passing.transmission)

    def _speak_as_obverter(self, place: int) -> tuple[Language, float]:
        """Return the language that a receiver passes on, and the share of its attribute values that it reads correctly.

        It sends each meaning by the message of its teacher's language that it most probably reads as this meaning; or
        it draws one of these messages in proportion to these probabilities.
        """
        learner, space = self.active[place], self.task.space
        taught = self.job.language(learner)
        messages = np.unique(taught.messages, axis=0)
        scores = torch.log_softmax(self._scores_of(messages, place).double(), -1).cpu().numpy()
        noise = stream(learner.seed, "speech") if self.passing.transmission == "sampled" else None
        meanings, chosen = space.all(), []
        for some in np.array_split(meanings, -(-len(meanings) * len(messages) // MOST_COMPARED)):
            fit = np.sum([scores[:, one, some[:, one]] for one in range(space.attributes)], axis=0)
            chosen.append((fit if noise is None else fit + noise.gumbel(size=fit.shape)).argmax(0))
        number = np.concatenate(chosen)
        right: NDArray[np.bool_] = scores.argmax(-1)[number] == meanings
        return replace(taught, messages=messages[number]), float(right.mean())

    def _scores_of(self, inputs: IntegerArray, place: int) -> Tensor:
        """Return the scores of a learner for inputs [N, ...]."""
        every = torch.from_numpy(inputs.astype(np.int64))[None].to(self.job.device)
        return torch.cat([self.learner.scores(part, [place])[0] for part in every.split(examples_at_once(every), 1)])


def learner_job(job: ChainJob, side: str, taught: Mapping[Replicate, Language]) -> LearnerJob:
    """Return the senders or the receivers of one generation of some chains; arguments as for `learn`."""
    split = job.protocol.split(job.task.space)
    return LearnerJob(
        job.side_task(side),
        replace(LEARNING, target=job.protocol.target or 1.0, measure="held_out" if split else "accuracy"),
        job.learner_settings,
        split,
        replicates=tuple(taught),
        taught=taught,
        device=job.device,
        engine=job.engine,
        checkpoints=job.checkpoints,
    )


def learn(
    job: ChainJob,
    side: str,
    taught: Mapping[Replicate, Language],
    files: Mapping[Replicate, Checkpoint],
    report: Report | None,
) -> dict[Replicate, Lesson]:
    """Train the senders or the receivers of one generation; return their results, without diverged ones.

    Args:
        job: the chains.
        side: "sender" or "receiver".
        taught: the language of the teacher, by learner.
        files: the checkpoint of each learner.
        report: called with the readings of every evaluation.
    """
    learners = learner_job(job, side, taught)
    checkpoints = Checkpoints(learners, files)
    lessons: dict[Replicate, Lesson] = {}
    for group in checkpoints.groups():
        run = LearnerRun(replace(learners, replicates=group), job.protocol, checkpoints)
        for _ in run.go(report):
            pass
        lessons |= run.lessons
    return lessons


def spoken(scores: Tensor, taught: Language, seed: int, transmission: str) -> Language:
    """Return the messages of a sender for all meanings. No learner says the start symbol.

    Args:
        scores: its scores [meaning, place, token].
        taught: the language of its teacher.
        seed: its seed.
        transmission: one of TRANSMISSIONS.
    """
    found: NDArray[np.float64] = torch.log_softmax(without_start(scores).double(), -1)[..., :-1].cpu().numpy()
    if transmission == "sampled":
        found = found + stream(seed, "speech").gumbel(size=found.shape)
    return replace(taught, messages=found.argmax(-1))


# -- pairs of one generation -------------------------------------------------------------------------------------------


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
