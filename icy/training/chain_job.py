"""Chains: a language is passed from learner to learner, and each learner sees a part of the meanings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from icy.config.protocols import checked_target
from icy.config.settings import TrainingSettings, with_budget
from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, quoted, require_known
from icy.core.streams import stream_key
from icy.core.types import Choices, Fields
from icy.languages.meanings import IntArray, MeaningSpace
from icy.languages.splits import Split
from icy.records.record import LANGUAGES, Record

from .job import Replicate
from .pair_job import LEARNING_ORDER
from .probe_job import LanguageJob
from .tasks import PairTask, Task

TRANSMISSIONS = ("greedy", "sampled")
REPLACEMENTS = ("simultaneous", "gradual")


@dataclass(frozen=True)
class ChainProtocol:
    """How a language is passed on.

    Attributes:
        generations: number of learners in a chain.
        bottleneck: share of the meanings that a learner sees, above 0 and at most 1.
        transmission: one of TRANSMISSIONS.
        target: accuracy on the meanings seen at which a learner stops; None to train all updates.
        updates: maximum number of updates of a learner.
        interaction: updates in which the sender and the receiver of a pair play after learning.
        population: number of members of a population. A learner takes the place of a member. Its teacher is drawn from
            the members before.
        replacement: one of REPLACEMENTS: a generation replaces all members, or one, in turn.
        version: raised whenever the code changes in a way that could change results.
    """

    generations: int = 10
    bottleneck: float = 0.5
    transmission: str = "greedy"
    target: float | None = 0.98
    updates: int = 4000
    interaction: int = 0
    population: int = 1
    replacement: str = "simultaneous"
    version: int = 1

    name = "iterated"
    description = "A language is passed from learner to learner."
    source = "Kirby et al. 2014; Griffiths and Kalish 2007"
    measure = "survival"
    stops_at_target = False
    holds_out = False

    def __post_init__(self) -> None:
        counts = {
            "generations": "number of generations",
            "updates": "number of updates",
            "population": "number of members of a population",
        }
        for name, what in counts.items():
            object.__setattr__(self, name, whole_number(what, getattr(self, name)))
        object.__setattr__(
            self, "interaction", whole_number("number of updates of the interaction", self.interaction, 0)
        )
        require_known("transmission", self.transmission, TRANSMISSIONS)
        require_known("replacement", self.replacement, REPLACEMENTS)
        if self.target is not None:
            checked_target(self.target)

    def split(self, space: MeaningSpace) -> Split | None:
        """Return the split into meanings that a learner sees and held-out meanings; None if it sees all.

        Raises:
            InvalidSettingError: the learner would see no meaning, or not every value.
        """
        if self.bottleneck == 1:
            return None
        split = Split("random", 1 - self.bottleneck)
        try:
            split.check(space)
        except InvalidSettingError:
            seen = round(self.bottleneck * space.size)
            raise InvalidSettingError(
                f"A bottleneck of {self.bottleneck:g} shows {seen} of the {space.size} meanings of {space}. A learner "
                f"must see at least {space.values} meanings, so that every value occurs, and fewer than all. To show "
                "all meanings, set the bottleneck to 1."
            ) from None
        return split

    def later_settings(self) -> Choices:
        """Return the settings that were added later, if they have an effect, so that keys of earlier records remain."""
        population = {"population": self.population, "replacement": self.replacement}
        return {
            **({"interaction": self.interaction} if self.interaction else {}),
            **(population if self.population > 1 else {}),
        }

    def replaced(self, generation: int) -> list[int]:
        """Return the numbers of the members that a generation replaces, from 0."""
        return [(generation - 1) % self.population] if self.replacement == "gradual" else [*range(self.population)]

    def seen(self, space: MeaningSpace, seed: int) -> IntArray:
        """Return the numbers of the meanings that the learner with a seed sees."""
        split = self.split(space)
        return np.arange(space.size) if split is None else split.parts(space, seed)[0]


def bottleneck_share(given: object, space: MeaningSpace) -> float:
    """Return the bottleneck as a share of the meanings. A value above 1 is a number of meanings.

    Raises:
        InvalidSettingError: not a share or a number of meanings.
    """
    try:
        number = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number <= space.size or (number > 1 and number != int(number)):
        raise InvalidSettingError(
            f"The bottleneck is a share above 0 and at most 1, or a number of meanings from 2 to {space.size}; not "
            f"{quoted(given)}."
        )
    return number if number <= 1 else number / space.size


@dataclass(frozen=True)
class ChainJob(LanguageJob):
    """Chains of one sender, receiver or pair, from several first languages and with several seeds.

    Attributes:
        task: the sender, the receiver or the pair, and its setting.
        protocol: how the language is passed on.
        training: how a learner trains.
    """

    task: Task | PairTask
    protocol: ChainProtocol  # type: ignore[assignment]
    training: TrainingSettings

    kind = "chain"

    @property
    def facts(self) -> dict[str, str]:
        """The settings that distinguish rows of one model."""
        task, protocol = self.task, self.protocol
        return {
            "hidden size": str(task.hidden_size),
            "meanings": str(task.space),
            "V": str(task.vocab_size),
            "w": str(task.word_length),
            "representation": task.representation,
            "generations": str(protocol.generations),
            "bottleneck": f"{protocol.bottleneck:g}",
            "transmission": protocol.transmission,
            "target": "none" if protocol.target is None else f"{protocol.target:g}",
            "updates": str(protocol.updates),
            "interaction": str(protocol.interaction),
            "population": str(protocol.population),
            "replacement": protocol.replacement,
            "preset": self.preset,
            **({"settings": changed} if (changed := self._changed_settings) else {}),
            **self._drawn,
        }

    def config(self, replicate: Replicate) -> Choices:
        """Return all choices that can change the numbers of a chain."""
        protocol = self.protocol
        return {
            **self.task_config(replicate),
            "protocol": protocol.name,
            "generations": protocol.generations,
            "bottleneck": protocol.bottleneck,
            "transmission": protocol.transmission,
            "learner_target": protocol.target,
            "learner_updates": protocol.updates,
            **protocol.later_settings(),
            "settings": self.training.under(self.task.representation, "e2e" if self.side == "pair" else "probe"),
        }

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that learn, in order."""
        return LEARNING_ORDER if isinstance(self.task, PairTask) else (self.task.side,)

    def side_task(self, side: str) -> Task:
        """Return the task of one side."""
        task = self.task
        return task.alone(side, task.pretrain_representation) if isinstance(task, PairTask) else task

    @property
    def learner_settings(self) -> TrainingSettings:
        """The settings of one learner: its last evaluation is after the maximum number of updates."""
        return with_budget(self.training, self.protocol.updates)

    def is_baseline(self, replicate: Replicate) -> bool:
        """Return False: chains are not compared with concat's."""
        return False

    def length(self, baseline: float | None) -> int | None:
        """Return the maximum number of updates of a chain."""
        return round(self.updates_with(self.protocol.updates))

    def updates_with(self, each: float) -> float:
        """Return the updates of a chain in which each side of a learner makes `each` updates, within the maximum."""
        protocol = self.protocol
        learners = protocol.generations * len(protocol.replaced(1))
        return learners * (len(self.sides) * min(each, protocol.updates) + protocol.interaction)

    def limit_text(self) -> str:
        """Return the words before the remaining time: "at most" or "about"."""
        return "at most" if self.protocol.target is not None else "about"

    def waiting_text(self) -> str:
        """Return a phrase for the time in which the length is not known."""
        return "passing languages on"

    def summary(self, record: Record) -> str:
        """Return the result of a chain in a few words."""
        last = record["curve"][-1]
        return (
            f"after {last[0]} generations {record['accuracy']:.0%} of the tokens are still the same; "
            f"{last[3]:.0%} of the messages are distinct"
        )

    def language_path(self, replicate: Replicate, generation: int, place: int = 0) -> str:
        """Return the file of the language of a learner in the results folder.

        Args:
            replicate: the chain.
            generation: generation of the learner; 0 for the first language.
            place: its place among the learners of its generation; only the first has a name without it.
        """
        return f"{LANGUAGES}/{self.key(replicate)}-{generation:02d}{f'.{place:02d}' if place else ''}.npz"


def chain_conventions(config: Fields) -> dict[str, dict[str, str]]:
    """Return the conventions of topsim in the records of chains."""
    return {"topsim": {"correlation": "spearman", "meaning": "hamming", "message": "levenshtein", "pairs": "all"}}


def learner_of(chain: Replicate, generation: int, member: int = 0) -> Replicate:
    """Return the learner of a generation that takes the place of a member.

    Its seed is that of its weights and of the meanings that it sees.
    """
    names = ("generation", generation, *(("member", member) if member else ()))
    return replace(chain, seed=stream_key(chain.seed, *names))
