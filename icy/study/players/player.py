"""The interface of simulated players."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from icy.core.streams import stream
from icy.study.game.settings import Dataset

Item = tuple[int, int]
"""The content of a picture: the value of the color, and the value of the shape."""


@dataclass(frozen=True)
class StudySeat:
    """Information for a player before the game.

    Attributes:
        content: the dataset, with the numbers of colors and shapes and the letters of codes.
        seed: seed of the player's random numbers.
    """

    content: Dataset
    seed: int

    @cached_property
    def rng(self) -> np.random.Generator:
        """The player's random number generator."""
        return stream(self.seed, "player")

    def letters(self, count: int) -> str:
        """Draw random letters."""
        return "".join(self.content.alphabet[int(n)] for n in self.rng.integers(self.content.vocab_size, size=count))


class StudyPlayer(ABC):
    """Base class of simulated players, which recognize every color and shape.

    A subclass implements `answer`. A subclass that learns also implements `learn`.

    Attributes:
        adds: whether the player adds all cards as soon as possible.
    """

    adds = False

    def begin(self, seat: StudySeat) -> None:
        """Prepare for a game; called once, before the first item."""
        self.seat = seat

    def learn(self, item: Item, code: str) -> None:  # noqa: B027  (players that do not learn leave it as it is)
        """Learn from an item with its code: a card of Train, or the feedback on an answer."""

    @abstractmethod
    def answer(self, item: Item) -> str:
        """Return the code that the player types for an item."""

    def looks(self, cards: int, seen: int) -> bool:
        """Return whether to view another card in Train.

        Args:
            cards: number of available cards.
            seen: number of different cards that Train has shown so far.
        """
        return seen < cards
