"""Random numbers for thousands of episodes at once, each a function of its own seed.

What an episode draws must not depend on the episodes beside it, or one episode alone would be another than the same in
a batch. So numbers are looked up, not taken in turn: the n-th number of a stream is a hash of the episode's key, the
stream's name and n (splitmix64).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]
Keys = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


def seeds_of(episodes: int, seed: int | None = None, seeds: Iterable[int] | None = None) -> Wholes:
    """A seed for every episode, [B]: `seeds`, or `seed` and those after it, or without either some random ones.

    Raises:
        InvalidSettingError: not one seed per episode, or not whole numbers of at least 0.
    """
    if seeds is None:
        first = int(np.random.default_rng().integers(2**31)) if seed is None else whole_number("seed", seed, least=0)
        return first + np.arange(episodes)
    found = np.asarray(list(seeds))
    if found.shape != (episodes,) or found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= 2**63:
        raise InvalidSettingError(f"{episodes} episodes need as many seeds, whole numbers from 0.")
    return found.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Draws:
    """The streams of some episodes.

    Attributes:
        keys: one per episode, [B].

    Example:
        >>> from icy.s2b.streams import Draws
        >>> both, alone = Draws.of_seeds([7, 8]), Draws.of_seeds([8])
        >>> bool((both.uniform("means", (3,))[1] == alone.uniform("means", (3,))[0]).all())
        True
    """

    keys: Keys

    @classmethod
    def of_seeds(cls, seeds: ArrayLike) -> Draws:
        """The streams of episodes by their seeds, whole numbers of at least 0."""
        return cls(_mixed(np.asarray(seeds).astype(np.uint64)))

    def rows(self, which: NDArray[np.integer] | NDArray[np.bool_]) -> Draws:
        """The streams of some of the episodes."""
        return Draws(self.keys[which])

    def within(self, *names: str | int) -> Draws:
        """Other streams of the same episodes, under a name: independent of those outside it."""
        return Draws(_mixed(self.keys ^ _name_key(names)))

    def nth(self, numbers: ArrayLike) -> Draws:
        """Other streams, by a number for each of the episodes, [B]."""
        return Draws(_mixed(self.keys ^ _mixed(np.asarray(numbers).astype(np.uint64))))

    def uniform(self, name: str, shape: tuple[int, ...] = (), first: int = 0) -> Reals:
        """Uniform numbers in [0, 1): [B, *shape]; `first` leaves out so many of the stream."""
        places = np.arange(first, first + int(np.prod(shape)), dtype=np.uint64)
        return self._at(name, self.keys[:, None], places).reshape(len(self.keys), *shape)

    def uniform_of_games(self, name: str, episodes: Wholes, games: Wholes, count: int) -> Reals:
        """Uniform numbers for some games of some episodes, `count` for each: [T, count].

        A game's are the same whichever others are asked for.

        Args:
            name: of the stream.
            episodes: whose game it is, [T].
            games: its number in the episode, [T].
            count: how many numbers.
        """
        places = games.astype(np.uint64)[:, None] * np.uint64(count) + np.arange(count, dtype=np.uint64)
        return self._at(name, self.keys[episodes][:, None], places)

    def _at(self, name: str, keys: Keys, places: NDArray[Any]) -> Reals:
        bits = _mixed((keys ^ _name_key((name,))) + (places + np.uint64(1)) * _GOLDEN)
        found: Reals = (bits >> np.uint64(11)).astype(np.float64) * _UNIT
        return found

    def integers(self, name: str, below: ArrayLike, shape: tuple[int, ...] = (), first: int = 0) -> Wholes:
        """Whole numbers from 0, less than `below`, which broadcasts against [B, *shape]."""
        found: Wholes = (self.uniform(name, shape, first) * np.asarray(below)).astype(np.int64)
        return found

    def order(self, name: str, count: int) -> Wholes:
        """A random order of 0..count-1 for every episode: [B, count]."""
        return np.argsort(self.uniform(name, (count,)), axis=1, kind="stable")


def _name_key(names: tuple[str | int, ...]) -> np.uint64:
    digest = hashlib.blake2b("\x1f".join(map(str, names)).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def _mixed(x: Keys) -> Keys:
    """The finaliser of splitmix64, in arithmetic that wraps."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))
