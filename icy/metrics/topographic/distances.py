"""Distances between rows of a table, as integer keys if they take few values.

Distances between discrete rows take few values. So pairs of rows are counted by a small integer per distance, its key,
and never stored; one table per distance has the value of each key.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64, Real, UInt, UInt8, UInt16
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, quoted, require_known, unknown
from icy.languages.table import Codes, Table, number
from icy.languages.tokens import PAD

from . import native

MEANING_DISTANCES = ("hamming", "cosine", "euclidean")
MESSAGE_DISTANCES = ("levenshtein", "hamming", "jaccard", "cosine")
NORMALISED = ("none", "mean", "max")
MOST_KEYS = 2**20  # largest number of distinct distances for counting pairs by distance; with more, pairs are listed
MOST_CHARACTERS = 0x110000 - 0x800  # number of Unicode characters without surrogates
PAIRS_AT_ONCE = 2**16  # number of rows of counts to multiply at once
EXACT = 2**53  # floats hold all whole numbers up to this limit
WIDEST = 2048  # width of one-hot vectors; above it, comparing column by column takes less memory and time
RowDistance = Callable[[Any, Any], float]  # the distance of two meanings, or of two messages
Rows = Int64[NDArray[np.int64], " pair"]  # one of the two rows of every pair
Distances = Float64[NDArray[np.float64], " pair"]
Keys = UInt[NDArray[Any], "left right"]
Meanings = Real[NDArray[Any], "batch attr"]


class Distance(Protocol):
    """A distance between the rows of a table.

    Attributes:
        name: name of the distance, as in the conventions of a score.
    """

    name: str

    @property
    def values(self) -> Float64[NDArray[np.float64], " key"] | None:
        """The distance of each key, [keys]; None if there are too many values to have keys."""
        ...

    def block(self, left: slice, right: slice) -> Keys:
        """Return the keys of all pairs between two slices of rows: unsigned integers, [left, right]."""
        ...

    def of_pairs(self, left: Rows, right: Rows) -> Distances:
        """Return the distances of n pairs, given by their rows, [n] each: [n]."""
        ...


def meaning_distance(table: Table, distance: str | RowDistance) -> Distance:
    """Return the distance between the meanings of a table.

    `distance` is a name, or a function of two meanings, [A] each.

    Raises:
        UnknownNameError: an unknown name.
        InvalidSettingError: no meanings, Euclidean distance or a function of phrases, Hamming distance of real numbers,
            or Euclidean distance of names or of whole numbers more than 2^53 apart.
    """
    table.require_meanings("topsim")
    if table.phrases and (callable(distance) or distance == "euclidean"):
        raise InvalidSettingError("Phrases are sets of concepts: take the distance hamming or cosine of meanings.")
    if callable(distance):
        return FunctionDistance(list(table.meanings), distance)
    if distance == "euclidean":
        _require_numbers(table)
        return Euclidean(table.meanings)
    if distance == "cosine" and table.phrases:
        return Cosine(np.stack(table.compared, 1).astype(float))
    if distance == "cosine":
        return Cosine(table.meanings) if table.continuous else Hamming(table.compared, share=True)
    if distance != "hamming":
        raise unknown("distance of meanings", distance, MEANING_DISTANCES)
    if table.continuous:
        raise InvalidSettingError("Real-valued meanings are hardly ever equal; take the distance euclidean or cosine.")
    return Hamming(table.compared)


def _require_numbers(table: Table) -> None:
    """Raise an error if attribute values are names, or too far apart for exact differences."""
    for a, names in enumerate(table.value_names):
        if names is not None:
            raise InvalidSettingError(
                f"Euclidean distance needs numbers, but attribute {a} has names, such as {quoted(names[0])}; "
                "take the distance hamming, or write its values as numbers below 2^62."
            )
    if not table.continuous and int(np.ptp(table.meanings, axis=0).max()) > EXACT:
        raise InvalidSettingError(
            "Floating-point Euclidean distance is not exact for numbers that are more than 2^53 "
            "apart; take the distance hamming, or subtract a common offset."
        )


def message_distance(table: Table, distance: str | RowDistance, padded: bool, normalise: str) -> Distance:
    """Return a distance between the messages of a table.

    Args:
        table: meanings and messages.
        distance: a name, or a function of two messages (arrays of tokens without padding).
        padded: see Levenshtein.
        normalise: see Levenshtein.

    Raises:
        UnknownNameError: an unknown name or normalisation.
    """
    require_known("normalisation", normalise, NORMALISED)
    if callable(distance):
        return FunctionDistance([row[:n] for row, n in zip(table.messages, table.lengths, strict=True)], distance)
    if distance == "levenshtein":
        return Levenshtein(table, padded, normalise)
    if distance in ("jaccard", "cosine"):
        return TokenOverlap(table, distance)
    if distance != "hamming":
        raise unknown("distance of messages", distance, MESSAGE_DISTANCES)
    return Hamming(table.positions or [np.zeros(len(table), dtype=np.int64)])  # no positions: all messages are empty


class Hamming:
    """Hamming distance: the number of columns that differ.

    Args:
        columns: discrete variables, numbered from 0, [N] each.
        share: divide by the number of columns, which gives the cosine distance of concatenated one-hot vectors.
    """

    def __init__(self, columns: Sequence[Codes], share: bool = False) -> None:
        self.name = "cosine" if share else "hamming"
        self.table = np.stack(columns, 1)
        self.width = len(columns)
        self.one_hot_width = int((self.table.max(0) + 1).sum())
        self.values = (self.width - np.arange(self.width + 1.0)) / (self.width if share else 1)

    @cached_property
    def one_hot(self) -> Float32[NDArray[np.float32], "batch one_hot={self.one_hot_width}"]:
        """Concatenated one-hot vectors, [N, one_hot_width]; their products count equal columns, exactly in float32."""
        return np.concatenate([np.eye(column.max() + 1, dtype=np.float32)[column] for column in self.table.T], 1)

    @cached_property
    def bytes(self) -> UInt8[NDArray[np.uint8], "batch column"] | None:
        """The columns for native code, [N, columns]; None without native code, or if the columns do not fit it."""
        fits = self.width <= native.MOST_COLUMNS and int(self.table.max(initial=0)) < native.MOST_CODES
        return self.table.astype(np.uint8) if fits and native.usable() else None

    def block(self, left: slice, right: slice) -> Keys:
        """See Distance; the key is the number of equal columns, so key 0 is the largest distance."""
        if self.bytes is not None:
            return native.equal_columns(self.bytes[left], self.bytes[right])
        if self.one_hot_width <= WIDEST:
            return (self.one_hot[left] @ self.one_hot[right].T).astype(np.uint16)
        equal = np.zeros((len(self.table[left]), len(self.table[right])), dtype=np.uint16)
        for column in self.table.T:
            equal += column[left][:, None] == column[right]
        return equal

    def of_pairs(self, left: Rows, right: Rows) -> Distances:
        """See Distance."""
        return np.asarray(self.values[(self.table[left] == self.table[right]).sum(1)])


class Numbered(NamedTuple):
    """Messages for native code.

    Attributes:
        tokens: numbers of the tokens, [N, S].
        lengths: number of tokens of each message, [N].
        symbols: number of different tokens.
    """

    tokens: UInt16[NDArray[np.uint16], "batch length"]
    lengths: Int32[NDArray[np.int32], " batch"]
    symbols: int


class Levenshtein:
    """Levenshtein distance: the fewest insertions, deletions and substitutions that turn one message into the other.

    Args:
        table: meanings and messages.
        padded: compare messages including their padding, as one more symbol.
        normalise: do not divide ("none"), or divide by the "mean" of the two lengths or the larger one ("max");
            the distance of two empty messages is 0.
    """

    name = "levenshtein"

    def __init__(self, table: Table, padded: bool, normalise: str) -> None:
        self.lengths = np.full(len(table), table.length) if padded else table.lengths
        # Numbers without gaps, also for padding: tokens may be arbitrarily large, but characters may not.
        symbols, numbered = np.unique(table.messages, return_inverse=True)
        self.rows: NDArray[np.int64] = numbered.reshape(table.messages.shape)
        self.symbols = len(symbols)
        longest = max(int(self.lengths.max()), 1)
        self.mean = normalise == "mean"
        self.whole = normalise == "none"
        self.small = np.uint8 if longest < 2**8 else np.uint16 if longest < 2**16 else np.uint32
        self.values: Distances | None
        self.width = 1  # keys per number of edits: one for every possible divisor
        if self.whole or self.lengths.min() == self.lengths.max():
            self.values = np.arange(longest + 1.0) / (1 if self.whole else longest)
        elif (longest + 1) * (2 * longest + 1) <= 2 * MOST_KEYS:  # with two keys of meanings, the countable limit
            self.width = 2 * longest + 1
            edits, length = np.divmod(np.arange((longest + 1) * self.width), self.width)
            self.values = self._divided(edits, length)
        else:
            self.values = None

    @cached_property
    def texts(self) -> list[Any]:
        """The messages as strings; lists if there are more symbols than characters."""
        spell: Callable[[Sequence[int]], Any] = _text if self.symbols <= MOST_CHARACTERS else list
        return [spell(row[:n]) for row, n in zip(self.rows.tolist(), self.lengths.tolist(), strict=True)]

    @cached_property
    def numbered(self) -> Numbered | None:
        """The messages for native code; None without native code, or if the messages do not fit it."""
        if self.rows.shape[1] > native.MOST_TOKENS or not native.usable():
            return None
        if self.symbols > native.MOST_SYMBOLS:
            return None
        return Numbered(self.rows.astype(np.uint16), self.lengths.astype(np.int32), self.symbols)

    def _edits(self, left: slice, right: slice) -> Keys:
        """Return the number of edits between all pairs of two slices of messages, [left, right]."""
        if self.numbered is not None:
            tokens, lengths, symbols = self.numbered
            return native.levenshtein(tokens[left], lengths[left], tokens[right], lengths[right], symbols)
        from rapidfuzz import process
        from rapidfuzz.distance import Levenshtein as Edits

        return process.cdist(self.texts[left], self.texts[right], scorer=Edits.distance, dtype=self.small)

    def _length(self, left: Rows, right: Rows) -> Rows:
        return left + right if self.mean else np.maximum(left, right)

    def _divided(self, edits: Rows, length: Rows) -> Distances:
        # Between two empty messages there are 0 edits, so any divisor will do.
        return edits / np.maximum(length / 2 if self.mean else length, 0.5)

    def block(self, left: slice, right: slice) -> Keys:
        """See Distance; the key is the number of edits and, if lengths differ, the length that divides it."""
        edits = self._edits(left, right)
        if self.width == 1:
            return edits
        length = self._length(self.lengths[left][:, None], self.lengths[right])
        return edits.astype(np.uint32) * np.uint32(self.width) + length.astype(np.uint32)

    def of_pairs(self, left: Rows, right: Rows) -> Distances:
        """See Distance."""
        from rapidfuzz import process
        from rapidfuzz.distance import Levenshtein as Edits

        texts = [self.texts[i] for i in left], [self.texts[i] for i in right]
        edits = process.cpdist(*texts, scorer=Edits.distance, dtype=np.int64)
        if self.whole:
            return edits.astype(float)
        return self._divided(edits, self._length(self.lengths[left], self.lengths[right]))


def _text(tokens: Sequence[int]) -> str:
    """Return tokens as a string, which rapidfuzz compares fastest; skip surrogates, which are not valid characters."""
    return "".join(chr(token if token < 0xD800 else token + 0x800) for token in tokens)


class TokenOverlap:
    """Jaccard distance of sets of tokens, or cosine distance of counts of tokens.

    The distance of two empty messages is 0, and the distance of an empty and another message is 1.

    Args:
        table: meanings and messages.
        name: "jaccard", one minus the share of the tokens of either message that are in both; or "cosine", one minus
            the cosine of the angle between the counts of tokens.
    """

    def __init__(self, table: Table, name: str) -> None:
        from scipy.sparse import csr_array

        self.name = name
        rows, places = np.nonzero(table.messages != PAD)
        tokens = number(table.messages[rows, places])
        shape = len(table), int(tokens.max(initial=0)) + 1
        self.counts = csr_array((np.ones(len(rows), dtype=np.int64), (rows, tokens)), shape=shape)
        self.counts.sum_duplicates()
        if name == "jaccard":
            self.counts.data[:] = 1
        self.sizes: Rows = (self.counts * self.counts).sum(1)  # the size of sets, or the squared length of counts
        used, self.classes = np.unique(self.sizes, return_inverse=True)
        self.width = len(used) ** 2  # keys per number of shared tokens: one for every two sizes
        keys = (int(used[-1]) + 1) * self.width
        self.values: Distances | None = None
        if keys <= MOST_KEYS:
            shared, sizes = np.divmod(np.arange(keys), self.width)
            self.values = self._distances(shared, used[sizes // len(used)], used[sizes % len(used)])

    def _distances(self, shared: Rows, left: Rows, right: Rows) -> Distances:
        """Return distances from products of counts and sizes of two messages; equal ratios give equal numbers."""
        jaccard = self.name == "jaccard"
        whole = left + right - shared if jaccard else left.astype(float) * right
        part = shared if jaccard else shared.astype(float) ** 2
        ratio = np.divide(part, whole, out=(left == right).astype(float), where=whole > 0)
        ratio = np.minimum(ratio, 1)  # only keys that do not occur would have more
        return np.asarray(1 - (ratio if jaccard else np.sqrt(ratio)))

    def block(self, left: slice, right: slice) -> Keys:
        """See Distance; the key is the product of counts and the sizes of the two messages."""
        shared = (self.counts[left] @ self.counts[right].T).toarray()
        sizes = self.classes[left][:, None] * math.isqrt(self.width) + self.classes[right]
        return (shared * self.width + sizes).astype(np.uint32)

    def of_pairs(self, left: Rows, right: Rows) -> Distances:
        """See Distance."""
        found = np.empty(len(left))
        for first in range(0, len(left), PAIRS_AT_ONCE):
            one, other = left[first : first + PAIRS_AT_ONCE], right[first : first + PAIRS_AT_ONCE]
            shared: Rows = (self.counts[one] * self.counts[other]).sum(1)
            found[first : first + PAIRS_AT_ONCE] = self._distances(shared, self.sizes[one], self.sizes[other])
        return found


class Euclidean:
    """Euclidean distance of meanings, [N, A]."""

    name = "euclidean"

    def __init__(self, rows: Meanings) -> None:
        whole = rows.dtype.kind == "i"
        self.rows = (rows - rows.min(0) if whole else rows).astype(float)  # floats hold large differences, not numbers
        span = float((np.ptp(self.rows, 0) ** 2).sum())
        self.values = np.sqrt(np.arange(span + 1)) if whole and span < MOST_KEYS else None

    def block(self, left: slice, right: slice) -> Keys:
        """See Distance; the key is the squared distance, for integers only."""
        from scipy.spatial.distance import cdist

        return cdist(self.rows[left], self.rows[right], "sqeuclidean").round().astype(np.uint32)

    def of_pairs(self, left: Rows, right: Rows) -> Distances:
        """See Distance."""
        return np.asarray(np.linalg.norm(self.rows[left] - self.rows[right], axis=1))


class Uncountable:
    """Base class of distances with too many values for counting pairs by distance."""

    values = None

    def block(self, left: slice, right: slice) -> Keys:
        """Raise NotImplementedError: the distance has no keys."""
        raise NotImplementedError


class Cosine(Uncountable):
    """Cosine distance of real vectors: one minus the cosine of their angle, or 1 if one vector is zero."""

    name = "cosine"

    def __init__(self, rows: Meanings) -> None:
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        self.rows = np.divide(rows, length, out=np.zeros(rows.shape), where=length > 0)

    def of_pairs(self, left: Rows, right: Rows) -> Distances:
        """See Distance."""
        return np.asarray(1 - (self.rows[left] * self.rows[right]).sum(1))


class FunctionDistance(Uncountable):
    """A user's function of two rows.

    Args:
        rows: arguments of the function, one per row of the table.
        function: function of two rows that returns a finite number.
    """

    def __init__(self, rows: Sequence[object], function: RowDistance) -> None:
        self.rows, self.function = rows, function
        self.name = getattr(function, "__name__", type(function).__name__)

    def of_pairs(self, left: Rows, right: Rows) -> Distances:
        """See Distance."""
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        found = np.array([float(self.function(self.rows[i], self.rows[j])) for i, j in pairs])
        if not np.isfinite(found).all():
            raise InvalidSettingError(f"The distance {self.name} returned a number that is not finite.")
        return found
