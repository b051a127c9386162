"""Random numbers for thousands of episodes at once, where each episode depends only on its own seed.

An episode must be the same whether it is drawn alone or in a batch, so its draws must not depend on other episodes.
Numbers are therefore computed by index instead of taken in turn from a generator: the n-th number of a stream is a hash
(splitmix64) of the episode's key, the stream's name and n.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64, Integer, UInt64
from numpy.typing import ArrayLike, NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import counted

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]
Keys = NDArray[np.uint64]
Seeds = NDArray[np.integer[Any]]  # int64 or uint64
OfGames = Int64[Wholes, " game"]
SavedState = dict[str, Any]  # state of a game or a training: tensors, numbers, text, and lists and dicts of these

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53
LARGEST_SEED = 2**64 - 1


def checked_seed(seed: object) -> int:
    """Return the seed of an episode as a Python integer.

    Raises:
        InvalidSettingError: not a whole number from 0 to 2**64 - 1.
    """
    try:
        return whole_number("seed", seed, 0, LARGEST_SEED)
    except InvalidSettingError:
        raise InvalidSettingError(
            f"A seed must be a whole number from 0 to {LARGEST_SEED} (64 bits), not {quoted(seed)}."
        ) from None


def seeds_of(
    episodes: int, seed: int | None = None, seeds: Iterable[int] | None = None
) -> Integer[Seeds, "batch={episodes}"]:
    """Return one seed per episode, [B].

    They are `seeds`, or the B seeds that start at `seed`, or random seeds if both are None. The type is int64, or
    uint64 if a seed needs all 64 bits.

    Raises:
        InvalidSettingError: the number of seeds differs from the number of episodes, or a seed that is not a whole
            number from 0 to 2**64 - 1.
    """
    if seeds is None:
        first = int(np.random.default_rng().integers(2**31)) if seed is None else checked_seed(seed)
        if first + episodes - 1 > LARGEST_SEED:
            raise InvalidSettingError(
                f"The seeds of {episodes} episodes that begin at {first} exceed the largest, {LARGEST_SEED}; "
                "take a smaller first seed."
            )
        seeds = range(first, first + episodes)
    elif isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise InvalidSettingError(f"seeds must be a list of {counted(episodes, 'seed')}, not {quoted(seeds)}.")
    found = [checked_seed(each) for each in seeds]
    if len(found) != episodes:
        raise InvalidSettingError(f"{counted(episodes, 'episode', 'need')} as many seeds, not {len(found)}.")
    return np.array(found, dtype=np.int64 if max(found) < 2**63 else np.uint64)


@dataclass(frozen=True, eq=False)
class EpisodeStreams:
    """Streams of random numbers of some episodes, by name.

    Attributes:
        keys: one hash key per episode, [B].

    Example:
        >>> from icy.s2b.episode_streams import EpisodeStreams
        >>> both, alone = EpisodeStreams.of_seeds([7, 8]), EpisodeStreams.of_seeds([8])
        >>> bool((both.uniform("means", (3,))[1] == alone.uniform("means", (3,))[0]).all())
        True
    """

    keys: UInt64[Keys, " batch"]

    @classmethod
    def of_seeds(cls, seeds: ArrayLike) -> "EpisodeStreams":
        """Return the streams of the episodes with these seeds, whole numbers of at least 0."""
        return cls(_mixed(np.asarray(seeds).astype(np.uint64)))

    def rows(
        self, which: Integer[NDArray[np.integer], " some"] | Bool[NDArray[np.bool_], "batch={len(self.keys)}"]
    ) -> "EpisodeStreams":
        """Select the streams of some episodes, by index or mask."""
        return EpisodeStreams(self.keys[which])

    def within(self, *names: str | int) -> "EpisodeStreams":
        """Return the episodes' streams in the namespace `names`. They are independent of the streams outside it."""
        return EpisodeStreams(_mixed(self.keys ^ _name_key(names)))

    def nth(self, numbers: ArrayLike) -> "EpisodeStreams":
        """Return streams that depend on each episode's key and its number, [B], and are independent between numbers."""
        return EpisodeStreams(_mixed(self.keys ^ _mixed(np.asarray(numbers).astype(np.uint64))))

    def uniform(self, name: str, shape: tuple[int, ...] = (), first: int = 0) -> Float64[Reals, "batch ..."]:
        """Draw uniform numbers in [0, 1), [B, *shape], starting at index `first` of the stream."""
        places = np.arange(first, first + int(np.prod(shape)), dtype=np.uint64)
        return self._at(name, self.keys[:, None], places).reshape(len(self.keys), *shape)

    def uniform_of_games(
        self, name: str, episodes: OfGames, games: OfGames, count: int
    ) -> Float64[Reals, "game count={count}"]:
        """Draw uniform numbers in [0, 1) for some games, [T, count]. They do not depend on other games.

        Args:
            name: name of the stream.
            episodes: index of each game's episode, [T].
            games: number of each game in its episode, [T].
            count: number of numbers to draw per game.
        """
        places = games.astype(np.uint64)[:, None] * np.uint64(count) + np.arange(count, dtype=np.uint64)
        return self._at(name, self.keys[episodes][:, None], places)

    def _at(self, name: str, keys: Keys, places: NDArray[Any]) -> Reals:
        bits = _mixed((keys ^ _name_key((name,))) + (places + np.uint64(1)) * _GOLDEN)
        return np.asarray((bits >> np.uint64(11)).astype(np.float64) * _UNIT)

    def integers(
        self, name: str, below: ArrayLike, shape: tuple[int, ...] = (), first: int = 0
    ) -> Int64[Wholes, "batch ..."]:
        """Draw whole numbers in [0, below), [B, *shape]; `below` broadcasts to that shape."""
        return np.asarray((self.uniform(name, shape, first) * np.asarray(below)).astype(np.int64))

    def order(self, name: str, count: int) -> Int64[Wholes, "batch={len(self.keys)} count={count}"]:
        """Draw a random order of 0..count-1 per episode, [B, count]."""
        return np.argsort(self.uniform(name, (count,)), axis=1, kind="stable")


def _name_key(names: tuple[str | int, ...]) -> np.uint64:
    digest = hashlib.blake2b("\x1f".join(map(str, names)).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def _mixed(x: Keys) -> Keys:
    """Apply the finalizer of splitmix64, in wrapping arithmetic."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))
