"""Training of chains: generation after generation, with a checkpoint between two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from icy import metrics
from icy.core.types import State
from icy.languages.language import Language
from icy.languages.meanings import IntArray
from icy.records.kinds import job_kind
from icy.training.checkpoints import Checkpoint, sweep_checkpoints
from icy.training.job import Outcome, Reading, Replicate, Report

from .chain_job import ChainJob, learner_of
from .interaction import interact
from .learner_run import Lesson, learn


@dataclass
class Chain:
    """A chain that is under way.

    Attributes:
        replicate: its first language and its seed.
        languages: the first language, then the languages of the learners so far.
        curve: a row of measures per generation, in the order of the curve of the kind "chain".
        updates: of all learners.
        seconds: of all learners.
        reached: learners that reached the target.
        engine: how the learners train.
    """

    replicate: Replicate
    languages: list[Language]
    curve: list[list[float]] = field(default_factory=list)
    updates: int = 0
    seconds: float = 0.0
    reached: int = 0
    engine: str = ""

    @property
    def generation(self) -> int:
        """Number of learners so far."""
        return len(self.languages) - 1

    def add(self, lesson: Lesson, seen: IntArray) -> None:
        """Add the language of the next learner, which saw the meanings with the numbers `seen`, and measure it."""
        assert lesson.language is not None
        self.languages.append(lesson.language)
        self.updates += lesson.updates
        self.seconds += lesson.seconds
        self.reached += lesson.reached
        self.engine = lesson.engine
        self.curve.append(measures(self.languages, lesson, seen))

    def state(self) -> State:
        """Return the state of the chain for a checkpoint."""
        saved = {name: getattr(self, name) for name in ("curve", "updates", "seconds", "reached", "engine")}
        return {**saved, "messages": [one.messages.tolist() for one in self.languages[1:]]}

    @classmethod
    def from_state(cls, replicate: Replicate, first: Language, state: State) -> Chain:
        """Return the chain of a checkpoint."""
        saved: dict[str, Any] = dict(state)
        messages = [np.array(one) for one in saved.pop("messages")]
        return cls(replicate, [first, *(replace(first, messages=one) for one in messages)], **saved)


def measures(
    languages: Sequence[Language], lesson: Lesson | None = None, numbers: Sequence[int] | IntArray = ()
) -> list[float]:
    """Return the point of the curve for the last of some languages.

    Args:
        languages: the first language, then the languages of the learners so far.
        lesson: of the last learner; None if there is none yet.
        numbers: numbers of the meanings that it saw.
    """
    first, before, now = languages[0], languages[-2:][0], languages[-1]
    same = now.messages == before.messages
    seen = np.zeros(now.space.size, dtype=bool)
    seen[list(numbers)] = True
    meanings = now.space.all()
    return [
        len(languages) - 1,
        float((now.messages == first.messages).mean()),
        math.nan if lesson is None else float(same.mean()),
        now.distinct_messages / now.space.size,
        float(same[seen].mean()) if seen.any() else math.nan,
        float(same[~seen].mean()) if seen.any() and not seen.all() else math.nan,
        0 if lesson is None else lesson.updates,
        *(metric(meanings, now.messages).value for metric in (metrics.topsim, metrics.posdis, metrics.bosdis)),
        math.nan if lesson is None else lesson.communication,
    ]


def train_chains(job: ChainJob, report: Report | None = None) -> Iterator[Outcome]:
    """Pass languages on from learner to learner; yield each chain when it ends.

    Chains that are equally far train as one stack.

    Args:
        job: the chains.
        report: called with the accuracy of the learners at every evaluation.
    """
    if job.checkpoints:
        sweep_checkpoints(job.folder)
    checkpoints = {replicate: _checkpoint(job, replicate) for replicate in job.replicates}
    chains = [_begun(job, replicate, checkpoints[replicate]) for replicate in job.replicates]
    while chains:
        generation = max(chain.generation for chain in chains)
        group = [chain for chain in chains if chain.generation == generation]
        while group and group[0].generation < job.protocol.generations:
            for chain in _next_generation(job, group, report):  # chains in which the learner failed
                group.remove(chain)
                chains.remove(chain)
                checkpoints[chain.replicate].forget()
                yield _failure(chain)
            for chain in group:
                if checkpoints[chain.replicate].due:
                    checkpoints[chain.replicate].save(chain.state())
        for chain in group:
            chains.remove(chain)
            yield _outcome(job, chain)
            checkpoints[chain.replicate].forget()


def _checkpoint(job: ChainJob, replicate: Replicate) -> Checkpoint:
    label = f"{job.name} on {replicate.condition}, seed {replicate.seed}"
    return Checkpoint(job.folder, job.key(replicate), label, job.checkpoints)


def _begun(job: ChainJob, replicate: Replicate, checkpoint: Checkpoint) -> Chain:
    first, state = job.language(replicate), checkpoint.load()
    if state is not None:
        return Chain.from_state(replicate, first, state)
    return Chain(replicate, [first], [measures([first])])


def _next_generation(job: ChainJob, chains: Sequence[Chain], report: Report | None) -> list[Chain]:
    """Train the next learner of each chain; return the chains in which it failed."""
    generation = chains[0].generation + 1
    chain_of = {learner_of(chain.replicate, generation): chain for chain in chains}
    taught = {learner: chain.languages[-1] for learner, chain in chain_of.items()}
    updates = {chain.replicate: chain.updates for chain in chains}  # so far, for readings

    def pass_on(readings: list[Reading]) -> None:
        if report is not None:
            of_chains = [(chain_of[reading.replicate].replicate, reading) for reading in readings]
            report(
                [replace(one, replicate=chain, steps=updates[chain] + one.steps, phase="") for chain, one in of_chains]
            )

    sides: dict[str, dict[Replicate, Lesson]] = {}
    for side in job.sides:
        sides[side] = learn(job, side, taught, pass_on)
        for learner, lesson in sides[side].items():
            updates[chain_of[learner].replicate] += lesson.updates
        taught = {learner: taught[learner] for learner in sides[side]}
    lessons = interact(job, sides, taught, pass_on) if len(sides) > 1 else sides[job.task.side]
    for learner, lesson in lessons.items():
        chain_of[learner].add(lesson, job.protocol.seen(job.task.space, learner.seed))
    return [chain for learner, chain in chain_of.items() if learner not in lessons]


def _outcome(job: ChainJob, chain: Chain) -> Outcome:
    kind = job_kind(job.kind)
    last = dict(zip(kind.curve, chain.curve[-1], strict=True))
    files = {
        job.language_path(chain.replicate, number): language.to_bytes()
        for number, language in enumerate(chain.languages)
    }
    return Outcome(
        *(chain.replicate, "steps", chain.updates, last["accuracy"], chain.curve, chain.engine, chain.seconds),
        extra={name: last[name] for name in kind.measures if name in last} | {"reached": chain.reached},
        files=files,
    )


def _failure(chain: Chain) -> Outcome:
    return Outcome(chain.replicate, "diverged", chain.updates, math.nan, chain.curve, chain.engine, chain.seconds)
