"""The task of a training in multi-target games: a configuration, from which the agents can be made again."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Self

from icy.core.errors import InvalidSettingError
from icy.core.fields import checked, differing
from icy.core.registry import PERCEPTION, SIDES, WORLD, Entry, registry
from icy.core.types import Choices, Fields

from .settings import GamesLearningSettings
from .turn_settings import TurnSettings
from .worlds.factory import make_world
from .worlds.world import World

IMAGE_AXES = 3  # of an object that is an image


@dataclass(frozen=True, kw_only=True)
class GameTask:
    """All that can change the numbers of a training, but its seed and the kind of its distractors.

    Attributes:
        world: name of the world.
        world_options: arguments of the world.
        turns: what turns are like; the kind of distractors is a training's own.
        channel: name of the representation of messages.
        channel_options: attributes of the channel.
        word_size: width of a word: the number of symbols of GS, or of bits of QT.
        message_length: words in a message.
        sender: name of the sender.
        receiver: name of the receiver.
        sender_hidden: hidden size of the sender, and size of what it perceives.
        receiver_hidden: hidden size of the receiver, and size of what it perceives.
        sender_sees: "targets", or "both": distractors too.
        perception: name of the perception of both.
        sender_options: further arguments of the sender.
        receiver_options: further arguments of the receiver.
        perception_options: further arguments of the perception.
        steps: number of updates.
        learning: how agents learn and are evaluated.
    """

    world: str
    world_options: Fields = field(default_factory=dict)
    turns: TurnSettings = field(default_factory=TurnSettings)
    channel: str = "qt"
    channel_options: Fields = field(default_factory=dict)
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
        """Return a task by what `config` gave.

        Raises:
            IcyError: it is of another version of icy.
        """
        inner = {"turns": TurnSettings, "learning": GamesLearningSettings}
        made = {n: of(**checked(of, config[n], "setting")) for n, of in inner.items() if n in config}
        rest = {n: value for n, value in config.items() if n not in inner}
        return cls(**{**checked(cls, rest, "part of a training"), **made})

    def config(self) -> Choices:
        """Return it as JSON has it, without the kind of distractors."""
        found = asdict(self)
        found["turns"].pop("distractor_kind")
        return found

    @property
    def model(self) -> str:
        """Sender and receiver."""
        return f"{self.sender}+{self.receiver}"

    @property
    def words(self) -> int:
        """Width of a word that the sender may say: one less where a symbol is kept for the end."""
        kept = self.learning.reserved_end and self.channel == "gs" and self.message_length > 1
        return self.word_size - 1 if kept else self.word_size

    def word_name(self, word: int) -> str:
        """Return a word as text: its digits with QT, else its number."""
        if self.channel != "qt":
            return str(word)
        levels, rest, digits = self.channel_options.get("levels", 2), word % 2**64, []
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
        """What it is made of: registry entries by kind."""
        return {
            WORLD: registry.get(self.world, WORLD),
            **{side: registry.get(getattr(self, side), side) for side in SIDES},
            PERCEPTION: registry.get(self.perception, PERCEPTION),
        }

    @property
    def parts(self) -> int:
        """Number of vectors that describe a turn to the sender: of targets, and of distractors if it sees these."""
        return 2 if self.sender_sees == "both" else 1

    def of_turns(self, distractor_kind: str) -> TurnSettings:
        """Return what turns are like with a kind of distractors."""
        return replace(self.turns, distractor_kind=distractor_kind)

    def changes(self) -> Choices:
        """Return what differs from the usual, by names that users give, where a table has no column for it."""
        usual = GameTask(world=self.world, word_size=self.word_size, message_length=self.message_length)
        turns = differing(self.turns, replace(usual.turns, rule_length=self.turns.rule_length))
        shown = {"targets", "distractors", "distractor_kind"}
        options = ("world", "channel", "perception", "sender", "receiver")
        sizes = ("sender_hidden", "receiver_hidden", "sender_sees")
        return {
            **{f"{one}.{n}": value for one in options for n, value in getattr(self, f"{one}_options").items()},
            **{name: getattr(self, name) for name in sizes if getattr(self, name) != getattr(usual, name)},
            **({"perception": self.perception} if self.perception != usual_perception(self.made_world) else {}),
            **{name: value for name, value in turns.items() if name not in shown},
            **differing(self.learning, usual.learning),
        }


def usual_perception(world: World) -> str:
    """Return the name of the perception that suits a world: a convolutional one for images."""
    return "conv4" if len(world.shape) == IMAGE_AXES else "mlp"


def usual_word_size(channel: str, concepts: int, levels: int = 2) -> int:
    """Return the width of a word that can name every concept: the fewest digits with QT, else as many symbols.

    Example:
        >>> usual_word_size("gs", 50), usual_word_size("qt", 50), usual_word_size("qt", 17)
        (50, 6, 5)
    """
    if channel != "qt":
        return concepts
    digits = 1
    while levels**digits < concepts:
        digits += 1
    return digits


def require_words(setup: GameTask) -> None:
    """Refuse words of which there is no choice.

    Raises:
        InvalidSettingError: the sender could say one word alone.
    """
    if setup.words < 1 or (setup.channel != "qt" and setup.words < 2):
        raise InvalidSettingError(
            f"A sender needs a choice of words, and with word_size={setup.word_size} there is none; take a larger one."
        )
    if math.prod((setup.words, setup.message_length)) > 10**6:
        raise InvalidSettingError(
            "Words and messages of this size are more than a sender can score; take smaller ones."
        )
