"""Files of trained agents: weights as safetensors, with a card (configuration and scores)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from jaxtyping import Shaped
from torch import Tensor, nn

from icy.core.errors import StoreError
from icy.core.machine import git_revision, software
from icy.core.registry import LISTENER
from icy.core.types import Fields
from icy.records.record import Record, as_json
from icy.s2b.players.interface import Player
from icy.s2b.settings import GameSettings
from icy.training.job import Replicate
from icy.training.weights import SavedModel, code_for_card, pack_weights, restore, state_of

from .agent_job import AgentJob
from .agent_task import AgentTask
from .training import AgentTraining, GameTraining

Weights = Mapping[str, Shaped[Tensor, "..."]]


def packed_networks(job: AgentJob, replicate: Replicate, training: AgentTraining, scores: Fields) -> bytes:
    """Pack the networks of a training, with a card, as the content of a .safetensors file."""
    card = {
        "kind": job.kind,
        "model": job.name,
        "grammar": replicate.condition,
        "seed": replicate.seed,
        "setup": job.task.config(),
        "updates": training.updates,
        "scores": dict(scores),
        "software": software(),
        "git": git_revision(),
        **code_for_card(job.fixed_versions(replicate)),
    }
    return pack_weights(state_of(nn.ModuleDict(training.networks())), as_json(card))


def kept_networks(record: Record, weights: Weights) -> nn.Module:
    """Load the trained networks of a record. Raises the errors of `restore`."""
    setup = AgentTask.of_config(record["config"]["settings"]["setup"])
    return nn.ModuleDict(restored(setup, record["seed"], weights).networks()).eval()


def restored(setup: AgentTask, seed: int, weights: Weights) -> AgentTraining:
    """Create the training of a task, and load saved weights. Raises the errors of `restore`."""
    training = setup.training(seed)
    restore(nn.ModuleDict(training.networks()), weights, setup.model)
    return training


@dataclass(frozen=True)
class SavedAgent(SavedModel):
    """A trained agent in a file."""

    kind = AgentJob.kind
    what = "agent"

    @property
    def game(self) -> GameSettings:
        """Settings of the game that the agent was trained on."""
        game: GameSettings = AgentTask.of_config(self.card["setup"]).game_settings()
        return game

    def player(self, role: str) -> Player:
        """Load the agent as a player.

        Args:
            role: "speaker" or "listener".

        Raises:
            StoreError: the file is damaged or from another version, or a speaker is requested and did not learn.
        """
        setup = AgentTask.of_config(self.card["setup"])
        training = cast(GameTraining, restored(setup, self.card["seed"], self.weights()))
        player = training.listener() if role == LISTENER else training.speaker()
        if isinstance(player, str):
            raise StoreError(
                f"{self.label} has a trained listener, but no trained speaker. It was trained with the speaker "
                f"'{player}': give '{player}' as the speaker."
            )
        return player


def kept_agents(path: str | Path, **where: Any) -> list[SavedAgent]:
    """Find the trained agents in a results folder, a pack, or a .safetensors file.

    Args:
        path: the folder, pack or file.
        **where: values that the agents' records must have, for example seed=124, model="pairs+ppo", samples=4.

    Raises:
        StoreError: no agents match.
    """
    return SavedAgent.find(path, **where)


def one_agent(path: str | Path, **where: Any) -> SavedAgent:
    """Find the only agent that matches `where`; see `kept_agents`.

    Raises:
        StoreError: no agent matches, or several do.
    """
    return SavedAgent.find_one(path, **where)
