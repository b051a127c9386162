"""One generation: learners train on the languages of their teachers, and speak when they stop."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from icy.config.protocols import Protocol
from icy.core.representations import without_start
from icy.core.streams import stream
from icy.languages.language import Language
from icy.languages.meanings import IntArray
from icy.training.engine import Run
from icy.training.job import Outcome, Reading, Replicate
from icy.training.learners import accuracy, examples_at_once
from icy.training.probe_job import ProbeJob

from .chain_job import ChainJob, learner_seed

MOST_READ = 4096  # an evaluation reads all meanings seen up to this number, and a sample of more
LEARNING = Protocol("iterated", "", "", target=1.0, cap=math.inf, stops_at_target=True, measure="accuracy")


@dataclass(frozen=True)
class Lesson:
    """Results of a learner of one generation, and its language.

    Attributes:
        updates: number of its updates.
        reached: whether it reached the target.
        language: its messages for all meanings.
        seen: numbers of the meanings that it saw.
        seconds: its share of the time.
        engine: engine that trained it.
    """

    updates: int
    reached: bool
    language: Language
    seen: IntArray
    seconds: float
    engine: str


@dataclass(frozen=True)
class LearnerJob(ProbeJob):
    """The learners of one generation, as replicates of a probe that learn the languages of the teachers.

    Attributes:
        taught: the language of each replicate.
    """

    taught: Mapping[Replicate, Language] = field(default_factory=dict, kw_only=True, repr=False)

    def language(self, replicate: Replicate) -> Language:
        """Return the language of the teacher."""
        return self.taught[replicate]


class LearnerRun(Run):
    """Training of one generation. Each learner stops at the target, or after the maximum number of updates.

    Args:
        job: the chains.
        generation: its number, from 1.
        taught: the language of the teacher in each chain.
    """

    needs_baseline = False

    def __init__(self, job: ChainJob, generation: int, taught: Mapping[Replicate, Language]) -> None:
        self.chain_of = {replace(r, seed=learner_seed(r.seed, generation)): r for r in taught}
        self.chains = job
        split = job.protocol.split(job.task.space)
        self.lessons: dict[Replicate, Lesson] = {}
        space = job.task.space
        self.seen: dict[Replicate, IntArray] = {
            learner: np.arange(space.size) if split is None else split.parts(space, learner.seed)[0]
            for learner in self.chain_of
        }
        super().__init__(
            LearnerJob(
                job.task,
                replace(LEARNING, target=job.protocol.target or 1.0, measure="held_out" if split else "accuracy"),
                job.learner_settings,
                split,
                replicates=tuple(self.chain_of),
                taught={learner: taught[chain] for learner, chain in self.chain_of.items()},
                device=job.device,
                engine=job.engine,
            )
        )

    def _verdict(self, reading: Reading, reached: float | None) -> str | None:
        if reached is not None and self.chains.protocol.target is not None:
            return "target"
        return "budget" if reading.steps >= self.chains.protocol.updates else None

    def _read(self, purpose: str, size: int, which: list[int] | None = None) -> list[float]:
        """Return accuracies on all meanings seen, where they are few, and otherwise on a sample."""
        learners = self.active if which is None else [self.active[i] for i in which]
        if len(self.seen[learners[0]]) > MOST_READ:
            return super()._read("check", size, which)
        rows = [self.seen[learner] for learner in learners]
        inputs = torch.from_numpy(np.stack([self.task.space.meanings(row) for row in rows]))
        targets = np.stack([self.job.language(r).messages[row] for r, row in zip(learners, rows, strict=True)])
        device = torch.device(self.job.device)
        messages = torch.from_numpy(targets.astype(np.int64)).to(device)
        readings: list[float] = accuracy(self.learner, inputs.to(device), messages, which).tolist()
        return readings

    def _measure(self, places: list[int]) -> list[dict[str, float]]:
        return [{"accuracy": self.curves[self.active[i]][-1][1]} for i in places]

    def _outcome(self, replicate: Replicate, reason: str, steps: int, accuracy: float, **extra: float) -> Outcome:
        place, seconds = self.active.index(replicate), self.seconds[replicate]
        outcome = super()._outcome(replicate, reason, steps, accuracy, **extra)
        if reason != "diverged":
            self.lessons[self.chain_of[replicate]] = Lesson(
                *(steps, reason == "target", self._speak(place), self.seen[replicate], seconds),
                engine=self.learner.engine,
            )
        return outcome

    def _compared(self, ended: list[Outcome]) -> Iterator[Outcome]:
        yield from ended

    def _speak(self, place: int) -> Language:
        """Return the messages of a learner for all meanings. No learner says the start symbol."""
        learner, taught = self.active[place], self.job.language(self.active[place])
        meanings = torch.from_numpy(self.task.space.all())[None].to(self.job.device)
        parts = meanings.split(examples_at_once(meanings), 1)
        scores = np.concatenate([_log_probabilities(self.learner.scores(part, [place])[0]) for part in parts])
        if self.chains.protocol.transmission == "sampled":
            noise = stream(learner.seed, "speech").gumbel(size=scores.shape)
            scores = scores + noise
        return replace(taught, messages=scores.argmax(-1))


def _log_probabilities(scores: Tensor) -> NDArray[np.float64]:
    """Return the log-probabilities of the tokens of the vocabulary, [meaning, place, token]."""
    found: NDArray[np.float64] = torch.log_softmax(without_start(scores).double(), -1)[..., :-1].cpu().numpy()
    return found
