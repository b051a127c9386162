"""Distractors: the stimuli shown in addition to a target, drawn without replacement from the episode's stimuli."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy.typing import NDArray

from .episode_streams import OfGames, Reals, Wholes


@dataclass(frozen=True, eq=False)
class Candidates:
    """The possible distractors of each episode, stored in one sorted array.

    A stimulus is numbered within its episode: meaning times O, plus the sample.

    Attributes:
        keys: episode times `size` plus the stimulus number, sorted, [P].
        size: largest number of stimuli in an episode.
        samples: samples per meaning, O.
    """

    keys: Int64[Wholes, " candidate"]
    size: int
    samples: int

    @classmethod
    def of(
        cls,
        episodes: Int64[Wholes, " stimulus"],
        stimuli: Int64[Wholes, " stimulus"],
        size: int,
        samples: int,
        distinct: bool = True,
    ) -> "Candidates":
        """Collect the candidates from stimuli [P] and the episode of each, [P].

        With `distinct`, a stimulus counts once per episode, otherwise as often as it occurs.
        """
        keys = episodes * size + stimuli
        return cls(_distinct(keys) if distinct else np.sort(keys), size, samples)

    def without(self, episodes: OfGames, targets: OfGames, one: bool = False) -> "Rest":
        """Return the candidates of each game, without the stimuli of the target's meaning.

        Args:
            episodes: episode of each game, [T].
            targets: target of each game, as a stimulus number, [T].
            one: leave out only one copy of the target itself, and keep other stimuli of its meaning.
        """
        base = episodes * self.size
        meaning = base + targets - targets % self.samples
        ends = np.stack([base, base + self.size], 1)
        first, last = np.searchsorted(self.keys, ends).T
        low = np.searchsorted(self.keys, base + targets if one else meaning)
        # Widened candidates may lack the target's meaning; then there is nothing to leave out.
        high = low + 1 if one else np.searchsorted(self.keys, meaning + self.samples)
        return Rest(self, base, first, low, high, (last - first) - (high - low))


@dataclass(frozen=True, eq=False)
class Rest:
    """Candidates of each of T games: the episode's candidates, except a slice of the sorted array.

    Attributes:
        candidates: the candidates of all episodes.
        base: key of stimulus number 0 of the game's episode, [T].
        first: index of the episode's first candidate, [T].
        low: start of the omitted slice, [T].
        high: end of the omitted slice, exclusive, [T].
        count: number of remaining candidates, [T].
    """

    candidates: Candidates
    base: OfGames
    first: OfGames
    low: OfGames
    high: OfGames
    count: OfGames

    def draw(self, uniform: Float64[Reals, "game draw"]) -> Int64[Wholes, "game draw"]:
        """Draw stimuli without replacement.

        If a game runs out of candidates, it repeats one of its draws after the first. A game without candidates repeats
        its target.

        Args:
            uniform: uniform random numbers in [0, 1), one per draw, [T, draws].

        Returns:
            The number of each stimulus within its episode, [T, draws].
        """
        chosen: list[Wholes] = []
        for k in range(uniform.shape[1]):
            left = self.count - k
            place = (uniform[:, k] * np.maximum(left, 1)).astype(np.int64)
            for other in np.sort(np.stack(chosen, 1), 1).T if chosen else ():
                place += place >= other  # skip the candidates that were drawn
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
        found: Wholes = self.candidates.keys[entries] - self.base[:, None]
        return found


def _distinct(keys: Wholes) -> Wholes:
    keys = np.sort(keys)
    return keys[np.r_[True, keys[1:] != keys[:-1]]] if len(keys) else keys


def widened(
    candidates: Candidates, short: Int64[Wholes, " short"], eligible: Bool[NDArray[np.bool_], "batch meaning"]
) -> Candidates:
    """Add stimuli to the candidates of the episodes `short`: all of the eligible meanings [B, M] that they lack.

    Existing candidates keep their counts. Other episodes do not change.
    """
    if not len(short):
        return candidates
    which, meanings = np.nonzero(eligible[short])
    stimuli = (meanings[:, None] * candidates.samples + np.arange(candidates.samples)).ravel()
    every = np.repeat(short[which], candidates.samples) * candidates.size + stimuli
    keys = np.concatenate([candidates.keys, np.setdiff1d(every, candidates.keys)])
    return Candidates(np.sort(keys), candidates.size, candidates.samples)
