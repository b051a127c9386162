"""Pair jobs: a sender and a receiver trained together, from scratch or after each was pre-trained on a grammar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from icy.config.protocols import SCRATCH, EndToEndProtocol
from icy.config.settings import TrainingSettings
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.records.pack import file_in
from icy.records.record import NOT_LEARNED, Record

from .job import Outcome, Replicate
from .probe_job import LanguageJob
from .tasks import PairTask

HAMMING = {"correlation": "spearman", "meaning": "hamming", "message": "hamming"}
GAMES_ON_CPU = 4  # games that are timed for an estimate; larger stacks are hardly more efficient
FORMER_GRID = 50  # updates between checks, the default of version 0.1
LEARNING_ORDER = ("receiver", "sender")  # of the sides, before the game
GAME = "game"  # phase of readings in the game; in pre-training the phase is the side


@dataclass(frozen=True)
class SavedSide:
    """A model that a probe trained, as one side of a pair.

    Attributes:
        source: the results folder or the pack.
        file: path of the file of weights in `source`.
        steps: number of updates in the probe.
        accuracy: final accuracy on the language.
        reached: whether the side reached the target.
        content: content of the file, for machines that do not have the file.
    """

    source: str
    file: str
    steps: int
    accuracy: float
    reached: bool
    content: bytes | None = None

    def weights(self) -> bytes:
        """Return the content of its file of weights."""
        return file_in(self.source, self.file) if self.content is None else self.content


@dataclass(frozen=True)
class PairJob(LanguageJob):
    """Joint training of the pairs of one row, each from scratch or after both sides were pre-trained on a grammar.

    `baselines` holds, by seed, the supervised updates of concat (of the slower side), or the reason of its failure.

    Attributes:
        task: sender and receiver, with their sizes and representation.
        protocol: the length of training.
        training: how the models train.
        pretrained: hashes that identify the rows of the probes that trained the sides; empty if the sides are
            pre-trained here.
        saved_sides: the saved models of these probes, by side and replicate.
    """

    task: PairTask
    protocol: EndToEndProtocol
    training: TrainingSettings
    pretrained: str = ""
    saved_sides: Mapping[tuple[str, Replicate], SavedSide] = field(default_factory=dict, repr=False)

    kind = "e2e"

    def __post_init__(self) -> None:
        super().__post_init__()
        mine = {place: side for place, side in self.saved_sides.items() if place[1] in self.replicates}
        object.__setattr__(self, "saved_sides", mine)  # a part of the job has only its own models

    @property
    def facts(self) -> dict[str, str]:
        """The settings that distinguish rows with the same name."""
        facts = {**super().facts, **self.task.population.facts(), **self.task.lengths.facts()}
        return {name: text for name, text in facts.items() if name != "w" or not self.task.lengths.vary}

    def config(self, replicate: Replicate) -> Choices:
        """Return all choices that can change the numbers of a pair."""
        task, scratch = self.task, replicate.condition == SCRATCH
        before = {} if scratch else {"pretrain_representation": task.pretrain_representation}
        before |= {"pretrained": self.pretrained} if self.pretrained and not scratch else {}
        return {
            **self.task_config(replicate),
            **task.population.config(),
            **task.lengths.config(),
            "protocol": self.protocol.name,
            **self.protocol.config(scratch),
            **before,
            "settings": self._settings(scratch),
        }

    def task_config(self, replicate: Replicate) -> Choices:
        """Return the part of a configuration that describes the pair and the sizes."""
        config = super().task_config(replicate)
        if self.task.lengths.vary:
            del config["word_length"]  # messages that may end early have no words of a fixed length
        return config

    def _settings(self, scratch: bool) -> Choices:
        """Return the settings of the game and of pre-training."""
        game = self.training.under(self.task.representation, self.kind)
        if scratch and game.pop("check_growth", None) is not None:
            game["check_every"] = FORMER_GRID  # without effect, but keys of earlier records include it
        return game if scratch else self.training.under(self.task.pretrain_representation, self.kind) | game

    def for_travel(self) -> PairJob:
        """Return the job with its weights, for a machine without the results folder."""
        packed = {place: replace(side, content=side.weights()) for place, side in self.saved_sides.items()}
        return replace(self, saved_sides=packed, checkpoints=False)

    def length(self, baseline: float | None) -> int | None:
        """Return the number of updates of a game; None if it depends on updates of concat that are not known."""
        if self.protocol.steps is not None:
            return self.protocol.steps
        return None if baseline is None else self.protocol.limit(baseline)

    @property
    def rehearsal(self) -> PairJob:
        """A job of a few games from scratch, because the time of pre-training depends on the grammar."""
        games = tuple(
            Replicate(SCRATCH, r.seed) for r in self.replicates[: GAMES_ON_CPU if self.device == "cpu" else None]
        )
        return replace(self, replicates=games, training=replace(self.training, evaluation_size=2))

    def rehearse(self, updates: int) -> float:
        """Return the seconds of one update of the game for all pairs. The first updates are slower and not timed."""
        if self.device != "cpu":
            from .stack import WARM_UP  # imports torch

            updates = max(updates, WARM_UP + 1)  # so that an update is captured before the clock starts
        protocol = replace(self.protocol, steps=2 * updates, report_every=updates)
        return super(PairJob, replace(self, protocol=protocol)).rehearse(updates)

    def phase_text(self, phase: str) -> str | None:
        """Return a text that names the side in pre-training; None during the game."""
        return None if phase in ("", GAME) else f"pre-training {phase}s"

    def summary(self, record: Record) -> str:
        """Return the result of a pair in a few words."""
        sender = record["sender_accuracy"]
        drift = "" if sender is None else f", sender on its language {sender:.3f}"
        if (worst := record.get("worst_accuracy")) is not None:
            drift = f", worst pairing {worst:.3f}"
        return f"end to end {record['end_to_end_accuracy']:.3f}{drift} after {counted(record['steps'], 'update')}"

    def explain(self, outcome: Outcome) -> str:
        """Return the reason for a failure, as a sentence without a full stop."""
        if outcome.reason != NOT_LEARNED:
            return super().explain(outcome)
        if outcome.extra.get("diverged"):
            return f"the loss of the {outcome.extra['diverged']} is no longer a finite number, in pre-training"
        slow = {
            side: outcome.extra[f"{side}_accuracy"]
            for side in ("sender", "receiver")
            if outcome.extra.get(f"{side}_accuracy", 1) < self.protocol.target
        }
        sides = " and ".join(f"the {side} ({reading:.3f})" for side, reading in slow.items())
        within = "in the probe" if self.pretrained else f"within {counted(self.training.max_steps, 'update')}"
        return f"pre-training did not reach {self.protocol.target} {within}: {sides} on {outcome.replicate.condition}"


def pair_conventions(config: Fields) -> dict[str, dict[str, str]]:
    """Return the conventions of topsim in a record of a pair, by the configuration of the record."""
    published = config.get("settings", {}).get("training_readings", False)
    return {"topsim": {**HAMMING, "pairs": "ordered" if published else "all"}}
