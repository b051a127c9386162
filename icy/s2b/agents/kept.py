"""Trained agents in files: weights as safetensors, with a card that says what they are and how well they do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Shaped
from torch import Tensor, nn

from icy.core.errors import StoreError, unknown
from icy.core.provenance import git_revision, software
from icy.core.registry import LISTENER
from icy.core.text import listed
from icy.records.kinds import kind_of
from icy.records.load import load_records
from icy.records.pack import file_in, is_pack
from icy.records.record import Record, as_json, model_file
from icy.s2b.players.base import Player
from icy.training.job import Replicate
from icy.training.weights import card_of, pack_weights, restore, state_of, unpack_weights

from .job import AgentJob
from .setup import Setup
from .training import Training

SUFFIX = ".safetensors"
FACTS = ("model", "grammar", "seed", "key")
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
        return [_of_file(path)]
    folder = path if path.is_dir() or is_pack(path) else path.parent
    records = [r for r in load_records(path) if kind_of(r).name == AgentJob.kind and model_file(r) is not None]
    _check_facts(records, where)
    fits = [r for r in records if all(_said(r, name) == str(value) for name, value in where.items())]
    if not fits:
        lacking = "was kept with its weights (--keep-models)" if not records else f"is of {listed(_spelt(where))}"
        raise StoreError(f"No agent of {path} {lacking}.")
    return [KeptAgent(_card(record), (folder, str(model_file(record)))) for record in fits]


def _check_facts(records: Sequence[Record], where: Mapping[str, Any]) -> None:
    """Require that agents are asked for by what their records say.

    Raises:
        UnknownNameError: by anything else.
    """
    for name in where:
        if records and all(_said(record, name) == "None" for record in records):
            raise unknown("fact of an agent", name, list(dict.fromkeys((*FACTS, *records[0]["config"]))))


def _said(record: Record, name: str) -> str:
    found: Any = record.get(name, record["config"].get(name))
    return str(found)


def _spelt(where: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in where.items()]


def _card(record: Record) -> dict[str, Any]:
    names = ("model", "grammar", "seed")
    return {name: record.get(name) for name in names} | {"setup": record["config"]["settings"]["setup"]}


def _of_file(path: Path) -> KeptAgent:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}.") from error
    card = card_of(content)
    if "setup" not in card:
        raise StoreError(f"{path} does not say what agent its weights are of.")
    return KeptAgent(card, (path, ""))


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
