"""Splits of a meaning space into meanings to train on and held-out meanings, to test generalization."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, require_known
from icy.core.streams import stream

from .meanings import IntArray, MeaningSpace

SPLITS = {
    "random": "a random share of the meanings",
    "combinations": "every meaning with one of a random share of the pairs of values of two attributes",
}


@dataclass(frozen=True)
class Split:
    """A rule that holds out meanings for testing. Training still has every value of every attribute.

    The held-out meanings depend on the seed alone: they are the same for all grammars and models. A larger share of the
    same seed includes the meanings of a smaller one. If only some meanings exist, the share is of these; "combinations"
    then shows every value of the two attributes, but a rare value of a third one may be missing in training.

    Attributes:
        kind: "random" holds out a share of the meanings. "combinations" draws two attributes from the seed, and a share
            of the pairs of their values. It holds out every meaning with one of these pairs, so no training meaning has
            one.
        share: share of the meanings or pairs to hold out; above 0 and below 1.

    Raises:
        UnknownNameError: unknown kind.
        InvalidSettingError: `share` is not a number above 0 and below 1.

    Example:
        >>> from icy.languages.meanings import MeaningSpace
        >>> from icy.languages.splits import Split
        >>> space = MeaningSpace(2, 3)
        >>> space.meanings(Split("random", 0.3).held_out(space, seed=123)).tolist()
        [[0, 0], [0, 2], [1, 0]]
    """

    kind: str = "random"
    share: float = 0.2

    def __post_init__(self) -> None:
        require_known("split", self.kind, SPLITS)
        is_number = isinstance(self.share, (int, float)) and not isinstance(self.share, bool)
        if not is_number or not 0 < self.share < 1:
            raise InvalidSettingError(f"The held-out share must be above 0 and below 1, not {self.share!r}.")

    def check(self, space: MeaningSpace) -> None:
        """Raise an error if this split is impossible for a space.

        Raises:
            InvalidSettingError: the space has one attribute, nothing would be held out, or not every value of every
                attribute could be trained on.
        """
        if space.attributes < 2:
            raise InvalidSettingError(
                f"A held-out meaning combines values of several attributes, but {space} has one attribute; take two "
                "or more, as in 2x10."
            )
        what = "pairs of values" if self.kind == "combinations" else "meanings"
        for drawn in self._populations(space):
            held_out, left = self._count(drawn.size), drawn.size - self._count(drawn.size)
            if not held_out:
                raise InvalidSettingError(
                    f"{self.share:g} of the {drawn.size} {what} of {space} is less than one, so nothing would be held "
                    "out; hold out a larger share."
                )
            if left < drawn.values:
                raise InvalidSettingError(
                    f"Without {self.share:g} of the {drawn.size} {what} of {space}, {left} would remain for training, "
                    f"but {drawn.values} are needed to show every value; hold out a smaller share."
                )

    def held_out(self, space: MeaningSpace, seed: int, existing: IntArray | None = None) -> IntArray:
        """Return the numbers of the held-out meanings of a seed, in order.

        Args:
            space: the space.
            seed: the seed.
            existing: numbers of the meanings that exist, in order; the share is of these. By default, all exist.

        Raises:
            InvalidSettingError: as in `check`; for `existing`, also if the seed leaves too few meanings to hold out.
        """
        self.check(space)
        generator = stream(seed, "held out", self.kind)
        if existing is not None and len(existing) < space.size:
            return existing[self._chosen(space.meanings(existing), generator)]
        if self.kind == "random":
            return np.sort(_draw(space, self._count(space.size), generator))
        pair = _two_attributes(space.attributes, generator)
        drawn = MeaningSpace.of_sizes(*np.array(space.size_of_each)[pair])
        chosen = np.isin(drawn.index(space.all()[:, pair]), _draw(drawn, self._count(drawn.size), generator))
        return np.flatnonzero(chosen)

    def parts(self, space: MeaningSpace, seed: int, existing: IntArray | None = None) -> tuple[IntArray, IntArray]:
        """Return the numbers of the training meanings and of the held-out meanings; see `held_out`."""
        held_out = self.held_out(space, seed, existing)
        return np.setdiff1d(np.arange(space.size) if existing is None else existing, held_out), held_out

    def _chosen(self, meanings: IntArray, generator: np.random.Generator) -> NDArray[np.bool_]:
        """Return which of these meanings, the only ones that exist, are held out."""
        if self.kind == "random":
            drawn, drawn_of, what = meanings, np.arange(len(meanings)), "meanings"
        else:
            pair = _two_attributes(meanings.shape[1], generator)
            drawn, drawn_of = np.unique(meanings[:, pair], axis=0, return_inverse=True)
            what = "pairs of values"
        count, (needed, others) = self._count(len(drawn)), _with_every_value(drawn, generator)
        if not 0 < count <= len(others):
            raise InvalidSettingError(
                f"Of the {len(drawn)} {what} that exist, {needed} stay in training to show every value, so "
                f"{self.share:g} of them ({count}) cannot be held out; hold out another share."
            )
        return np.isin(drawn_of.ravel(), others[:count])

    def _populations(self, space: MeaningSpace) -> list[MeaningSpace]:
        """Return the spaces that may be drawn from: for "combinations", the pairs of values of two attributes."""
        if self.kind == "random":
            return [space]
        pairs = combinations(space.size_of_each, 2) if space.sizes else [(space.values, space.values)]
        return [MeaningSpace.of_sizes(*pair) for pair in pairs]

    def _count(self, drawn: int) -> int:
        return round(self.share * drawn)


def _two_attributes(attributes: int, generator: np.random.Generator) -> IntArray:
    """Draw two attributes, in order."""
    return np.sort(generator.choice(attributes, 2, replace=False))


def _draw(space: MeaningSpace, count: int, generator: np.random.Generator) -> IntArray:
    """Draw the numbers of `count` meanings, so that the remaining meanings have every value of every attribute.

    First, K random meanings with each value of each attribute are excluded from the draw: in a grid exactly once, and
    otherwise as equally often as possible.
    """
    values = [np.resize(np.arange(size), space.values) for size in space.size_of_each]
    once = np.stack([generator.permutation(of_one) for of_one in values], axis=-1)
    others = np.setdiff1d(np.arange(space.size), space.index(once))
    return generator.permutation(others)[:count]


def _with_every_value(rows: IntArray, generator: np.random.Generator) -> tuple[int, IntArray]:
    """Choose few rows that have every value of every column, and return their number and the others in random order.

    Each of them shows the most values that no earlier one shows; chance decides between equals.
    """
    order = generator.permutation(len(rows))
    lacking = np.concatenate([column[:, None] == np.unique(column) for column in rows[order].T], axis=1)
    chosen: list[int] = []
    while lacking.any():
        chosen.append(int(lacking.sum(1).argmax()))
        lacking &= ~lacking[chosen[-1]]
    return len(chosen), np.delete(order, chosen)
