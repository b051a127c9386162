"""What every training of agents can do: go on by some updates, be left and taken up again, play, and be read."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from torch import nn

from icy.core.types import State
from icy.s2b.language_probe import probe_language
from icy.s2b.players.interface import Player
from icy.s2b.settings import GameSettings

LANGUAGE = ("topsim", "posdis", "bosdis")


class AgentTraining(ABC):
    """A training of one or two players. All that it goes on from is in `state`.

    A training that goes on from a state gives the same bits as one that was never left.

    Attributes:
        game: settings of the game.
        practice: settings of the game that training episodes are of, which may have a shorter query.
        settings: how to train, with the number of `updates`.
        updates: number of updates made.
    """

    game: GameSettings
    practice: GameSettings
    settings: Any
    updates: int

    @property
    def total(self) -> int:
        """Number of updates that it takes."""
        return int(self.settings.updates)

    @property
    def done(self) -> bool:
        """Whether all updates were made."""
        return self.updates >= self.total

    @property
    @abstractmethod
    def observations(self) -> int:
        """Number of observations that the learners were given so far: steps of the game, of all episodes together."""

    def run(self, updates: int) -> float:
        """Make some updates, or those that are left; return the mean loss."""
        losses = [self.update() for _ in range(min(updates, self.total - self.updates))]
        return sum(losses) / max(len(losses), 1)

    @abstractmethod
    def update(self) -> float:
        """Make one update, with all that comes before it; return the loss."""

    @abstractmethod
    def state(self) -> State:
        """Return all that the training goes on from: tensors, numbers, text, and lists and dicts of these."""

    @abstractmethod
    def load(self, state: State) -> None:
        """Go on from a state of a training with the same settings."""

    def networks(self) -> dict[str, nn.Module]:
        """Return the networks by their names, whose weights are all that players need; they are kept with results."""
        return {name: value for name, value in vars(self).items() if isinstance(value, nn.Module)}

    @abstractmethod
    def listener(self) -> Player:
        """Return the listener as it is now, to play."""

    def speaker(self) -> str | Player:
        """Return the speaker beside it: the name of one that does not learn, or the learner as it is now."""
        return "posdis"

    def language(self, episodes: int = 20, seed: int = 123) -> dict[str, float]:
        """Return how compositional what is said is (topsim, posdis, bosdis), and how distinct; {} if it is not learned.

        A code is compositional by position even where different values share a token, so `distinct`, the share of
        meanings with messages of their own, stands beside it.

        Args:
            episodes: number of episodes.
            seed: seed of the episodes.
        """
        speaker = self.speaker()
        if isinstance(speaker, str):
            return {}
        table = probe_language(speaker, self.game, metrics=LANGUAGE, episodes=episodes, seed=seed)
        meanings = np.array([math.prod(map(int, space.split("x"))) for space in table["space"]])
        means = {name: float(table[name].mean()) for name in LANGUAGE}
        return means | {"distinct": float(np.minimum(table["messages"] / meanings, 1.0).mean())}

    @abstractmethod
    def read(self, episodes: int = 200, seed: int = 123, game: GameSettings | None = None) -> dict[str, float]:
        """Return accuracies of the likeliest decisions, as `evaluate` would: means over episodes of a seed.

        Args:
            episodes: number of episodes, none of which was trained on.
            seed: of the evaluation.
            game: settings of the game; those of the training by default.

        Returns:
            `zsct` in the query, and `support`.
        """
