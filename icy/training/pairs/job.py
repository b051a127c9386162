"""What an end-to-end run trains: a sender and a receiver, the game that joins them, and the record each pair leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from icy.config.protocols import SCRATCH, EndToEnd
from icy.config.settings import TrainingSettings
from icy.core.registry import Entry
from icy.grammars import grammar_version
from icy.languages.meanings import MeaningSpace
from icy.records.record import NOT_LEARNT
from icy.training.job import Job, Outcome, Replicate, Report, Task

GAME = "game"  # the phase of readings; before it, the side that learns


@dataclass(frozen=True)
class PairEntry:
    """A sender and a receiver, where a single model has its registry entry."""

    sender: Entry
    receiver: Entry

    @property
    def name(self) -> str:
        """Both names, joined."""
        return f"{self.sender.name}+{self.receiver.name}"

    @property
    def qualified(self) -> str:
        """The same: neither side can be mistaken."""
        return self.name

    def works_with(self, representation: str) -> bool:
        """Whether both do."""
        return self.sender.works_with(representation) and self.receiver.works_with(representation)


@dataclass(frozen=True)
class PairTask:
    """What one row of an end-to-end run trains.

    Attributes:
        entry: sender and receiver.
        space: the meanings.
        vocab_size: V.
        word_length: w; a message has A*w tokens.
        hidden_size: E, of both.
        representation: of the link between them.
        pretrain_representation: in which each learns the language before.
        sender_options: further arguments of the sender.
        receiver_options: further arguments of the receiver.
    """

    entry: PairEntry
    space: MeaningSpace
    vocab_size: int = 4
    word_length: int = 4
    hidden_size: int = 128
    representation: str = "soft"
    pretrain_representation: str = "soft"
    sender_options: Mapping[str, Any] = field(default_factory=dict)
    receiver_options: Mapping[str, Any] = field(default_factory=dict)

    side = "pair"

    @property
    def message_length(self) -> int:
        """L."""
        return self.space.attributes * self.word_length

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of both, each with its side."""
        sides = ("sender", self.sender_options), ("receiver", self.receiver_options)
        return {f"{side}.{name}": value for side, options in sides for name, value in options.items()}

    def alone(self, side: str, representation: str) -> Task:
        """The task of one side by itself."""
        both = {
            "sender": (self.entry.sender, self.sender_options),
            "receiver": (self.entry.receiver, self.receiver_options),
        }
        entry, options = both[side]
        sizes = self.space, self.vocab_size, self.word_length, self.hidden_size
        return Task(entry, *sizes, representation, options, paired=True)

    def feedback(self, settings: TrainingSettings) -> str:
        """The representation in which the sender sees its own symbols during the game."""
        return "soft" if settings.soft_feedback and self.entry.sender.works_with("soft") else self.representation


@dataclass(frozen=True)
class PairJob(Job):
    """Pairs of one row, for one process; `task` is a PairTask and `protocol` an EndToEnd.

    `baselines` holds, by seed, the supervised updates that concat took (the slower side's), or why there are none.
    """

    task: PairTask  # type: ignore[assignment]
    protocol: EndToEnd  # type: ignore[assignment]

    def length(self, baseline: int | None) -> int | None:
        """The updates of a game."""
        return self.protocol.steps or super().length(baseline)

    def train(self, report: Report | None = None) -> Iterator[Outcome]:
        """As for any job."""
        from .train import train_pairs  # imports torch

        return train_pairs(self, report)

    def config(self, replicate: Replicate) -> dict[str, Any]:
        """Everything the user chose that can move the numbers of a pair."""
        task, scratch = self.task, replicate.grammar == SCRATCH
        before = {} if scratch else {"pretrain_representation": task.pretrain_representation}
        return {
            **self.setting(replicate),
            "protocol": self.protocol.name,
            **self.protocol.config(scratch),
            **before,
            "settings": self._settings(scratch),
        }

    def _settings(self, scratch: bool) -> dict[str, Any]:
        """The settings of the game and of what came before it."""
        game = self.settings.under(self.task.representation, "e2e")
        return game if scratch else self.settings.under(self.task.pretrain_representation, "e2e") | game

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Versions of the parts that determine the numbers."""
        grammar = {} if replicate.grammar == SCRATCH else {"grammar": grammar_version(replicate.grammar)}
        both = self.task.entry
        models = f"{both.sender.full_version}+{both.receiver.full_version}"
        return {"model": models, **grammar, "protocol": str(self.protocol.version)}

    def _explain(self, outcome: Outcome) -> str:
        if outcome.reason != NOT_LEARNT:
            return super()._explain(outcome)
        if outcome.extra.get("diverged"):
            return f"the loss of the {outcome.extra['diverged']} is no longer a finite number, in pre-training"
        slow = {
            side: outcome.extra[f"{side}_accuracy"]
            for side in ("sender", "receiver")
            if outcome.extra.get(f"{side}_accuracy", 1) < self.protocol.target
        }
        told = " and ".join(f"the {side} ({reading:.3f})" for side, reading in slow.items())
        return (
            f"pre-training did not reach {self.protocol.target} within {self.settings.max_steps} updates: {told} "
            f"on {outcome.replicate.grammar}"
        )
