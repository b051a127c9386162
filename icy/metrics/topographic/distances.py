"""Distances between rows, as whole-number keys wherever there are few different ones.

The distances of discrete rows take few values, so a pair of rows can be counted under a small number, its key, and
never be stored. What a key means stands once in a table of values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, unknown
from icy.metrics.table import PAD, Table

MEANING_DISTANCES = ("hamming", "cosine", "euclidean")
MESSAGE_DISTANCES = ("levenshtein", "hamming")
NORMALISED = ("none", "mean", "max")
MOST_KEYS = 2**20  # different distances that may be counted; with more, pairs are listed
WIDEST = 2048  # one-hot vectors; wider ones take more memory and time than comparing column by column
Between = Callable[[Any, Any], float]  # of two rows
Rows = NDArray[np.int64]
Keys = NDArray[Any]


class Distance(Protocol):
    """A distance between the rows of one table.

    Attributes:
        name: for the conventions of a score.
    """

    name: str

    @property
    def values(self) -> NDArray[np.float64] | None:
        """What each key means, [M]; None where distances are too many to have keys."""
        ...

    def block(self, left: slice, right: slice) -> Keys:
        """The keys of all pairs of two runs of rows: unsigned whole numbers, [left, right]."""
        ...

    def of_pairs(self, left: Rows, right: Rows) -> NDArray[np.float64]:
        """The distances of some pairs, [n]."""
        ...


class Hamming:
    """The number of columns that differ.

    Args:
        columns: discrete variables, numbered from 0, [N] each.
        share: divide by the number of columns, which is the cosine distance of one-hot vectors side by side.
    """

    def __init__(self, columns: Sequence[NDArray[np.int64]], share: bool = False) -> None:
        self.name = "cosine" if share else "hamming"
        self.table = np.stack(columns, 1)
        self.width = len(columns)
        self.one_hot_width = int((self.table.max(0) + 1).sum())
        self.values = (self.width - np.arange(self.width + 1.0)) / (self.width if share else 1)
        self._one_hot: NDArray[np.float32] | None = None

    @property
    def one_hot(self) -> NDArray[np.float32]:
        """One-hot vectors side by side, so that a product counts equal columns (exactly, in float32)."""
        if self._one_hot is None:
            parts = [np.eye(column.max() + 1, dtype=np.float32)[column] for column in self.table.T]
            self._one_hot = np.concatenate(parts, 1)
        return self._one_hot

    def block(self, left: slice, right: slice) -> Keys:
        """Equal columns: the key 0 is the greatest distance."""
        if self.one_hot_width <= WIDEST:
            return (self.one_hot[left] @ self.one_hot[right].T).astype(np.uint16)
        equal = np.zeros((len(self.table[left]), len(self.table[right])), dtype=np.uint16)
        for column in self.table.T:
            equal += column[left][:, None] == column[right]
        return equal

    def of_pairs(self, left: Rows, right: Rows) -> NDArray[np.float64]:
        """See Distance."""
        found: NDArray[np.float64] = self.values[(self.table[left] == self.table[right]).sum(1)]
        return found


class Levenshtein:
    """The fewest insertions, deletions and replacements that make one message of the other.

    Args:
        table: meanings and messages.
        padded: compare messages with what fills them up, one more symbol; else without.
        normalise: divide by nothing, by the mean of the two lengths, or by the greater one; two empty messages are at
            distance 0.
    """

    name = "levenshtein"

    def __init__(self, table: Table, padded: bool, normalise: str) -> None:
        self.lengths = np.full(len(table), table.length) if padded else table.lengths
        rows = (table.messages - PAD).tolist()  # so that what fills a message up has a number that a character can have
        self.texts = [_text(row[:n]) for row, n in zip(rows, self.lengths.tolist(), strict=True)]
        longest = max(int(self.lengths.max()), 1)
        self.mean = normalise == "mean"
        self.small = np.uint8 if longest < 2**8 else np.uint16
        if normalise == "none" or self.lengths.min() == self.lengths.max():
            self.width = 1  # of keys per number of changes: one for every length that these are divided by
            self.values = np.arange(longest + 1.0) / (1 if normalise == "none" else longest)
        else:
            self.width = 2 * longest + 1
            changes, length = np.divmod(np.arange((longest + 1) * self.width), self.width)
            # Nothing has changed between two empty messages.
            self.values = changes / np.maximum(length / 2 if self.mean else length, 0.5)

    def _length(self, left: Rows, right: Rows) -> Rows:
        return left + right if self.mean else np.maximum(left, right)

    def block(self, left: slice, right: slice) -> Keys:
        """The number of changes, and where it matters the length that it is divided by."""
        from rapidfuzz import process
        from rapidfuzz.distance import Levenshtein as Edits

        changes = process.cdist(self.texts[left], self.texts[right], scorer=Edits.distance, dtype=self.small)
        if self.width == 1:
            return changes
        length = self._length(self.lengths[left][:, None], self.lengths[right])
        return changes.astype(np.uint32) * np.uint32(self.width) + length.astype(np.uint32)

    def of_pairs(self, left: Rows, right: Rows) -> NDArray[np.float64]:
        """See Distance."""
        from rapidfuzz import process
        from rapidfuzz.distance import Levenshtein as Edits

        texts = [self.texts[i] for i in left], [self.texts[i] for i in right]
        changes = process.cpdist(*texts, scorer=Edits.distance, dtype=np.int64)
        if self.width > 1:
            changes = changes * self.width + self._length(self.lengths[left], self.lengths[right])
        found: NDArray[np.float64] = self.values[changes]
        return found


class Euclidean:
    """The length of the difference."""

    name = "euclidean"

    def __init__(self, rows: NDArray[Any]) -> None:
        self.rows = rows.astype(float)
        span = float((np.ptp(self.rows, 0) ** 2).sum())
        whole = rows.dtype.kind == "i" and span < MOST_KEYS
        self.values = np.sqrt(np.arange(span + 1)) if whole else None

    def block(self, left: slice, right: slice) -> Keys:
        """The squares, of whole numbers."""
        from scipy.spatial.distance import cdist

        return cdist(self.rows[left], self.rows[right], "sqeuclidean").round().astype(np.uint32)

    def of_pairs(self, left: Rows, right: Rows) -> NDArray[np.float64]:
        """See Distance."""
        found: NDArray[np.float64] = np.linalg.norm(self.rows[left] - self.rows[right], axis=1)
        return found


class Listed:
    """A distance of so many values that pairs cannot be counted by them."""

    values = None

    def block(self, left: slice, right: slice) -> Keys:
        """There are no keys."""
        raise NotImplementedError


class Cosine(Listed):
    """One less the cosine of the angle between real vectors; between one of length 0 and any other, 1."""

    name = "cosine"

    def __init__(self, rows: NDArray[Any]) -> None:
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        self.rows = np.divide(rows, length, out=np.zeros(rows.shape), where=length > 0)

    def of_pairs(self, left: Rows, right: Rows) -> NDArray[np.float64]:
        """See Distance."""
        found: NDArray[np.float64] = 1 - (self.rows[left] * self.rows[right]).sum(1)
        return found


class Called(Listed):
    """A function of two rows."""

    def __init__(self, rows: Sequence[Any], function: Between) -> None:
        self.rows, self.function = rows, function
        self.name = getattr(function, "__name__", type(function).__name__)

    def of_pairs(self, left: Rows, right: Rows) -> NDArray[np.float64]:
        """See Distance."""
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        found = np.array([float(self.function(self.rows[i], self.rows[j])) for i, j in pairs])
        if not np.isfinite(found).all():
            raise InvalidSettingError(f"The distance {self.name} gave a number that is not finite.")
        return found


def meaning_distance(table: Table, distance: str | Between) -> Distance:
    """A distance of meanings by its name, or a function of two rows [A].

    Raises:
        UnknownNameError: another name.
        InvalidSettingError: hamming of real numbers.
    """
    if callable(distance):
        return Called(list(table.meanings), distance)
    if distance == "euclidean":
        return Euclidean(table.meanings)
    if distance == "cosine":
        return Cosine(table.meanings) if table.continuous else Hamming(table.factors, share=True)
    if distance != "hamming":
        raise unknown("distance of meanings", distance, MEANING_DISTANCES)
    if table.continuous:
        raise InvalidSettingError("Real-valued meanings hardly ever are equal; take the distance euclidean or cosine.")
    return Hamming(table.factors)


def message_distance(table: Table, distance: str | Between, padded: bool, normalise: str) -> Distance:
    """A distance of messages by its name, or a function of two messages (whole numbers, as long as each is).

    Raises:
        UnknownNameError: another name.
    """
    if normalise not in NORMALISED:
        raise unknown("normalisation", normalise, NORMALISED)
    if callable(distance):
        return Called([row[:n] for row, n in zip(table.messages, table.lengths, strict=True)], distance)
    if distance == "levenshtein":
        return Levenshtein(table, padded, normalise)
    if distance != "hamming":
        raise unknown("distance of messages", distance, MESSAGE_DISTANCES)
    return Hamming(table.positions)


def _text(tokens: Sequence[int]) -> str:
    """Tokens as characters, which the library compares fastest; surrogates are no characters of their own."""
    return "".join(chr(token if token < 0xD800 else token + 0x800) for token in tokens)
