"""Trained agents in files: weights as safetensors, with a card that says what they are and how well they do."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Shaped
from torch import Tensor, nn

from icy.core.errors import StoreError
from icy.core.provenance import git_revision, software
from icy.core.registry import LISTENER
from icy.core.text import listed
from icy.records.kept import kept_records
from icy.records.pack import file_in
from icy.records.record import Record, as_json, model_file
from icy.s2b.players.base import Player
from icy.training.job import Replicate
from icy.training.weights import card_of_file, pack_weights, restore, state_of, unpack_weights

from .job import AgentJob
from .setup import Setup
from .training import Training

SUFFIX = ".safetensors"
Weights = Mapping[str, Shaped[Tensor, "..."]]


def packed_networks(job: AgentJob, replicate: Replicate, training: Training, scores: Mapping[str, Any]) -> bytes:
    """Return the networks of a training as the content of a .safetensors file, with a card."""
    card = {
        "kind": job.kind,
        "model": job.name,
        "grammar": replicate.grammar,
        "seed": replicate.seed,
        "setup": job.setup.config(),
        "updates": training.updates,
        "scores": dict(scores),
        "software": software(),
        "git": git_revision(),
    }
    return pack_weights(state_of(nn.ModuleDict(training.networks())), as_json(card))


def kept_networks(record: Record, weights: Weights) -> nn.Module:
    """Return the trained networks of a record, by their names. Errors as for `restore`."""
    setup = Setup.of_config(record["config"]["settings"]["setup"])
    return restored(setup, record["seed"], weights).module


@dataclass(frozen=True, eq=False)
class Restored:
    """A training whose networks are as they were kept; its other state is that of a beginning.

    Attributes:
        training: the training.
        module: its networks, by their names.
    """

    training: Training
    module: nn.Module


def restored(setup: Setup, seed: int, weights: Weights) -> Restored:
    """Return the training of a setup with these weights. Errors as for `restore`."""
    training = setup.training(seed)
    module = nn.ModuleDict(training.networks())
    return Restored(training, restore(module, weights, setup.model))


@dataclass(frozen=True)
class KeptAgent:
    """An agent in a file.

    Attributes:
        card: what the file says of it.
        source: the file, or the results folder or pack with the file's path in it.
    """

    card: Mapping[str, Any]
    source: tuple[Path, str]

    @property
    def label(self) -> str:
        """What it is called in tables."""
        return f"{self.card['model']}, seed {self.card['seed']}"

    def player(self, role: str) -> Player:
        """Return it as a player.

        Args:
            role: "speaker" or "listener".

        Raises:
            StoreError: the file is damaged, of another version, or its speaker did not learn.
        """
        found = restored(Setup.of_config(self.card["setup"]), self.card["seed"], unpack_weights(self._content()))
        training = found.training
        player = training.listener() if role == LISTENER else training.speaker()
        if isinstance(player, str):
            raise StoreError(
                f"{self.label} has learned to listen, and no speaker: name '{player}', beside which it did."
            )
        return player

    def _content(self) -> bytes:
        folder, place = self.source
        return file_in(folder, place) if place else folder.read_bytes()


def kept_agents(path: str | Path, **where: Any) -> list[KeptAgent]:
    """Return the agents of a results folder, a pack, or a .safetensors file.

    Args:
        path: of them.
        **where: what they must have, by the names of records: seed=124, model="pairs+ppo", samples=4.

    Raises:
        StoreError: there are none.
    """
    path = Path(path)
    if path.suffix == SUFFIX:
        return [KeptAgent(card_of_file(path, "agent"), (path, ""))]
    folder, fits = kept_records(path, AgentJob.kind, "agent", **where)
    return [KeptAgent(_card(record), (folder, str(model_file(record)))) for record in fits]


def _card(record: Record) -> dict[str, Any]:
    names = ("model", "grammar", "seed")
    return {name: record.get(name) for name in names} | {"setup": record["config"]["settings"]["setup"]}


def one_agent(path: str | Path, **where: Any) -> KeptAgent:
    """Return the one agent that `kept_agents` finds.

    Raises:
        StoreError: there is none, or several.
    """
    found = kept_agents(path, **where)
    if len(found) > 1:
        some = listed([agent.label for agent in found[:5]])
        raise StoreError(f"{path} holds {len(found)} agents ({some}): say which, as in seed={found[0].card['seed']}.")
    return found[0]
