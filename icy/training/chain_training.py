"""Training of chains: generation after generation, with checkpoints between and within generations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from icy import metrics
from icy.config.protocols import Protocol
from icy.core.errors import IncompatibleError
from icy.core.representations import without_start
from icy.core.streams import stream
from icy.core.types import Choices, State
from icy.languages.language import Language
from icy.languages.meanings import IntArray
from icy.languages.storage import IntegerArray
from icy.records.kinds import job_kind
from icy.training.chain_settings import ChainSettings, language_path, learner_of
from icy.training.language_job import LanguageJob, PairJob

from .engine import Probes
from .job import Outcome, Reading, Replicate, Report
from .learners import accuracy, examples_at_once
from .lockstep import (
    FORMAT,
    Checkpoint,
    Checkpoints,
    Lockstep,
    Pace,
    checkpoint_of,
    in_groups,
    read_state,
    seconds_of_update,
    sweep_checkpoints,
)
from .pair_game import PairGame, Players, finite_mean
from .probe_settings import ProbeSettings
from .task_models import taught_pair

# -- one generation ----------------------------------------------------------------------------------------------------


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


class Learners(Probes):
    """Training of senders or receivers of one generation, each to the target or for the maximum number of updates.

    Args:
        job: the learners.
        passing: how languages are passed on.
    """

    def __init__(self, job: LanguageJob, passing: ChainSettings) -> None:
        super().__init__(job)
        self.passing = passing
        self.seen = {learner: passing.seen(learner.seed) for learner in job.replicates}
        self._shown: dict[Replicate, tuple[Tensor, Tensor]] = {}

    def _read(self, purpose: str, size: int, which: list[int] | None = None) -> list[float]:
        """Return accuracies on all meanings seen, where they are few, and otherwise on a sample."""
        learners = [self.active[i].replicate for i in (range(len(self.active)) if which is None else which)]
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

    def lesson(self, outcome: Outcome) -> Lesson:
        """Return the results of a learner that ends now and did not diverge."""
        learner, place = outcome.replicate, self.place(outcome.replicate)
        lesson = Lesson(outcome.steps, outcome.reason == "target", outcome.seconds, self.learner.engine)
        if self.task.paired:
            return replace(lesson, weights=self.learner.weights(place))
        if self.task.side == "sender":
            scores = self._scores_of(self.task.space.all(), place)
            said = spoken(scores, self.job.language(learner), learner.seed, self.passing.transmission)
            return replace(lesson, language=said)
        language, communication = self._speak_as_obverter(place)
        return replace(lesson, language=language, communication=communication)

    def _speak_as_obverter(self, place: int) -> tuple[Language, float]:
        """Return the language that a receiver passes on, and the share of its attribute values that it reads correctly.

        It sends each meaning by the message of its teacher's language that it most probably reads as this meaning; or
        it draws one of these messages in proportion to these probabilities.
        """
        learner, space = self.active[place].replicate, self.task.space
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


def learner_settings(own: ChainSettings, side: str) -> ProbeSettings:
    """Return the settings of the senders or the receivers of a generation."""
    measure = "accuracy" if own.split() is None else "held_out"
    return own.learner(side, replace(LEARNING, target=own.target or math.inf, measure=measure))


def _learning(job: LanguageJob, taught: Mapping[Replicate, Language]) -> Choices:
    """Return the fields of a job that trains learners of some chains, except its settings."""
    names = ("device", "engine", "checkpoints")
    return {"replicates": tuple(taught), "taught": taught, **{name: getattr(job, name) for name in names}}


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


class Interaction(PairGame):
    """The pairs of one generation play, if there is an interaction phase. Then senders speak and receivers read this.

    Args:
        job: the pairs.
        passing: how languages are passed on.
        sides: the results of both sides.
    """

    def __init__(self, job: PairJob, passing: ChainSettings, sides: Sides) -> None:
        self.passing, self.sides = passing, sides
        players = []
        for learner in job.replicates:
            weights = {side: of[learner].weights for side, of in sides.items()}
            pair = taught_pair(job.settings, learner.seed, job.training, weights)
            players.append(Players(learner, steps=passing.interaction, models=[pair]))
        super().__init__(job, players)

    def outcomes(self, ended: Mapping[int, str]) -> Iterator[Outcome]:
        """Yield bare outcomes of some pairs, which have no records."""
        self._lessons = self._speak()
        return (self.outcome(place, reason, math.nan) for place, reason in ended.items())

    def lesson(self, outcome: Outcome) -> Lesson:
        """Return the results of a pair that ends now and did not diverge."""
        return self._lessons[outcome.replicate]

    def _speak(self) -> dict[Replicate, Lesson]:
        """Return the results of all pairs in the stack, with the messages of their senders for all meanings."""
        meanings = torch.from_numpy(self.job.settings.space.all()).to(self.device).expand(len(self.active), -1, -1)
        learners = [one.replicate for one in self.active]
        taught = [self.job.language(learner) for learner in learners]
        sent = self._scores(meanings, self._tokens(taught))[0]
        said = [
            spoken(scores, language, learner.seed, self.passing.transmission)
            for scores, language, learner in zip(sent, taught, learners, strict=True)
        ]
        read = self._scores(meanings, self._tokens(said))[2].argmax(-1) == meanings
        communication = read.double().mean((-2, -1)).tolist()
        found = {}
        for place, learner in enumerate(learners):
            alone = [lessons[learner] for lessons in self.sides.values()]
            found[learner] = Lesson(
                sum(lesson.updates for lesson in alone) + self.updates,
                all(lesson.reached for lesson in alone),
                sum(lesson.seconds for lesson in alone) + self.active[place].seconds,
                self.learner.engine,
                said[place],
                communication[place],
            )
        return found

    def _tokens(self, languages: Sequence[Language]) -> Tensor:
        """Return the messages of some languages, [language, meaning, place]."""
        return torch.stack([tensor_of(one) for one in languages]).to(self.device)


# -- chains ------------------------------------------------------------------------------------------------------------


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
    protocol: ChainSettings
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
            seen = self.protocol.seen(learner.seed)
            self.rows[member] = measures([self.first, teacher, lesson.language], lesson, seen)
            languages.append(lesson.language)
            updates += lesson.updates
            self.seconds += lesson.seconds
            self.reached += lesson.reached
            self.engine = lesson.engine
        self.languages.append(languages)
        self.updates += updates
        self.finished.clear()
        means = dict(zip(job_kind("chain").curve, map(finite_mean, zip(*self.rows, strict=True)), strict=True))
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

    def forget(self) -> None:
        """Remove the state from the chain."""
        self.chain.running.pop(self.name, None)


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


def train_chains(job: LanguageJob, report: Report | None = None) -> Iterator[Outcome]:
    """Pass languages on from learner to learner; yield each chain when it ends.

    Chains that are equally far train as one stack.

    Args:
        job: the chains.
        report: called with the accuracy of the learners at every evaluation.
    """
    if job.checkpoints:
        sweep_checkpoints(job.folder)
    chains = [
        Chain(replicate, job.settings, job.language(replicate), checkpoint_of(job, replicate))
        for replicate in job.replicates
    ]
    for chain in chains:
        chain.resume()
    pace = Pace()
    while chains:
        generation = max(chain.generation for chain in chains)
        group = [chain for chain in chains if chain.generation == generation]
        while group and group[0].generation < job.settings.generations:
            _save_if_due(job, group, pace)
            for chain in _next_generation(job, group, pace, report):  # chains in which a learner failed
                group.remove(chain)
                chains.remove(chain)
                chain.checkpoint.forget()
                about = chain.curve, chain.engine, chain.seconds
                yield Outcome(chain.replicate, "diverged", chain.updates, math.nan, *about)
        for chain in group:
            chains.remove(chain)
            yield _outcome(job, chain)
            chain.checkpoint.forget()


def rehearse(job: LanguageJob, updates: int) -> float:
    """Return the seconds of one update of the first learners of all chains, which are discarded."""
    taught = {learner_of(replicate, 1): job.language(replicate) for replicate in job.replicates}
    of_sides = [
        LanguageJob(settings=learner_settings(job.settings, s), **_learning(job, taught)) for s in job.settings.sides
    ]
    return fmean(seconds_of_update(Probes(one), updates) for one in of_sides)


def _save_if_due(job: LanguageJob, chains: Sequence[Chain], pace: Pace) -> None:
    """Save chains between two parts of their training, at most once a second, if this takes little of the time."""
    if job.checkpoints and pace.due(SECONDS):
        with pace.saving():
            for chain in chains:
                chain.save()


def _next_generation(job: LanguageJob, chains: Sequence[Chain], pace: Pace, report: Report | None) -> list[Chain]:
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

    def train(
        part: str, job_class: type[LanguageJob], settings: Any, course_of: Callable[[Any], Learners | Interaction]
    ) -> dict[Replicate, Lesson]:
        """Train the learners that have not ended a part of the training; return the results of all learners."""
        names = {learner: f"{part} {learner.seed}" for learner in taught}
        left = {learner: taught[learner] for learner in taught if names[learner] not in chain_of[learner].finished}

        def learn(some: LanguageJob, checkpoints: Checkpoints) -> Iterator[Outcome]:
            course = course_of(some)
            for outcome in Lockstep(course, checkpoints).outcomes(pass_on):
                if outcome.reason != "diverged":
                    chain_of[outcome.replicate].finished[names[outcome.replicate]] = course.lesson(outcome)
                yield outcome

        files = {learner: LearnerCheckpoint(chain_of[learner], names[learner]) for learner in left}
        for _ in in_groups(job_class(settings=settings, **_learning(job, left)), learn, files):
            pass
        lessons = {
            learner: chain_of[learner].finished[name]
            for learner, name in names.items()
            if name in chain_of[learner].finished
        }
        for learner, lesson in lessons.items():
            updates[chain_of[learner].replicate] += lesson.updates
        return lessons

    own: ChainSettings = job.settings
    sides: dict[str, dict[Replicate, Lesson]] = {}
    for side in own.sides:
        lessons = sides[side] = train(side, LanguageJob, learner_settings(own, side), partial(Learners, passing=own))
        taught = {learner: taught[learner] for learner in lessons}
        _save_if_due(job, chains, pace)
    if len(sides) > 1:
        lessons = train("interaction", PairJob, own.pair, partial(Interaction, passing=own, sides=sides))
    failed = {chain.replicate for learner, chain in chain_of.items() if learner not in lessons}
    for chain in chains:
        if chain.replicate not in failed:
            chain.add(lessons)
    return [chain for chain in chains if chain.replicate in failed]


def _outcome(job: LanguageJob, chain: Chain) -> Outcome:
    kind = job_kind(job.kind)
    last = dict(zip(kind.curve, chain.curve[-1], strict=True))
    files = {language_path(job, chain.replicate, 0): chain.first.to_bytes()}
    for generation, languages in enumerate(chain.languages, 1):
        for place, language in enumerate(languages):
            files[language_path(job, chain.replicate, generation, place)] = language.to_bytes()
    return Outcome(
        *(chain.replicate, "steps", chain.updates, last["accuracy"], chain.curve, chain.engine, chain.seconds),
        extra={name: last[name] for name in kind.measures if name in last} | {"reached": chain.reached},
        files=files,
    )
