"""Training of chains: generation after generation, with checkpoints between and within generations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import numpy as np

from icy import metrics
from icy.core.errors import IncompatibleError
from icy.core.streams import stream
from icy.core.types import State
from icy.languages.language import Language
from icy.languages.meanings import IntArray
from icy.records.kinds import job_kind
from icy.training import engine
from icy.training.job import Outcome, Reading, Replicate, Report
from icy.training.lockstep import FORMAT, Checkpoint, Pace, checkpoint_of, read_state, sweep_checkpoints

from .chain_job import ChainJob, ChainProtocol, learner_of
from .learner_run import Lesson, interact, learn, learner_job, tensor_of

SECONDS = 1.0  # chains save no checkpoint after generations that took less since the last one
SAVED = ("rows", "curve", "updates", "seconds", "reached", "engine", "running")  # attributes of `Chain` in checkpoints


@dataclass
class Chain:
    """A chain that is under way.

    Attributes:
        replicate: its first language and its seed.
        protocol: how the language is passed on.
        first: the first language.
        checkpoint: its checkpoint.
        languages: the languages of the learners of each generation so far, in the order of the members they replaced.
        rows: a row of measures per member of the population, in the order of the curve of the kind "chain".
        curve: a row of measures per generation: means over the members.
        updates: of all learners.
        seconds: of all learners.
        reached: learners that reached the target.
        engine: how the learners train.
        running: states of learners of the next generation, by their parts of the training.
        finished: results of these learners, by the parts of the training that have ended.
    """

    replicate: Replicate
    protocol: ChainProtocol
    first: Language
    checkpoint: Checkpoint
    languages: list[list[Language]] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    curve: list[list[float]] = field(default_factory=list)
    updates: int = 0
    seconds: float = 0.0
    reached: int = 0
    engine: str = ""
    running: dict[str, State] = field(default_factory=dict)
    finished: dict[str, Lesson] = field(default_factory=dict)

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
        self.finished.clear()
        means = dict(zip(job_kind("chain").curve, map(_mean, zip(*self.rows, strict=True)), strict=True))
        self.curve.append([*(means | {"generation": generation, "updates": updates}).values()])

    def save(self) -> None:
        """Save the chain, with the states of its learners."""
        state = {name: getattr(self, name) for name in SAVED}
        state["languages"] = [[tensor_of(one) for one in some] for some in self.languages]
        state["finished"] = {name: lesson.state() for name, lesson in self.finished.items()}
        self.checkpoint.save({"format": FORMAT, "points": list(job_kind("chain").curve), "chain": state})

    def resume(self) -> None:
        """Resume from the checkpoint, if there is one."""
        whole = read_state(self.checkpoint)
        if whole is None:
            return
        state: dict[str, Any] = whole.get("chain", {})
        names = {*SAVED, "languages", "finished"}
        if set(state) != names or whole["points"] != list(job_kind("chain").curve):
            self.checkpoint.refuse(IncompatibleError("another version of icy saved it"))
            return
        for name in SAVED:
            setattr(self, name, state[name])
        for some in state["languages"]:
            self.languages.append([replace(self.first, messages=one.numpy()) for one in some])
        self.finished = {name: Lesson.from_state(one, self.first) for name, one in state["finished"].items()}


class LearnerCheckpoint(Checkpoint):
    """The checkpoint of a learner, which is a part of the checkpoint of its chain.

    Args:
        chain: the chain.
        name: name of the learner and of the part of its training.
    """

    def __init__(self, chain: Chain, name: str) -> None:
        self.path, self.label, self.used = chain.checkpoint.path, chain.checkpoint.label, chain.checkpoint.used
        self.chain, self.name = chain, name

    def save(self, state: State) -> None:
        """Save the chain with this state."""
        self.chain.running[self.name] = state
        self.chain.save()

    def load(self) -> State | None:
        """Return the saved state; None if there is none."""
        return self.chain.running.get(self.name)


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
    table = metrics.Table.of(now.space.all(), now.messages)
    return [
        len(languages) - 1,
        float((now.messages == first.messages).mean()),
        math.nan if lesson is None else float(same.mean()),
        now.distinct_messages / now.space.size,
        float(same[seen].mean()) if seen.any() else math.nan,
        float(same[~seen].mean()) if seen.any() and not seen.all() else math.nan,
        0 if lesson is None else lesson.updates,
        *(metric(table).value for metric in (metrics.topsim, metrics.posdis, metrics.bosdis)),
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
    chains = [
        Chain(replicate, job.protocol, job.language(replicate), checkpoint_of(job, replicate))
        for replicate in job.replicates
    ]
    for chain in chains:
        chain.resume()
    pace = Pace()
    while chains:
        generation = max(chain.generation for chain in chains)
        group = [chain for chain in chains if chain.generation == generation]
        while group and group[0].generation < job.protocol.generations:
            _save_if_due(job, group, pace)
            for chain in _next_generation(job, group, pace, report):  # chains in which a learner failed
                group.remove(chain)
                chains.remove(chain)
                chain.checkpoint.forget()
                yield _failure(chain)
        for chain in group:
            chains.remove(chain)
            yield _outcome(job, chain)
            chain.checkpoint.forget()


def rehearse(job: ChainJob, updates: int) -> float:
    """Return the seconds of one update of the first learners of all chains, which are discarded."""
    taught = {learner_of(replicate, 1): job.language(replicate) for replicate in job.replicates}
    return fmean(engine.rehearse(learner_job(job, side, taught), updates) for side in job.sides)


def _save_if_due(job: ChainJob, chains: Sequence[Chain], pace: Pace) -> None:
    """Save chains between two parts of their training, at most once a second, if this takes little of the time."""
    if job.checkpoints and pace.due(SECONDS):
        with pace.saving():
            for chain in chains:
                chain.save()


def _next_generation(job: ChainJob, chains: Sequence[Chain], pace: Pace, report: Report | None) -> list[Chain]:
    """Train the learners of the next generation of each chain; return the chains in which a learner failed."""
    taught_of = [(chain, learner, language) for chain in chains for learner, language in chain.taught().items()]
    chain_of = {learner: chain for chain, learner, _ in taught_of}
    taught = {learner: language for _, learner, language in taught_of}
    updates = {chain.replicate: chain.updates for chain in chains}  # so far, for readings

    def pass_on(readings: list[Reading]) -> None:
        if report is not None:  # a chain has one reading, also if several members of its population learn
            of_chains = {chain_of[reading.replicate].replicate: reading for reading in readings}
            report(
                [
                    replace(one, replicate=chain, steps=updates[chain] + one.steps, phase="")
                    for chain, one in of_chains.items()
                ]
            )

    def train(part: str, function: Callable[..., dict[Replicate, Lesson]], *given: Any) -> dict[Replicate, Lesson]:
        """Train the learners that have not ended a part of the training; return the results of all learners."""
        names = {learner: f"{part} {learner.seed}" for learner in taught}
        left = {learner: taught[learner] for learner in taught if names[learner] not in chain_of[learner].finished}
        files = {learner: LearnerCheckpoint(chain_of[learner], names[learner]) for learner in left}
        for learner, lesson in function(job, *given, left, files, pass_on).items():
            chain_of[learner].finished[names[learner]] = lesson
            chain_of[learner].running.pop(names[learner], None)
        lessons = {
            learner: chain_of[learner].finished[name]
            for learner, name in names.items()
            if name in chain_of[learner].finished
        }
        for learner, lesson in lessons.items():
            updates[chain_of[learner].replicate] += lesson.updates
        return lessons

    sides: dict[str, dict[Replicate, Lesson]] = {}
    for side in job.sides:
        lessons = sides[side] = train(side, learn, side)
        taught = {learner: taught[learner] for learner in lessons}
        _save_if_due(job, chains, pace)
    if len(sides) > 1:
        lessons = train("interaction", interact, sides)
    failed = {chain.replicate for learner, chain in chain_of.items() if learner not in lessons}
    for chain in chains:
        if chain.replicate not in failed:
            chain.add(lessons)
    return [chain for chain in chains if chain.replicate in failed]


def _outcome(job: ChainJob, chain: Chain) -> Outcome:
    kind = job_kind(job.kind)
    last = dict(zip(kind.curve, chain.curve[-1], strict=True))
    files = {job.language_path(chain.replicate, 0): chain.first.to_bytes()}
    for generation, languages in enumerate(chain.languages, 1):
        for place, language in enumerate(languages):
            files[job.language_path(chain.replicate, generation, place)] = language.to_bytes()
    return Outcome(
        *(chain.replicate, "steps", chain.updates, last["accuracy"], chain.curve, chain.engine, chain.seconds),
        extra={name: last[name] for name in kind.measures if name in last} | {"reached": chain.reached},
        files=files,
    )


def _failure(chain: Chain) -> Outcome:
    return Outcome(chain.replicate, "diverged", chain.updates, math.nan, chain.curve, chain.engine, chain.seconds)
