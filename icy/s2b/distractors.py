"""What is shown beside a target: stimuli drawn without replacement from those that an episode plays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .streams import Reals, Wholes


@dataclass(frozen=True, eq=False)
class Pool:
    """The stimuli that each episode may take, sorted, all episodes in one array.

    A stimulus is numbered within its episode: meaning times O, plus the sample.

    Attributes:
        keys: episode times `size` plus the stimulus, sorted, [P].
        size: stimuli of an episode at the most.
        samples: per meaning, O.
    """

    keys: Wholes
    size: int
    samples: int

    @classmethod
    def of(cls, episodes: Wholes, stimuli: Wholes, size: int, samples: int, distinct: bool = True) -> Pool:
        """The pool of stimuli [P] of their episodes [P]: each once, or if not `distinct` as often as it is there."""
        keys = episodes * size + stimuli
        return cls(_distinct(keys) if distinct else np.sort(keys), size, samples)

    def beside(self, episodes: Wholes, targets: Wholes, one: bool = False) -> Rest:
        """What is left without the targets' meanings, for games [T] of the episodes, or without the target itself.

        Args:
            episodes: of each game.
            targets: stimulus of each game.
            one: leave out one entry of the target only, whatever shares its meaning.
        """
        base = episodes * self.size
        meaning = base + targets - targets % self.samples
        ends = np.stack([base, base + self.size], 1)
        first, last = np.searchsorted(self.keys, ends).T
        low = np.searchsorted(self.keys, base + targets if one else meaning)
        # A pool that has been widened may lack the target's meaning, so that there is nothing to leave out.
        high = low + 1 if one else np.searchsorted(self.keys, meaning + self.samples)
        return Rest(self, base, first, low, high, (last - first) - (high - low))


@dataclass(frozen=True, eq=False)
class Rest:
    """What games may draw: the entries of their episode in a pool, but for a stretch in the middle.

    Attributes:
        pool: the pool.
        base: key of the episode's first stimulus, [T].
        first: the episode's first entry, [T].
        low: first entry of the stretch, [T].
        high: the entry after it, [T].
        count: how many entries are left, [T].
    """

    pool: Pool
    base: Wholes
    first: Wholes
    low: Wholes
    high: Wholes
    count: Wholes

    def draw(self, uniform: Reals) -> Wholes:
        """Entries without replacement, as stimuli of their episodes, by uniform numbers: [T, draws].

        Once there are none left, one of those after the first comes again; where there are none at all, the target.
        """
        chosen: list[Wholes] = []
        for k in range(uniform.shape[1]):
            left = self.count - k
            place = (uniform[:, k] * np.maximum(left, 1)).astype(np.int64)
            for other in np.sort(np.stack(chosen, 1), 1).T if chosen else ():
                place += place >= other  # the places before it are taken
            if chosen:
                later = min(1, k - 1) + (uniform[:, k] * max(k - 1, 1)).astype(np.int64)
                again = np.stack(chosen, 1)[np.arange(len(place)), later]
                place = np.where(left > 0, place, again)
            chosen.append(place)
        return self._stimuli(np.stack(chosen, 1)) if chosen else np.zeros((len(self.count), 0), dtype=np.int64)

    def _stimuli(self, places: Wholes) -> Wholes:
        entries = self.first[:, None] + places
        entries += np.where(entries >= self.low[:, None], (self.high - self.low)[:, None], 0)
        entries = np.where(self.count[:, None] > 0, entries, self.low[:, None])
        found: Wholes = self.pool.keys[entries] - self.base[:, None]
        return found


def _distinct(keys: Wholes) -> Wholes:
    keys = np.sort(keys)
    return keys[np.r_[True, keys[1:] != keys[:-1]]] if len(keys) else keys


def widened(pool: Pool, short: Wholes, eligible: NDArray[np.bool_]) -> Pool:
    """A pool in which some episodes, by number, may take every stimulus of the eligible meanings, [B, M]."""
    if not len(short):
        return pool
    which, meanings = np.nonzero(eligible[short])
    stimuli = (meanings[:, None] * pool.samples + np.arange(pool.samples)).ravel()
    more = np.repeat(short[which], pool.samples) * pool.size + stimuli
    return Pool(_distinct(np.concatenate([pool.keys, more])), pool.size, pool.samples)
