"""The interface of trainings of agents."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from torch import nn

from icy.core.types import State
from icy.languages.meanings import MeaningSpace
from icy.s2b.language_probe import probe_language
from icy.s2b.players.interface import Player
from icy.s2b.settings import GameSettings

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
