"""Tasks: the complete configuration of a training in multi-target games, as stored in records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, Self

from icy.core.errors import InvalidSettingError
from icy.core.fields import changed_fields, checked, stored_names
from icy.core.registry import PERCEPTION, SIDES, WORLD, Entry, registry
from icy.core.types import Choices, Fields

from .settings import GamesLearningSettings, TurnSettings
from .spec import OLD_NAMES
from .worlds.world import World, make_world

IMAGE_AXES = 3  # axes of an image


@dataclass(frozen=True, kw_only=True)
class GameTask:
    """All settings that can change the numbers of a training, except the seed and the kind of distractors.

    Attributes:
        world: name of the world.
        world_options: arguments of the world.
        turns: settings of turns. Each replicate has its own kind of distractors.
        representation: name of the representation of messages.
        representation_options: attributes of the representation.
        word_size: size of a word: the number of symbols (GS) or of bits (QT).
        message_length: number of words in a message.
        sender: name of the sender.
        receiver: name of the receiver.
        sender_hidden: hidden size of the sender, and size of the output of its perception.
        receiver_hidden: hidden size of the receiver, and size of the output of its perception.
        sender_sees: the sender's input: "targets", or "both" (targets and distractors).
        perception: name of the perception of both agents.
        sender_options: further arguments of the sender.
        receiver_options: further arguments of the receiver.
        perception_options: further arguments of the perception.
        steps: number of updates.
        learning: settings of learning and evaluation.
    """

    old_names: ClassVar[Mapping[str, str]] = MappingProxyType(OLD_NAMES)

    world: str
    world_options: Fields = field(default_factory=dict)
    turns: TurnSettings = field(default_factory=TurnSettings)
    representation: str = "qt"
    representation_options: Fields = field(default_factory=dict)
    word_size: int
    message_length: int
    sender: str = "RNNAutoReg:LSTM"
    receiver: str = "RNN1L:LSTM"
    sender_hidden: int = 60
    receiver_hidden: int = 40
    sender_sees: str = "targets"
    perception: str = "mlp"
    sender_options: Fields = field(default_factory=dict)
    receiver_options: Fields = field(default_factory=dict)
    perception_options: Fields = field(default_factory=dict)
    steps: int = 20_000
    learning: GamesLearningSettings = field(default_factory=GamesLearningSettings)

    @classmethod
    def of_config(cls, config: Fields) -> Self:
        """Create a task from the dictionary that `config` returns.

        Raises:
            IcyError: another version of icy wrote the configuration.
        """
        inner = {"turns": TurnSettings, "learning": GamesLearningSettings}
        made = {n: of(**checked(of, config[n], "setting")) for n, of in inner.items() if n in config}
        rest = {n: value for n, value in config.items() if n not in inner}
        return cls(**{**checked(cls, rest, "part of a training"), **made})

    def config(self) -> Choices:
        """Return the task as JSON-compatible values, without the kind of distractors."""
        config = stored_names(type(self), asdict(self))
        config["turns"].pop("distractor_kind")
        return config

    @property
    def model(self) -> str:
        """Names of sender and receiver."""
        return f"{self.sender}+{self.receiver}"

    @property
    def words(self) -> int:
        """Size of a word of the sender: one symbol fewer if one is reserved for the end."""
        reserved = self.learning.reserved_end and self.representation == "gs" and self.message_length > 1
        return self.word_size - 1 if reserved else self.word_size

    def word_name(self, word: int) -> str:
        """Return the name of a word: its digits with QT, otherwise its number."""
        if self.representation != "qt":
            return str(word)
        levels, rest, digits = self.representation_options.get("levels", 2), word % 2**64, []
        for _ in range(self.words):
            rest, digit = divmod(rest, levels)
            digits.append(str(digit))
        return "".join(reversed(digits))

    @cached_property
    def made_world(self) -> World:
        """The world."""
        return make_world(self.world, **self.world_options)

    @property
    def entries(self) -> dict[str, Entry]:
        """Registry entries of the world, the agents and the perception, by kind."""
        return {
            WORLD: registry.get(self.world, WORLD),
            **{side: registry.get(getattr(self, side), side) for side in SIDES},
            PERCEPTION: registry.get(self.perception, PERCEPTION),
        }

    @property
    def parts(self) -> int:
        """Number of vectors in the sender's input per turn: of targets, and of distractors if it sees them."""
        return 2 if self.sender_sees == "both" else 1

    def of_turns(self, distractor_kind: str) -> TurnSettings:
        """Return the settings of turns with a kind of distractors."""
        return replace(self.turns, distractor_kind=distractor_kind)

    def changes(self) -> Choices:
        """Return the settings without a table column that differ from the defaults, by name of the option."""
        usual = GameTask(world=self.world, word_size=self.word_size, message_length=self.message_length)
        turns = changed_fields(self.turns, replace(usual.turns, rule_length=self.turns.rule_length))
        shown = {"targets", "distractors", "distractor_kind"}
        owners = ("world", "representation", "perception", "sender", "receiver")
        options = stored_names(type(self), {one: getattr(self, f"{one}_options") for one in owners})
        sizes = ("sender_hidden", "receiver_hidden", "sender_sees")
        return {
            **{f"{one}.{n}": value for one, own in options.items() for n, value in own.items()},
            **{name: getattr(self, name) for name in sizes if getattr(self, name) != getattr(usual, name)},
            **({"perception": self.perception} if self.perception != default_perception(self.made_world) else {}),
            **{name: value for name, value in turns.items() if name not in shown},
            **changed_fields(self.learning, usual.learning),
        }


def default_perception(world: World) -> str:
    """Return the name of the default perception of a world: conv4 for images, otherwise mlp."""
    return "conv4" if len(world.shape) == IMAGE_AXES else "mlp"


def default_word_size(representation: str, concepts: int, levels: int = 2) -> int:
    """Return the smallest size of a word that can name every concept.

    Example:
        >>> default_word_size("gs", 50), default_word_size("qt", 50), default_word_size("qt", 17)
        (50, 6, 5)
    """
    if representation != "qt":
        return concepts
    digits = 1
    while levels**digits < concepts:
        digits += 1
    return digits


def require_words(setup: GameTask) -> None:
    """Check that words have a useful size.

    Raises:
        InvalidSettingError: the sender has only one word, or too many words.
    """
    if setup.words < 1 or (setup.representation != "qt" and setup.words < 2):
        raise InvalidSettingError(
            f"A sender needs at least two different words, and word_size={setup.word_size} is too small; take a larger "
            "word_size."
        )
    if math.prod((setup.words, setup.message_length)) > 10**6:
        raise InvalidSettingError(
            f"word_size={setup.word_size} times message_length={setup.message_length} is above 1,000,000, too large "
            "for a sender; take a smaller word_size or message_length."
        )
