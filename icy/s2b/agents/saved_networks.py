"""Files of trained agents: weights as safetensors, with a card (configuration and scores)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from icy.core.errors import IncompatibleError, StoreError
from icy.core.machine import git_revision, software
from icy.core.registry import LISTENER
from icy.core.types import Fields
from icy.records.kinds import job_kind
from icy.records.record import Record, as_json
from icy.s2b.players.interface import Player, Seat
from icy.s2b.settings import GameSettings
from icy.training.job import Job, Replicate
from icy.training.weights import SavedModel, code_for_card, pack_weights, restore, state_of

from .memories.attention import MemoryListener, MemoryPlayer
from .training import AgentTraining, GameTraining

Weights = Mapping[str, Shaped[Tensor, "..."]]


def packed_networks(job: Job, replicate: Replicate, training: AgentTraining, scores: Fields) -> bytes:
    """Pack the networks of a training, with a card, as the content of a .safetensors file."""
    card = {
        "kind": job.kind,
        "model": job.name,
        "grammar": replicate.condition,
        "seed": replicate.seed,
        "setup": job.settings.setup(),
        "updates": training.updates,
        "scores": dict(scores),
        "software": software(),
        "git": git_revision(),
        **code_for_card(job.fixed_versions(replicate)),
    }
    return pack_weights(state_of(nn.ModuleDict(training.networks())), as_json(card))


def kept_networks(record: Record, weights: Weights) -> nn.Module:
    """Load the trained networks of a record. Raises the errors of `restore`."""
    settings = settings_of(record["kind"], record["config"]["settings"]["setup"])
    return nn.ModuleDict(restored(settings, record["seed"], weights).networks()).eval()


def settings_of(kind: str, setup: Fields) -> Any:
    """Return the settings of trained agents from the part "setup" of a record or card; see `of_config`."""
    settings: Any = job_kind(kind).settings
    return settings.of_config(setup)


def restored(settings: Any, seed: int, weights: Weights) -> AgentTraining:
    """Create the training of a row, and load saved weights. Raises the errors of `restore`."""
    training: AgentTraining = settings.training(seed)
    restore(nn.ModuleDict(training.networks()), weights, settings.name)
    return training


@dataclass(frozen=True)
class SavedAgent(SavedModel):
    """A trained agent in a file."""

    kind = "s2b"
    what = "agent"

    @property
    def game(self) -> GameSettings:
        """Settings of the game that the agent was trained on."""
        game: GameSettings = settings_of(self.kind, self.card["setup"]).game
        return game

    def player(self, role: str) -> Player:
        """Load the agent as a player.

        Args:
            role: "speaker" or "listener".

        Raises:
            StoreError: the file is damaged or from another version, or a speaker is requested and did not learn.
        """
        settings = settings_of(self.kind, self.card["setup"])
        training = cast(GameTraining, restored(settings, self.card["seed"], self.weights()))
        player = training.listener() if role == LISTENER else training.speaker()
        if isinstance(player, str):
            raise StoreError(
                f"{self.label} has a trained listener, but no trained speaker. It was trained with the speaker "
                f"'{player}': give '{player}' as the speaker."
            )
        return player


def one_agent(path: str | Path, **where: Any) -> SavedAgent:
    """Find the only agent that matches `where`; see `SavedModel.find`.

    Raises:
        StoreError: no agent matches, or several do.
    """
    return SavedAgent.find_one(path, **where)


# -- the trained agent that comes with icy. `results/s2b_memory/__main__.py` writes its file ---------------------------


FILE = Path(__file__).with_name("memory.safetensors")


def memory() -> Player:
    """Load the trained listener that comes with icy, an attention memory.

    It was trained from rewards only, on 2 to 5 values with 32 tokens. It can play games with any number of values,
    stimuli and samples, and with up to 32 tokens. In games with other numbers of dimensions or tokens, position d of a
    sentence describes dimension d.
    """
    player = one_agent(FILE).player(LISTENER)
    return FittedPlayer(cast(MemoryPlayer, player).model)


class FittedPlayer(MemoryPlayer):
    """Player that adapts a trained memory to the game's number of dimensions and length of messages.

    Args:
        model: the trained memory, of the kind "pairs".
    """

    def __init__(self, model: MemoryListener) -> None:
        super().__init__(model)
        self.trained = model

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. Stimuli must have one number per dimension."""
        if seat.settings.representation != "scs":
            raise IncompatibleError("This memory needs stimuli of one number per dimension (representation 'scs').")
        self.model = fitted(self.trained, seat.settings)
        super().begin(seat)


def fitted(trained: MemoryListener, game: GameSettings) -> MemoryListener:
    """Adapt a trained memory of pairs to the sizes of a game.

    In the new alignment, the position that describes a dimension gets the mean of the trained weights of matching
    positions. All other positions get the mean of the other weights.
    """
    tokens = game.rounds * game.length
    if (game.width, tokens) == (trained.dimensions, trained.tokens):
        return trained
    vocabulary = trained.embedding.num_embeddings - 1
    with torch.random.fork_rng(devices=[]):
        memory = MemoryListener(replace(game, vocab_size=vocabulary), trained.settings)
    weights = trained.alignment.detach()
    matching = torch.eye(*weights.shape, dtype=torch.bool, device="cpu")
    alignment = weights[~matching].mean().repeat(game.width, tokens)
    for dimension in range(min(game.width, game.reach)):
        later = max(0, dimension - game.length + 1)  # each round starts one dimension later
        alignment[dimension, later * game.length + dimension - later] = weights[matching].mean()
    memory.load_state_dict({**trained.state_dict(), "alignment": alignment})
    return memory
