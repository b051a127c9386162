"""What an end-to-end run trains: a sender and a receiver, the game that joins them, and the record each pair leaves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from icy.errors import InvalidSettingError
from icy.grammars import grammar_version
from icy.meanings import MeaningSpace, whole_number
from icy.registry import Entry

from .job import Job, Outcome, Replicate, Report, Task
from .settings import TrainingSettings

GAME = "game"  # the phase of readings; before it, the side that learns
SCRATCH = "none"  # in place of a grammar: sender and receiver have learnt no language before
NOT_LEARNT = "not_learnt"  # the reason of a pair whose pre-training did not reach its target
CURVE = ("steps", "accuracy", "loss", "topsim", "sender_accuracy", "receiver_accuracy")


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
class EndToEnd:
    """How long a pair is trained, and what is reported.

    From scratch it plays `steps` updates. After pre-training it plays `cap` times the updates that concat took in
    supervised training at the same seed (the slower side's), and at most `most`; unless `steps` is given.

    Attributes:
        target: accuracy that each side must reach in pre-training.
        cap: the updates of the game as a multiple of concat's supervised updates.
        most: limit of these; None for none.
        steps: the updates of the game, whatever concat took.
        report_every: updates of the game between two readings.
        version: raised whenever a change could move results.
    """

    target: float = 0.99
    cap: float = 20
    most: int | None = 10_000
    steps: int | None = None
    report_every: int = 100
    version: int = 1

    name = "e2e"
    description = "Sender and receiver trained together, from scratch or after learning a grammar."
    source = "Perkins21 tables 6, 11, 17, 18; Icy22 table 18, figure 7"
    measure = "accuracy"
    stops_at_target = False
    holds_out = False

    def __post_init__(self) -> None:
        if not isinstance(self.target, (int, float)) or not 0 < self.target <= 1:
            raise InvalidSettingError(f"The target is an accuracy above 0 and at most 1, not {self.target!r}.")
        if not isinstance(self.cap, (int, float)) or not 0 < self.cap < math.inf:
            raise InvalidSettingError(f"The cap is a multiple of concat's steps and above 0, not {self.cap!r}.")
        for name in ("most", "steps", "report_every"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole_number(f"setting {name}", getattr(self, name)))

    def limit(self, baseline_steps: int) -> int:
        """The updates of a game after pre-training."""
        if self.steps is not None:
            return self.steps
        limit = max(1, int(self.cap * baseline_steps))
        return limit if self.most is None else min(limit, self.most)

    def config(self, scratch: bool) -> dict[str, Any]:
        """What of it can move the numbers of a pair."""
        timing: dict[str, Any] = {"steps": self.steps, "report_every": self.report_every}
        if scratch:
            return timing
        relative = {"cap": self.cap, "most": self.most} if self.steps is None else {}
        return {**timing, "target": self.target, **relative}


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
        from .endtoend import train_pairs  # imports torch

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
