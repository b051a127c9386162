"""Shared parts of trainings on dealt episodes: seeds, batches of episodes, learning rates, and checkpoints."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from icy.core.errors import unknown
from icy.core.streams import stream_key
from icy.s2b.episode_streams import SavedState
from icy.s2b.settings import QUERIES, GameSettings, Query

from .training import AgentTraining

DEALT_AT_ONCE = 1024  # number of episodes; dealing many at once is faster
TRAINING = 2**40  # lower bound of the seeds of training episodes; evaluations use smaller seeds


def first_episode(seed: int) -> int:
    """Return the seed of the first training episode, for the seed of a training."""
    return TRAINING + stream_key(seed, "episodes") % 2**40 * 2**20


def practice(game: GameSettings, query: Query | None = None) -> GameSettings:
    """Return the settings of training episodes.

    If meanings have several samples, a whole query has up to 211 games. Agents learn the same from a shorter query.

    Args:
        game: settings of the game that agents learn.
        query: the query of training episodes, one of `icy.s2b.settings.QUERIES`. By default "tss", enough games to show
            each value S times, if meanings have several samples; otherwise the query of the game.

    Raises:
        UnknownNameError: `query` has another value.
    """
    if query is not None and query not in QUERIES:
        raise unknown("query", str(query), QUERIES)
    return replace(game, query=query or ("tss" if game.samples > 1 else game.query))


def rate_factor(update: int, updates: int, warm_up: int, decay: float) -> float:
    """Return the factor of the learning rate at an update: a linear warm-up, and a linear decay at the end.

    Args:
        update: number of the update, counted from 0.
        updates: total number of updates.
        warm_up: number of updates in which the factor rises to 1.
        decay: fraction of the updates, at the end, in which the factor falls to 0.
    """
    rising = (update + 1) / max(warm_up, 1)
    falling = (updates - update) / max(decay * updates, 1)
    return min(1.0, rising, falling)


def grouped(
    named: Iterable[tuple[str, nn.Parameter]], times: Mapping[str, float]
) -> list[dict[str, list[nn.Parameter] | float]]:
    """Group parameters by the multiple of the learning rate, for an optimizer.

    Args:
        named: parameters with their names.
        times: multiples of the learning rate by parameter name; 1 for other parameters. A group stores its multiple
            under the key "times".
    """
    parameters = list(named)
    return [
        {"params": [p for name, p in parameters if times.get(name, 1.0) == each], "times": each}
        for each in sorted({1.0, *(times[name] for name, _ in parameters if name in times)})
    ]


class EpisodeBatches:
    """Batches of dealt episodes by number. Batch i always has the same episodes.

    Args:
        first: seed of the first episode.
        size: number of episodes in a batch.
        deal: a function that maps seeds to dealt episodes: a tuple of objects, indexed by episode.
    """

    def __init__(self, first: int, size: int, deal: Callable[[range], tuple[Any, ...]]) -> None:
        self.first, self.size, self.deal = first, size, deal
        self.at_once = max(1, DEALT_AT_ONCE // size)
        self._pool: tuple[int, tuple[Any, ...]] | None = None

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        """Return the episodes of batch `number`."""
        chunk, place = divmod(number, self.at_once)
        if self._pool is None or self._pool[0] != chunk:
            begin = self.first + chunk * self.at_once * self.size
            self._pool = chunk, self.deal(range(begin, begin + self.at_once * self.size))
        some = slice(place * self.size, (place + 1) * self.size)
        return tuple(part[some] for part in self._pool[1])


class DealtTraining(AgentTraining):
    """Base class of trainings on dealt episodes with one optimizer."""

    optimizer: torch.optim.Optimizer
    random: torch.Generator
    updates = _observations = 0

    @property
    def observations(self) -> int:
        """Number of observations so far, counted as if episodes were played step by step."""
        return self._observations

    @property
    def steps_of_game(self) -> int:
        """Number of steps of a game: messages, decision and feedback."""
        return int(self.game.rounds) + 2

    def _weights(self) -> dict[str, nn.Module]:
        """Return the networks by key of the saved state."""
        return self.networks()

    def state(self) -> SavedState:
        """Return the state to resume from."""
        return {name: network.state_dict() for name, network in self._weights().items()} | {
            "optimiser": self.optimizer.state_dict(),
            "updates": self.updates,
            "observations": self.observations,
            "random": self.random.get_state(),
        }

    def load(self, state: SavedState) -> None:
        """Resume from the state of a training with the same settings."""
        for name, network in self._weights().items():
            network.load_state_dict(state[name])
        self.optimizer.load_state_dict(state["optimiser"])
        self.updates, self._observations = state["updates"], state["observations"]
        self.random.set_state(state["random"])
