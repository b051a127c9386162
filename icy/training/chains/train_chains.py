"""Training of chains: generation after generation, with a checkpoint between two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from icy import metrics
from icy.core.streams import stream
from icy.core.types import State
from icy.languages.language import Language
from icy.languages.meanings import IntArray
from icy.records.kinds import job_kind
from icy.training.checkpoints import Checkpoint, sweep_checkpoints
from icy.training.job import Outcome, Reading, Replicate, Report

from .chain_job import ChainJob, ChainProtocol, learner_of
from .interaction import interact
from .learner_run import Lesson, learn


@dataclass
class Chain:
    """A chain that is under way.

    Attributes:
        replicate: its first language and its seed.
        protocol: how the language is passed on.
        first: the first language.
        languages: the languages of the learners of each generation so far, in the order of the members they replaced.
        rows: a row of measures per member of the population, in the order of the curve of the kind "chain".
        curve: a row of measures per generation: means over the members.
        updates: of all learners.
        seconds: of all learners.
        reached: learners that reached the target.
        engine: how the learners train.
    """

    replicate: Replicate
    protocol: ChainProtocol
    first: Language
    languages: list[list[Language]] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    curve: list[list[float]] = field(default_factory=list)
    updates: int = 0
    seconds: float = 0.0
    reached: int = 0
    engine: str = ""

    def __post_init__(self) -> None:
        if not self.curve:
            self.curve = [measures([self.first])]
            self.rows = self.curve * self.protocol.population

    @property
    def generation(self) -> int:
        """Number of generations so far."""
        return len(self.languages)

    def members(self) -> list[Language]:
        """Return the language of each member of the population."""
        now = [self.first] * self.protocol.population
        for generation, languages in enumerate(self.languages, 1):
            for member, language in zip(self.protocol.replaced(generation), languages, strict=True):
                now[member] = language
        return now

    def taught(self) -> dict[Replicate, Language]:
        """Return the learners of the next generation, each with the language of its teacher."""
        generation, members = self.generation + 1, self.members()
        replaced = self.protocol.replaced(generation)
        teachers = stream(self.replicate.seed, "teachers", generation).integers(len(members), size=len(replaced))
        learners = [learner_of(self.replicate, generation, member) for member in replaced]
        return {learner: members[teacher] for learner, teacher in zip(learners, teachers, strict=True)}

    def add(self, lessons: Mapping[Replicate, Lesson]) -> None:
        """Add the languages of the next generation, and measure them."""
        taught, generation, updates = self.taught(), self.generation + 1, 0
        languages = []
        for member, (learner, teacher) in zip(self.protocol.replaced(generation), taught.items(), strict=True):
            lesson = lessons[learner]
            assert lesson.language is not None
            seen = self.protocol.seen(self.first.space, learner.seed)
            self.rows[member] = measures([self.first, teacher, lesson.language], lesson, seen)
            languages.append(lesson.language)
            updates += lesson.updates
            self.seconds += lesson.seconds
            self.reached += lesson.reached
            self.engine = lesson.engine
        self.languages.append(languages)
        self.updates += updates
        means = dict(zip(job_kind("chain").curve, map(_mean, zip(*self.rows, strict=True)), strict=True))
        self.curve.append([*(means | {"generation": generation, "updates": updates}).values()])

    def state(self) -> State:
        """Return the state of the chain for a checkpoint."""
        saved = {name: getattr(self, name) for name in ("rows", "curve", "updates", "seconds", "reached", "engine")}
        return {**saved, "messages": [[one.messages.tolist() for one in some] for some in self.languages]}

    def load(self, state: State) -> None:
        """Resume from a state."""
        saved: dict[str, Any] = dict(state)
        for some in saved.pop("messages"):
            self.languages.append([replace(self.first, messages=np.array(one)) for one in some])
        for name, value in saved.items():
            setattr(self, name, value)


def _mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN."""
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def measures(
    languages: Sequence[Language], lesson: Lesson | None = None, numbers: Sequence[int] | IntArray = ()
) -> list[float]:
    """Return the row of measures for the last of some languages.

    Args:
        languages: the first language; with a learner, also the languages of its teacher and of itself.
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
    chain, state = Chain(replicate, job.protocol, job.language(replicate)), checkpoint.load()
    if state is not None:
        chain.load(state)
    return chain


def _next_generation(job: ChainJob, chains: Sequence[Chain], report: Report | None) -> list[Chain]:
    """Train the learners of the next generation of each chain; return the chains in which a learner failed."""
    taught_of = {chain.replicate: chain.taught() for chain in chains}
    chain_of = {learner: chain for chain, learners in taught_of.items() for learner in learners}
    taught = {learner: language for learners in taught_of.values() for learner, language in learners.items()}
    updates = {chain.replicate: chain.updates for chain in chains}  # so far, for readings

    def pass_on(readings: list[Reading]) -> None:
        if report is not None:  # a chain has one reading, also if several members of its population learn
            of_chains = {chain_of[reading.replicate]: reading for reading in readings}
            report(
                [
                    replace(one, replicate=chain, steps=updates[chain] + one.steps, phase="")
                    for chain, one in of_chains.items()
                ]
            )

    sides: dict[str, dict[Replicate, Lesson]] = {}
    for side in job.sides:
        sides[side] = learn(job, side, taught, pass_on)
        for learner, lesson in sides[side].items():
            updates[chain_of[learner]] += lesson.updates
        taught = {learner: taught[learner] for learner in sides[side]}
    lessons = interact(job, sides, taught, pass_on) if len(sides) > 1 else sides[job.task.side]
    failed = {chain for learner, chain in chain_of.items() if learner not in lessons}
    for chain in chains:
        if chain.replicate not in failed:
            chain.add(lessons)
    return [chain for chain in chains if chain.replicate in failed]


def _outcome(job: ChainJob, chain: Chain) -> Outcome:
    kind = job_kind(job.kind)
    last = dict(zip(kind.curve, chain.curve[-1], strict=True))
    files = {job.language_path(chain.replicate, 0): chain.first.to_bytes()}
    for generation, languages in enumerate(chain.languages, 1):
        for member, language in zip(job.protocol.replaced(generation), languages, strict=True):
            files[job.language_path(chain.replicate, generation, member)] = language.to_bytes()
    return Outcome(
        *(chain.replicate, "steps", chain.updates, last["accuracy"], chain.curve, chain.engine, chain.seconds),
        extra={name: last[name] for name in kind.measures if name in last} | {"reached": chain.reached},
        files=files,
    )


def _failure(chain: Chain) -> Outcome:
    return Outcome(chain.replicate, "diverged", chain.updates, math.nan, chain.curve, chain.engine, chain.seconds)
