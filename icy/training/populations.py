"""Populations of agents, and lengths of messages that a sender may end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from icy.core.checks import real_number, whole_number
from icy.core.errors import InvalidSettingError, quoted, require_known
from icy.core.registry import SIDES
from icy.core.streams import stream, stream_key
from icy.core.types import Choices
from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.meanings import IntArray

# -- populations -------------------------------------------------------------------------------------------------------


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

    def members(self, side: str) -> int:
        """Return the number of agents of a side."""
        return self.senders if side == "sender" else self.receivers

    def rows(self, places: Iterable[int]) -> list[int]:
        """Return the rows of populations at these places of a stack: a row per pairing of an update."""
        return [place * self.size + k for place in places for k in range(self.size)]

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


# -- messages that a sender may end early ------------------------------------------------------------------------------


# Costs of Rita et al. 2020 by name: whether the sender is lazy, and whether the receiver is impatient.
PRESETS = {"lazy": (True, False), "impatient": (False, True), "lazimpa": (True, True)}


@dataclass(frozen=True)
class Lengths:
    """The lengths of a pair's messages.

    Attributes:
        max_length: most symbols of a message that the sender may end early; None for messages of a fixed length.
        length_cost: cost of a symbol before the end token, or one of PRESETS; 0 for none.

    Raises:
        InvalidSettingError: a length or a cost that is not possible, or a cost of messages of a fixed length.
    """

    max_length: int | None = None
    length_cost: float | str = 0.0

    def __post_init__(self) -> None:
        if self.max_length is not None:
            object.__setattr__(self, "max_length", whole_number("maximum length", self.max_length))
        object.__setattr__(self, "length_cost", _checked_cost(self.length_cost))
        if self.length_cost and self.max_length is None:
            raise InvalidSettingError(
                f"length_cost={self.length_cost} needs messages that the sender may end: give max_length too."
            )

    @property
    def vary(self) -> bool:
        """Whether the sender may end messages early."""
        return self.max_length is not None

    @property
    def costs(self) -> tuple[float, bool, bool]:
        """The cost of a symbol, whether the sender is lazy, and whether the receiver is impatient."""
        if isinstance(self.length_cost, str):
            return 0.0, *PRESETS[self.length_cost]
        return self.length_cost, False, False

    @property
    def readings(self) -> int:
        """How many prefixes of a message the receiver reads in training."""
        return self.max_length if self.max_length is not None and self.costs[2] else 1


def _checked_cost(given: float | str) -> float | str:
    if isinstance(given, str) and given in PRESETS:
        return given
    try:
        return real_number("length cost", float(given))
    except (TypeError, ValueError):  # InvalidSettingError is a ValueError
        raise InvalidSettingError(
            f"length_cost must be a number of at least 0, lazy, impatient or lazimpa, not {quoted(given)}."
        ) from None


def length_measures(languages: Sequence[Language], frequencies: Frequencies | None, seed: int) -> Choices:
    """Measure the lengths of the messages of one or several senders.

    Args:
        languages: the language of each sender, with an end token.
        frequencies: which meanings exist, and how often; by default all, equally often.
        seed: seed of the pair.

    Returns:
        `mean_length`, the mean number of symbols before the end token over meanings, weighted by their frequencies, and
        over senders; and, if frequencies differ, `length_by_rank`: Spearman's correlation of length with the rank of
        the meaning, 1 for the most frequent; None if all lengths are equal. Positive if frequent meanings have shorter
        messages (Zipf's law of abbreviation). A mean over the senders for which it is defined.
    """
    space = languages[0].space
    numbers, weights = (frequencies or Frequencies()).of_seed(space, seed)
    lengths = [language.lengths[numbers] for language in languages]
    relative = weights / weights.max()  # exactly 1 if all are equal
    means = [float(np.average(of_one, weights=relative)) for of_one in lengths]
    found: Choices = {"mean_length": float(np.mean(means))}
    if np.ptp(weights) > 0:
        from scipy.stats import spearmanr

        rhos = [float(spearmanr(of_one, -weights).statistic) for of_one in lengths if np.ptp(of_one) > 0]
        found["length_by_rank"] = float(np.mean(rhos)) if rhos else None
    return found
