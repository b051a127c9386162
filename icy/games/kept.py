"""Trained agents of games in files: weights as safetensors, with a card that says what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from icy.records.kept import kept_records
from icy.records.pack import file_in
from icy.records.record import Record, model_file
from icy.training.weights import card_of_file, unpack_weights

from .final import kept_model
from .job import GameJob
from .model import GameModel
from .setup import Setup

SUFFIX = ".safetensors"


def model_of_record(record: Record, weights: Mapping[str, Tensor]) -> GameModel:
    """Return the trained agents of a record. Errors as for `icy.training.weights.restore`."""
    setup = Setup.of_config(record["config"]["settings"]["setup"])
    return kept_model(setup, record["seed"], dict(weights))


@dataclass(frozen=True)
class KeptAgents:
    """A sender and a receiver in a file.

    Attributes:
        card: what the file says of them.
        source: the file, or the results folder or pack with the file's path in it.
    """

    card: Mapping[str, Any]
    source: tuple[Path, str]

    @property
    def label(self) -> str:
        """What they are called in tables."""
        return f"{self.card['model']}, seed {self.card['seed']}"

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
        folder, place = self.source
        content = file_in(folder, place) if place else folder.read_bytes()
        return kept_model(self.setup if setup is None else setup, self.card["seed"], unpack_weights(content))


def kept_agents(path: str | Path, **where: Any) -> list[KeptAgents]:
    """Return the agents of a results folder, a pack, or a .safetensors file.

    Args:
        path: of them.
        **where: what they must have, by the names of records: seed=124, representation="qt", rule_length=4.

    Raises:
        StoreError: there are none.
        UnknownNameError: something that these records do not say.
    """
    path = Path(path)
    if path.suffix == SUFFIX:
        return [KeptAgents(card_of_file(path, "agents"), (path, ""))]
    folder, fits = kept_records(path, GameJob.kind, "agents", **where)
    return [KeptAgents(_card(record), (folder, str(model_file(record)))) for record in fits]


def _card(record: Record) -> dict[str, Any]:
    names = ("model", "grammar", "seed")
    return {name: record.get(name) for name in names} | {"setup": record["config"]["settings"]["setup"]}
