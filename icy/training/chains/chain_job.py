"""Chains: a language is passed from learner to learner, and each learner sees a part of the meanings."""

from __future__ import annotations

from dataclasses import dataclass

from icy.config.protocols import checked_target
from icy.config.settings import TrainingSettings, with_budget
from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, quoted, unknown
from icy.core.streams import stream_key
from icy.core.types import Choices
from icy.languages.meanings import MeaningSpace
from icy.languages.splits import Split
from icy.records.record import LANGUAGES, Record
from icy.training.job import Replicate
from icy.training.probe_job import ModelJob

TRANSMISSIONS = ("greedy", "sampled")


@dataclass(frozen=True)
class ChainProtocol:
    """How a language is passed on.

    Attributes:
        generations: number of learners in a chain.
        bottleneck: share of the meanings that a learner sees, above 0 and at most 1.
        transmission: one of TRANSMISSIONS.
        target: accuracy on the meanings seen at which a learner stops; None to train all updates.
        updates: maximum number of updates of a learner.
        version: raised whenever the code changes in a way that could change results.
    """

    generations: int = 10
    bottleneck: float = 0.5
    transmission: str = "greedy"
    target: float | None = 0.98
    updates: int = 4000
    version: int = 1

    name = "iterated"
    description = "A language is passed from learner to learner."
    source = "Kirby et al. 2014; Griffiths and Kalish 2007"
    measure = "survival"
    stops_at_target = False
    holds_out = False

    def __post_init__(self) -> None:
        for name, what in (("generations", "number of generations"), ("updates", "number of updates")):
            object.__setattr__(self, name, whole_number(what, getattr(self, name)))
        if self.transmission not in TRANSMISSIONS:
            raise unknown("transmission", str(self.transmission), TRANSMISSIONS)
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
class ChainJob(ModelJob):
    """Chains of one sender, from several first languages and with several seeds.

    Attributes:
        task: the sender and its setting.
        protocol: how the language is passed on.
        settings: how a learner trains.
    """

    protocol: ChainProtocol  # type: ignore[assignment]
    settings: TrainingSettings

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
            "preset": self.preset,
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
            "settings": self.settings.under(self.task.representation),
        }

    @property
    def learner_settings(self) -> TrainingSettings:
        """The settings of one learner: its last evaluation is after the maximum number of updates."""
        return with_budget(self.settings, self.protocol.updates)

    def is_baseline(self, replicate: Replicate) -> bool:
        """Return False: chains are not compared with concat's."""
        return False

    def length(self, baseline: float | None) -> int | None:
        """Return the maximum number of updates of a chain."""
        return self.protocol.generations * self.protocol.updates

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

    def language_path(self, replicate: Replicate, generation: int) -> str:
        """Return the file of the language of a generation in the results folder."""
        return f"{LANGUAGES}/{self.key(replicate)}-{generation:02d}.npz"


def learner_seed(seed: int, generation: int) -> int:
    """Return the seed of the learner of a generation, for its weights and for the meanings that it sees."""
    return stream_key(seed, "generation", generation)
