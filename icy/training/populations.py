"""Populations: several senders and receivers that play with changing partners, and are replaced by new agents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from icy.core.checks import whole_number
from icy.core.errors import require_known
from icy.core.registry import SIDES
from icy.core.streams import stream, stream_key
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.languages.meanings import IntArray

REPLACEMENTS = ("gradual", "random", "receivers")


@dataclass(frozen=True)
class Population:
    """The agents of an end-to-end run, and the schedule of their replacement.

    Attributes:
        senders: number of senders, N.
        receivers: number of receivers, M.
        replace_every: updates between two replacements; 0 for none.
        replacement: one of REPLACEMENTS: "gradual" replaces the oldest sender and the oldest receiver, "random" a
            random agent of each side, and "receivers" all receivers (Li and Bowling 2019).
    """

    senders: int = 1
    receivers: int = 1
    replace_every: int = 0
    replacement: str = "gradual"

    def __post_init__(self) -> None:
        for name in SIDES:
            object.__setattr__(self, f"{name}s", whole_number(f"number of {name}s", getattr(self, f"{name}s")))
        every = whole_number("number of updates between two replacements", self.replace_every, 0)
        object.__setattr__(self, "replace_every", every)
        require_known("replacement", self.replacement, REPLACEMENTS)

    @property
    def is_pair(self) -> bool:
        """Whether it is one sender and one receiver that are never replaced."""
        return self.size == 1 and not self.replace_every

    @property
    def size(self) -> int:
        """Number of pairings in an update: the number of agents of the larger side."""
        return max(self.senders, self.receivers)

    def config(self) -> Choices:
        """Return the settings that can change numbers; empty for a pair, so that keys of pairs remain."""
        if self.is_pair:
            return {}
        schedule = {"replace_every": self.replace_every, "replacement": self.replacement}
        return {"senders": self.senders, "receivers": self.receivers, **(schedule if self.replace_every else {})}

    def facts(self) -> dict[str, str]:
        """Return the settings that can change numbers, as texts; empty for a pair."""
        every = counted(self.replace_every, "update")
        texts = {
            "senders": counted(self.senders, "sender"),
            "receivers": counted(self.receivers, "receiver"),
            "replace_every": f"new agents every {every}",
            "replacement": f"{self.replacement} replacement",
        }
        return {name: texts[name] for name in self.config()}

    @classmethod
    def of(cls, config: Fields) -> Population:
        """Return the population of a configuration."""
        return cls(**{f.name: config[f.name] for f in fields(cls) if f.name in config})

    def members(self, side: str) -> int:
        """Return the number of agents of a side."""
        return self.senders if side == "sender" else self.receivers

    def partners(self, seed: int, update: int) -> IntArray:
        """Draw the pairings of an update: the numbers of their senders and receivers, [2, pairing].

        Every agent of the larger side is in one pairing. Agents of the smaller side are in as equal numbers of pairings
        as possible. So with N = M, partners are a random permutation.
        """
        draws = stream(seed, "pairings", update)
        few = min(self.senders, self.receivers)
        return self._matched(draws.permutation(np.resize(draws.permutation(few), self.size)))

    def rounds(self) -> Iterator[IntArray]:
        """Yield the pairings of each round of an evaluation, [2, pairing]: together all N x M pairings, each once."""
        few = min(self.senders, self.receivers)
        for first in range(few):
            yield self._matched((np.arange(self.size) + first) % few)

    def _matched(self, smaller: IntArray) -> IntArray:
        """Return pairings of all agents of the larger side with these agents of the smaller side."""
        larger = np.arange(self.size)
        return np.stack((larger, smaller) if self.senders >= self.receivers else (smaller, larger))

    def replaced(self, seed: int, update: int) -> dict[str, list[int]]:
        """Return the numbers of the agents of each side that new agents replace before an update from 0."""
        if not update or not self.replace_every or update % self.replace_every:
            return {}
        if self.replacement == "receivers":
            return {"receiver": [*range(self.receivers)]}
        if self.replacement == "gradual":
            turn = update // self.replace_every - 1
            return {side: [turn % self.members(side)] for side in SIDES}
        draws = stream(seed, "replaced", update)
        return {side: [int(draws.integers(self.members(side)))] for side in SIDES}

    def until_replacement(self, update: int) -> int | None:
        """Return the number of updates from an update to the next replacement; None if there is none."""
        return self.replace_every - update % self.replace_every if self.replace_every else None


def member_seed(seed: int, number: int, update: int = 0) -> int:
    """Return the seed of the weights of an agent that enters before an update.

    The first agents of a population have the seed of the pair that has the seed of the population.

    Args:
        seed: seed of the population.
        number: number of the agent on its side.
        update: update before which it enters.
    """
    return stream_key(seed, "member", number, update) if number or update else seed
