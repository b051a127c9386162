"""The interface of simulated players: what they are shown, and what they answer."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from icy.core.streams import stream
from icy.study.game.datasets import Dataset

Item = tuple[int, int]
"""What a player sees in a picture: the value of the colour, and of the shape."""


@dataclass(frozen=True)
class StudySeat:
    """What a player is given before it plays.

    Attributes:
        content: the dataset: numbers of colours and shapes, letters, and letters per code.
        seed: of all that it draws.
    """

    content: Dataset
    seed: int

    @cached_property
    def rng(self) -> np.random.Generator:
        """Random numbers of its own."""
        return stream(self.seed, "player")

    def letters(self, count: int) -> str:
        """Draw random letters."""
        return "".join(self.content.alphabet[int(n)] for n in self.rng.integers(self.content.vocab_size, size=count))


class StudyPlayer(ABC):
    """Base class of simulated players, which see perfectly.

    A player implements `answer`; one that learns also `learn`.

    Attributes:
        adds: whether it adds all cards at once, as soon as it can.
    """

    adds = False

    def begin(self, seat: StudySeat) -> None:
        """Take a seat; called once, before anything is shown."""
        self.seat = seat

    def learn(self, item: Item, code: str) -> None:  # noqa: B027  (players that do not learn leave it as it is)
        """See an item with its code: a card of Train, or the feedback on an answer."""

    @abstractmethod
    def answer(self, item: Item) -> str:
        """Return what it types for an item."""

    def looks(self, cards: int, seen: int) -> bool:
        """Return whether to look at one more card in Train.

        Args:
            cards: number of cards there are.
            seen: number of different cards that Train has shown it so far.
        """
        return seen < cards
