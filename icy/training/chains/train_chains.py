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
from icy.records.kinds import job_kind
from icy.training.checkpoints import Checkpoint, sweep_checkpoints
from icy.training.job import Outcome, Reading, Replicate, Report

from .chain_job import ChainJob
from .learner_run import LearnerRun, Lesson


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

    def add(self, lesson: Lesson) -> None:
        """Add the language of the next learner, and measure it."""
        self.languages.append(lesson.language)
        self.updates += lesson.updates
        self.seconds += lesson.seconds
        self.reached += lesson.reached
        self.engine = lesson.engine
        self.curve.append(measures(self.languages, lesson))

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


def measures(languages: Sequence[Language], lesson: Lesson | None = None) -> list[float]:
    """Return the point of the curve for the last of some languages.

    Args:
        languages: the first language, then the languages of the learners so far.
        lesson: of the last learner; None if there is none yet.
    """
    first, before, now = languages[0], languages[-2:][0], languages[-1]
    same = now.messages == before.messages
    seen = np.zeros(now.space.size, dtype=bool)
    if lesson is not None:
        seen[lesson.seen] = True
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


def rehearse(job: ChainJob, updates: int) -> float:
    """Return the seconds of one update of the first learners of all chains, which are discarded."""
    return LearnerRun(job, 1, {r: job.language(r) for r in job.replicates}).seconds_of_update(updates)


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
    run = LearnerRun(job, generation, {chain.replicate: chain.languages[-1] for chain in chains})
    before = {chain.replicate: chain.updates for chain in chains}

    def pass_on(readings: list[Reading]) -> None:
        if report is not None:
            chain_of = [(run.chain_of[reading.replicate], reading) for reading in readings]
            report([replace(one, replicate=chain, steps=before[chain] + one.steps) for chain, one in chain_of])

    for _ in run.go(pass_on):
        pass
    for chain in chains:
        if chain.replicate in run.lessons:
            chain.add(run.lessons[chain.replicate])
    return [chain for chain in chains if chain.replicate not in run.lessons]


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
