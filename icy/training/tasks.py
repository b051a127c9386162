"""Tasks: the model or the pair of one row, with its meaning space and its representation."""

from __future__ import annotations

from dataclasses import dataclass, field

from icy.config.settings import TrainingSettings
from icy.core.registry import Entry
from icy.core.types import Fields
from icy.languages.meanings import MeaningSpace

from .populations import Lengths, Population


@dataclass(frozen=True)
class Task:
    """The model of one row of probes, its space and its representation.

    Attributes:
        entry: the model's registry entry.
        space: the meanings.
        vocab_size: V.
        word_length: w; a message has A*w tokens.
        hidden_size: E.
        representation: name of the representation.
        options: further arguments of the model.
        paired: whether the model is a side of a pair. The sides of a pair start from different random numbers.
        max_length: tokens of a message that may end early, in place of A*w.
        word_lengths: the bounds of the lengths of words, such as "1-4", where word_length is the larger one; "" if all
            words have word_length tokens.
    """

    entry: Entry
    space: MeaningSpace
    vocab_size: int = 4
    word_length: int = 4
    hidden_size: int = 128
    representation: str = "soft"
    options: Fields = field(default_factory=dict)
    paired: bool = False
    max_length: int | None = None
    word_lengths: str = ""

    @property
    def entries(self) -> list[Entry]:
        """The registry entry of its model, in a list."""
        return [self.entry]

    @property
    def side(self) -> str:
        """ "sender" or "receiver"."""
        return self.entry.kind

    @property
    def message_length(self) -> int:
        """Largest number of tokens in a message, L: `max_length` if it is set, otherwise a word per attribute."""
        return self.max_length or self.space.attributes * self.word_length


@dataclass(frozen=True)
class PairEntry:
    """The registry entries of a sender and a receiver, in the role of a single model's entry."""

    sender: Entry
    receiver: Entry

    @property
    def name(self) -> str:
        """Both names, joined."""
        return f"{self.sender.name}+{self.receiver.name}"

    @property
    def qualified(self) -> str:
        """Both names, joined; the order shows the sides."""
        return self.name

    @property
    def full_version(self) -> str:
        """Versions of the sender and the receiver, joined."""
        return f"{self.sender.full_version}+{self.receiver.full_version}"

    def works_with(self, representation: str) -> bool:
        """Whether both models work with a representation."""
        return self.sender.works_with(representation) and self.receiver.works_with(representation)


@dataclass(frozen=True)
class PairTask:
    """The pair of one row of an end-to-end run, its space and its representation.

    Attributes:
        entry: sender and receiver.
        space: the meanings.
        vocab_size: V.
        word_length: w; a message has A*w tokens.
        hidden_size: E, of both.
        representation: form of the messages between them.
        pretrain_representation: representation in pre-training.
        sender_options: further arguments of the sender.
        receiver_options: further arguments of the receiver.
        population: the number of senders and receivers, and the schedule of their replacement.
        lengths: whether the sender may end its messages early.
    """

    entry: PairEntry
    space: MeaningSpace
    vocab_size: int = 4
    word_length: int = 4
    hidden_size: int = 128
    representation: str = "soft"
    pretrain_representation: str = "soft"
    sender_options: Fields = field(default_factory=dict)
    receiver_options: Fields = field(default_factory=dict)
    population: Population = field(default_factory=Population)
    lengths: Lengths = field(default_factory=Lengths)

    side = "pair"

    @property
    def entries(self) -> list[Entry]:
        """The registry entries of its sender and its receiver."""
        return [self.entry.sender, self.entry.receiver]

    @property
    def message_length(self) -> int:
        """Largest number of tokens in a message, L: `max_length` if it is set, otherwise a word per attribute."""
        return self.lengths.max_length or self.space.attributes * self.word_length

    @property
    def options(self) -> Fields:
        """The options of both models, with the side as a prefix."""
        sides = ("sender", self.sender_options), ("receiver", self.receiver_options)
        return {f"{side}.{name}": value for side, options in sides for name, value in options.items()}

    def alone(self, side: str, representation: str) -> Task:
        """Return the task of one side by itself."""
        both = {
            "sender": (self.entry.sender, self.sender_options),
            "receiver": (self.entry.receiver, self.receiver_options),
        }
        entry, options = both[side]
        sizes = self.space, self.vocab_size, self.word_length, self.hidden_size
        return Task(entry, *sizes, representation, options, paired=True, max_length=self.lengths.max_length)

    def feedback(self, settings: TrainingSettings) -> str:
        """Return the representation in which the sender sees its own symbols during the game."""
        return "soft" if settings.soft_feedback and self.entry.sender.works_with("soft") else self.representation
