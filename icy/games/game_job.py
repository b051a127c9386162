"""Jobs that train agents in multi-target games: one task, with several seeds and kinds of distractors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import cast

from icy.core.registry import Entry
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.records.record import Record
from icy.training.job import Job, Replicate

from .game_task import IMAGE_AXES, GameTask
from .presets import preset_changes

CONVOLUTIONS = 4  # time per operation relative to matrix products, measured with conv4 on one core
POOLED = 10  # pixels per use of a weight of conv4, approximately; later layers have fewer positions


@dataclass(frozen=True)
class GameJob(Job):
    """A job that trains one task as a stack of replicates, each with a seed and a kind of distractors.

    Attributes:
        task: the agents and their game.
    """

    task: GameTask
    checkpoints: bool = field(default=True, kw_only=True)

    kind = "games"

    @property
    def name(self) -> str:
        """Names of sender and receiver."""
        return self.task.model

    @property
    def entries(self) -> list[Entry]:
        """Registry entries of the world, the perception, the sender and the receiver."""
        entries = list(self.task.entries.values())
        return [*super().entries, *entries, *(entry.cell for entry in entries if entry.cell is not None)]

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of the game that are columns of tables."""
        task, turns = self.task, self.task.turns
        return {
            "rule_length": turns.rule_length,
            "targets": turns.targets,
            "distractors": turns.distractors,
            "message_length": task.message_length,
        }

    def config(self, replicate: Replicate) -> Choices:
        """Return the configuration of a replicate: all settings that can change its numbers.

        `options` has the settings that differ from the preset, and `settings` all of them.
        """
        task = self.task
        return {
            "model": self.name,
            "grammar": replicate.condition,
            "seed": replicate.seed,
            "representation": task.representation,
            "vocab_size": task.word_size,
            "hidden_size": task.sender_hidden,
            "world": task.world,
            **self.sizes,
            "options": self._options(),
            "settings": {"setup": task.config()},
        }

    def _options(self) -> Choices:
        """Return the settings that differ from the preset, except those with their own record field."""
        usual = preset_changes(self.preset, self.task.world, self.task.representation)
        nothing = object()
        return {name: value for name, value in self.task.changes().items() if usual.get(name, nothing) != value}

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Return the versions of the kind of job, the world, and the parts of the agents."""
        return super().versions(replicate) | {kind: e.full_version for kind, e in self.task.entries.items()}

    def behavior(self) -> dict[str, Fields]:
        """Return the behavior of the world and the parts of the agents that are code of users."""
        from .model import behaviors  # imports torch

        return behaviors(self.task)

    def length(self, baseline: float | None) -> int | None:
        """Return the number of updates."""
        return self.task.steps

    @property
    def update_cost(self) -> float:
        """Relative cost of an update: parameters x objects (x positions, for images)."""
        turns, shape = self.task.turns, self.task.made_world.shape
        positions = CONVOLUTIONS * math.prod(shape[1:]) / POOLED if len(shape) == IMAGE_AXES else 1
        return super().update_cost * positions * (turns.targets + turns.distractors) * self.task.learning.batch_size

    def conditions_text(self) -> str | None:
        """Return the kinds of distractors as a sentence."""
        kinds = sorted({r.condition for r in self.replicates})
        return f"Distractors: {' and '.join(kinds)}." if kinds else None

    def summary(self, record: Record) -> str:
        """Return a short text with the result of a replicate."""
        scores = cast("Choices", record)
        return (
            f"accuracy {scores['accuracy']:.3f}, CBM {scores['cbm']:.2f} (chance {scores['cbm_floor']:.2f}) after "
            f"{counted(scores['steps'], 'update')}"
        )
