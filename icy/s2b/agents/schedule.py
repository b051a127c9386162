"""What trainings on dealt episodes have in common: which episodes, batches of them, the rate, and their state."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from icy.core.errors import unknown
from icy.core.streams import stream_key
from icy.s2b.episode_streams import SavedState
from icy.s2b.options import Query
from icy.s2b.settings import QUERIES, GameSettings

from .training import AgentTraining

DEALT_AT_ONCE = 1024  # episodes, as dealing many at once is faster
TRAINING = 2**40  # seeds of training episodes begin here, far from those of evaluations


def first_episode(seed: int) -> int:
    """Return the seed of the first episode of a training with this seed."""
    return TRAINING + stream_key(seed, "episodes") % 2**40 * 2**20


def practice(game: GameSettings, query: Query | None = None) -> GameSettings:
    """Return the game that training episodes are of.

    Where a meaning has several samples, a whole query has up to 211 games; a shorter one teaches the same.

    Args:
        game: the game that is learned.
        query: how much of the query they show, one of `icy.s2b.settings.QUERIES`; by default as much as it takes to
            show each value S times where a meaning has several samples ("tss"), and what the game says elsewhere.

    Raises:
        UnknownNameError: no such query.
    """
    if query is not None and query not in QUERIES:
        raise unknown("query", str(query), QUERIES)
    return replace(game, query=query or ("tss" if game.samples > 1 else game.query))


def rate_factor(update: int, updates: int, warm_up: int, decay: float) -> float:
    """Return the factor of the learning rate at an update, counted from 0.

    Args:
        update: the update.
        updates: number of all updates.
        warm_up: number of updates in which it rises to 1.
        decay: share of the updates at the end in which it falls to 0.
    """
    rising = (update + 1) / max(warm_up, 1)
    falling = (updates - update) / max(decay * updates, 1)
    return min(1.0, rising, falling)


def grouped(
    named: Iterable[tuple[str, nn.Parameter]], times: Mapping[str, float]
) -> list[dict[str, list[nn.Parameter] | float]]:
    """Return the parameters as groups of an optimiser, by the multiple of the learning rate that their names have.

    Args:
        named: parameters with their names.
        times: multiples by name; of all others, 1. A group has its own as "times".
    """
    parameters = list(named)
    return [
        {"params": [p for name, p in parameters if times.get(name, 1.0) == each], "times": each}
        for each in sorted({1.0, *(times[name] for name, _ in parameters if name in times)})
    ]


class EpisodeBatches:
    """Batches of episodes, each of which its number alone determines.

    Args:
        first: seed of the first episode.
        size: number of episodes in a batch.
        deal: a function from seeds to what is dealt: a tuple of things that can be indexed by episode.
    """

    def __init__(self, first: int, size: int, deal: Callable[[range], tuple[Any, ...]]) -> None:
        self.first, self.size, self.deal = first, size, deal
        self.at_once = max(1, DEALT_AT_ONCE // size)
        self._pool: tuple[int, tuple[Any, ...]] | None = None

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        """Return what is dealt for a batch."""
        chunk, place = divmod(number, self.at_once)
        if self._pool is None or self._pool[0] != chunk:
            begin = self.first + chunk * self.at_once * self.size
            self._pool = chunk, self.deal(range(begin, begin + self.at_once * self.size))
        some = slice(place * self.size, (place + 1) * self.size)
        return tuple(part[some] for part in self._pool[1])


class DealtTraining(AgentTraining):
    """A training on dealt episodes, in batches of one optimizer."""

    optimiser: torch.optim.Optimizer
    random: torch.Generator
    updates = _observations = 0

    @property
    def observations(self) -> int:
        """Number of steps that the episodes had so far, played step by step."""
        return self._observations

    def _weights(self) -> dict[str, nn.Module]:
        """Return the networks by their names in a state."""
        return self.networks()

    def state(self) -> SavedState:
        """Return all that training continues from."""
        return {name: network.state_dict() for name, network in self._weights().items()} | {
            "optimiser": self.optimiser.state_dict(),
            "updates": self.updates,
            "observations": self.observations,
            "random": self.random.get_state(),
        }

    def load(self, state: SavedState) -> None:
        """Continue from a state of a training with the same settings."""
        for name, network in self._weights().items():
            network.load_state_dict(state[name])
        self.optimiser.load_state_dict(state["optimiser"])
        self.updates, self._observations = state["updates"], state["observations"]
        self.random.set_state(state["random"])
