"""The interface of trainings of agents, and shared parts of trainings on dealt episodes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from icy.core.streams import stream_key
from icy.core.surroundings import no_subnormals
from icy.core.types import State
from icy.languages.meanings import MeaningSpace
from icy.s2b.episode_streams import SavedState
from icy.s2b.language_probe import probe_language
from icy.s2b.players.interface import Player
from icy.s2b.settings import GameSettings, Query

from .dealt import Games

# -- the interface of trainings of agents ------------------------------------------------------------------------------


LANGUAGE = ("topsim", "posdis", "bosdis")


class AgentTraining(ABC):
    """Training of agents: makes updates, evaluates the agents, and saves and loads its state.

    A resumed training gives the same bits as a training without interruption.

    Attributes:
        game: settings of the game or task.
        practice: settings of the game for training episodes, which may have a shorter query.
        settings: settings of the training, with the number of `updates`.
        updates: number of updates made.
    """

    game: Any
    practice: Any
    settings: Any
    updates: int

    @property
    def total(self) -> int:
        """Total number of updates."""
        return int(self.settings.updates)

    @property
    def done(self) -> bool:
        """Whether all updates were made."""
        return self.updates >= self.total

    @property
    @abstractmethod
    def observations(self) -> int:
        """Number of observations so far: steps of the game, summed over all episodes."""

    def run(self, updates: int) -> float:
        """Make up to `updates` updates, or until training ends, and return the mean loss."""
        losses = [self.update() for _ in range(min(updates, self.total - self.updates))]
        return sum(losses) / max(len(losses), 1)

    @abstractmethod
    def update(self) -> float:
        """Play as many steps as an update needs, make the update, and return the loss."""

    @abstractmethod
    def state(self) -> State:
        """Return the state to resume from: tensors, numbers, text, and lists and dicts of these."""

    @abstractmethod
    def load(self, state: State) -> None:
        """Resume from the state of a training with the same settings."""

    def networks(self) -> dict[str, nn.Module]:
        """Return the networks by name. Their weights, which are saved with results, are all that players need."""
        return {name: value for name, value in vars(self).items() if isinstance(value, nn.Module)}

    def language(self) -> dict[str, float]:
        """Return measures of the language of a speaker that learns; {} without one."""
        return {}

    @abstractmethod
    def read(self, episodes: int = 200, seed: int = 123, game: Any = None) -> dict[str, float]:
        """Evaluate the most likely decisions: accuracies, averaged over episodes.

        Args:
            episodes: number of episodes. They are not training episodes.
            seed: seed of the evaluation, see `icy.s2b.evaluate`.
            game: settings of the game; by default the game of the training.

        Returns:
            The accuracies `zsct`, in the query, and `support`. In the recall task they are those in the last shot and
            in the first.
        """


class GameTraining(AgentTraining):
    """Training of one or both players of the referential game."""

    game: GameSettings
    practice: GameSettings

    @abstractmethod
    def listener(self) -> Player:
        """Return a player with the listener in its current state."""

    @abstractmethod
    def speaker(self) -> str | Player:
        """Return the speaker: a player that learns, or the name of a speaker that does not learn."""

    def language(self, episodes: int = 20, seed: int = 123) -> dict[str, float]:
        """Measure the speaker's language: topsim, posdis, bosdis and distinct; {} if the speaker does not learn.

        `distinct` is the number of different messages relative to the number of meanings. It complements posdis, which
        can be high even if different values share a token.

        Args:
            episodes: number of episodes.
            seed: seed of the episodes.
        """
        speaker = self.speaker()
        if isinstance(speaker, str):
            return {}
        table = probe_language(speaker, self.game, metrics=LANGUAGE, episodes=episodes, seed=seed)
        meanings = np.array([MeaningSpace.parse(space).size for space in table["space"]])
        means = {name: float(table[name].mean()) for name in LANGUAGE}
        return means | {"distinct": float(np.minimum(table["messages"] / meanings, 1.0).mean())}


# -- shared parts of trainings on dealt episodes -----------------------------------------------------------------------


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
        query: the query of training episodes, see GameSettings. By default "tss", enough games to show
            each value S times, if meanings have several samples; otherwise the query of the game.

    Raises:
        UnknownNameError: `query` has another value.
    """
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


class DealtTraining(AgentTraining):
    """Base class of trainings on dealt episodes with one optimizer. A subclass deals episodes.

    Args:
        game: settings of the game or task.
        settings: settings of the training: updates, episodes in an update, learning rate and its decay.
        seed: seed of the episodes.
        named: parameters with their names.
        times: multiples of the learning rate by parameter name.
    """

    random: torch.Generator
    updates = _observations = 0

    def __init__(
        self, game: Any, settings: Any, seed: int, named: Iterable[tuple[str, nn.Parameter]], times: Mapping[str, float]
    ) -> None:
        self.game, self.settings, self._first = game, settings, first_episode(seed)
        parameters = [(times.get(name, 1.0), parameter) for name, parameter in named]
        groups = [  # by the multiple of the learning rate, which a group stores under the key "times"
            {"params": [p for multiple, p in parameters if multiple == each], "times": each}
            for each in sorted({1.0, *(multiple for multiple, _ in parameters)})
        ]
        self.optimizer = torch.optim.Adam(groups, settings.learning_rate)
        self._pool: tuple[int, Any] | None = None  # dealt episodes of several batches, and the number of the first

    @abstractmethod
    def _deal(self, seeds: range) -> Any:
        """Deal one episode per seed."""

    def batch(self, number: int) -> Any:
        """Return the episodes of an update, by the number of the update from 0."""
        size = self.settings.episodes
        at_once = max(1, DEALT_AT_ONCE // size)
        chunk, place = divmod(number, at_once)
        if self._pool is None or self._pool[0] != chunk:
            begin = self._first + chunk * at_once * size
            self._pool = chunk, self._deal(range(begin, begin + at_once * size))
        return self._pool[1][place * size : (place + 1) * size]

    @no_subnormals()
    def _step(self, loss: Tensor, warm_up: int, most: float) -> float:
        """Make a step of the optimizer, with gradients of each network of norm `most` at most, and return the loss."""
        rate = self.settings.learning_rate * rate_factor(self.updates, self.total, warm_up, self.settings.decay)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["times"]
        self.optimizer.zero_grad()
        loss.backward()
        for network in self.networks().values():
            nn.utils.clip_grad_norm_(network.parameters(), most)
        self.optimizer.step()
        return float(loss.detach())

    def _end_update(self, games: Games) -> None:
        """Count an update and its observations, as if episodes were played step by step."""
        self.updates += 1
        self._observations += int(games.there.sum()) * self.steps_of_game

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
