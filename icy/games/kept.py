"""Trained agents of games in files: weights as safetensors, with a card that says what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from icy.records.record import Record
from icy.training.cards import Kept

from .final import kept_model
from .job import GameJob
from .model import GameModel
from .setup import Setup


def model_of_record(record: Record, weights: Mapping[str, Tensor]) -> GameModel:
    """Return the trained agents of a record. Errors as for `icy.training.weights.restore`."""
    setup = Setup.of_config(record["config"]["settings"]["setup"])
    return kept_model(setup, record["seed"], dict(weights))


@dataclass(frozen=True)
class KeptAgents(Kept):
    """A sender and a receiver in a file."""

    kind = GameJob.kind
    what = "agents"

    @property
    def setup(self) -> Setup:
        """What was trained."""
        return Setup.of_config(self.card["setup"])

    @property
    def distractor_kind(self) -> str:
        """Kind of the distractors beside which they learned."""
        return str(self.card["grammar"])

    def model(self, setup: Setup | None = None) -> GameModel:
        """Return them, in evaluation mode.

        Args:
            setup: of the game that they are to play; by default of the one in which they learned.

        Raises:
            StoreError: the file is damaged, or of another version.
        """
        return kept_model(self.setup if setup is None else setup, self.card["seed"], self.weights())


def kept_agents(path: str | Path, **where: Any) -> list[KeptAgents]:
    """Return the agents of a results folder, a pack, or a .safetensors file.

    Args:
        path: of them.
        **where: what they must have, by the names of records: seed=124, representation="qt", rule_length=4.

    Raises:
        StoreError: there are none.
        UnknownNameError: something that these records do not say.
    """
    return KeptAgents.found(path, **where)
