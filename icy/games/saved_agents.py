"""Trained agents of games in files: weights as safetensors, with a card (configuration and scores)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from icy.records.record import Record
from icy.training.cards import SavedModel

from .final import load_game_model
from .game_job import GameJob
from .game_task import GameTask
from .model import GameModel


def model_of_record(record: Record, weights: Mapping[str, Tensor]) -> GameModel:
    """Load the trained agents of a record. Errors as for `icy.training.weights.restore`."""
    setup = GameTask.of_config(record["config"]["settings"]["setup"])
    return load_game_model(setup, record["seed"], dict(weights))


@dataclass(frozen=True)
class SavedAgents(SavedModel):
    """A trained sender and receiver in a file."""

    kind = GameJob.kind
    what = "agents"

    @property
    def setup(self) -> GameTask:
        """The game that the agents were trained to play."""
        return GameTask.of_config(self.card["setup"])

    @property
    def distractor_kind(self) -> str:
        """Kind of distractors in training."""
        return str(self.card["grammar"])

    def model(self, setup: GameTask | None = None) -> GameModel:
        """Load the agents, in evaluation mode.

        Args:
            setup: task of the game to play; by default the task of the training.

        Raises:
            StoreError: the file is damaged, or was written by another version.
        """
        return load_game_model(self.setup if setup is None else setup, self.card["seed"], self.weights())


def kept_agents(path: str | Path, **where: Any) -> list[SavedAgents]:
    """Find the trained agents in a results folder, a pack, or a .safetensors file.

    Args:
        path: the folder, pack or file.
        **where: select agents with these values of their records' fields, as in seed=124, representation="qt",
            rule_length=4.

    Returns:
        An entry per trained pair. Weights are read only when they are used, so a list of many pairs is cheap.

    Raises:
        StoreError: no agents match.
        UnknownNameError: the records have no field of this name.
    """
    return SavedAgents.find(path, **where)
