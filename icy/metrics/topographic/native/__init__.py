"""Native code for the distances of all pairs of rows, and for counts of pairs.

Without native code (`usable`), `icy.metrics.topographic` computes the same numbers. Other threads run during a call.
"""

import ctypes
from typing import Any

import numpy as np
from jaxtyping import Int32, Int64, UInt, UInt8, UInt16
from numpy.typing import NDArray

from icy.core import native
from icy.core.errors import IncompatibleError
from icy.core.native import address

MOST_COLUMNS = 2**8 - 1  # for equal_columns, which has keys of one byte
MOST_CODES = 2**8
MOST_TOKENS = 64  # largest number of tokens in a message: one bit per token
MOST_SYMBOLS = 2**12  # more would not fit the caches
GROUP = 256  # rows on the right are padded to a multiple

_ADDRESS, _SIZE = ctypes.c_void_p, ctypes.c_int64
_TAKES = {
    "equal_columns": (_ADDRESS, _SIZE, _ADDRESS, _SIZE, _SIZE, _SIZE, _ADDRESS),
    "levenshtein": (_ADDRESS, _ADDRESS, _SIZE, _ADDRESS, _ADDRESS, _SIZE, _SIZE, _SIZE, _ADDRESS),
    "count_keys": (_ADDRESS, _SIZE, _SIZE, _SIZE, _ADDRESS),
    "count_permuted": (
        *(_ADDRESS, _SIZE, _SIZE, _ADDRESS, _ADDRESS),
        *(_ADDRESS, _SIZE, _SIZE, _ADDRESS, _SIZE, _SIZE, _ADDRESS),
    ),
}


def usable() -> bool:
    """Return whether there is native code."""
    return native.load(__name__) is not None


def equal_columns(
    left: UInt8[NDArray[np.uint8], "left column"], right: UInt8[NDArray[np.uint8], "right column"]
) -> UInt8[NDArray[np.uint8], "left right"]:
    """Return the number of equal columns of every pair of rows: [left, right].

    Args:
        left: codes, [left, columns], at most MOST_COLUMNS of them.
        right: codes, [right, columns].
    """
    rows, width = right.shape
    if left.shape[1] != width or width > MOST_COLUMNS or right.dtype != np.uint8:
        raise IncompatibleError(f"Rows must have the same columns on both sides, at most {MOST_COLUMNS}, in 8 bits.")
    columns = np.zeros((width, -(-rows // GROUP) * GROUP), dtype=np.uint8)
    columns[:, :rows] = right.T
    found = np.empty((len(left), rows), dtype=np.uint8)
    codes = address(np.ascontiguousarray(left), "uint8", len(left) * width, "left")
    _call("equal_columns", codes, len(left), columns.ctypes.data, rows, columns.shape[1], width, found.ctypes.data)
    return found


def levenshtein(
    left: UInt16[NDArray[np.uint16], "left token"],
    left_lengths: Int32[NDArray[np.int32], " left"],
    right: UInt16[NDArray[np.uint16], "right token"],
    right_lengths: Int32[NDArray[np.int32], " right"],
    symbols: int,
) -> UInt8[NDArray[np.uint8], "left right"]:
    """Return the Levenshtein distance of every pair of messages: [left, right].

    Args:
        left: tokens below `symbols`, [left, tokens], at most MOST_TOKENS.
        left_lengths: number of tokens of each message, [left].
        right: tokens, [right, tokens].
        right_lengths: number of tokens of each message, [right].
        symbols: number of different tokens, at most MOST_SYMBOLS.
    """
    found, width = np.empty((len(left), len(right)), dtype=np.uint8), left.shape[1]
    if right.shape[1] != width or width > MOST_TOKENS or symbols > MOST_SYMBOLS:
        raise IncompatibleError(f"Messages must have one width, at most {MOST_TOKENS}, and {MOST_SYMBOLS} symbols.")
    texts: list[int] = []
    held: list[NDArray[Any]] = []  # keeps arrays alive while the native code reads them
    for tokens, lengths in ((left, left_lengths), (right, right_lengths)):
        if tokens.size and int(tokens.max()) >= symbols:
            raise IncompatibleError(f"Tokens must be 0 to {symbols - 1} here, not {tokens.max()}.")
        if lengths.size and not 0 <= int(lengths.min()) <= int(lengths.max()) <= width:
            raise IncompatibleError(f"Message lengths must be 0 to {width}, not {lengths.min()} to {lengths.max()}.")
        held += [np.ascontiguousarray(tokens), np.ascontiguousarray(lengths)]
        texts += [
            address(held[-2], "uint16", len(tokens) * width, "tokens"),
            address(held[-1], "int32", len(tokens), "lengths"),
            len(tokens),
        ]
    _call("levenshtein", *texts, width, symbols, found.ctypes.data)
    return found


def count_keys(keys: UInt[NDArray[Any], "*shape"], cells: int) -> Int64[NDArray[np.int64], "cells={cells}"]:
    """Return the number of occurrences of each key below `cells`, [cells].

    Args:
        keys: unsigned integers of at most four bytes, all below `cells`; fewer than 2^32.
        cells: number of possible keys.
    """
    found = np.zeros(cells, dtype=np.int64)
    keys = np.ascontiguousarray(keys)
    if keys.size and int(keys.max()) >= cells:
        raise IncompatibleError(f"Keys must be 0 to {cells - 1} here, not {keys.max()}.")
    place = address(keys, f"uint{8 * keys.itemsize}", keys.size, "keys")
    _call("count_keys", place, keys.itemsize, keys.size, cells, found.ctypes.data)
    return found


class PermutedCounts:
    """Count pairs of rows by their two distances after permutations of one side.

    Args:
        y: keys of the permuted side, [N, N], one or two bytes each.
        permutations: the row of `y` that each row of the other side is paired with, [permutations, N].
        cells: exclusive upper limit of the sum of a key of x and a key of y.

    Raises:
        IncompatibleError: arrays of other shapes or dtypes, or rows or keys out of range.
    """

    def __init__(
        self, y: UInt[NDArray[Any], "batch batch"], permutations: Int32[NDArray[np.int32], "order batch"], cells: int
    ) -> None:
        self.y, self.permutations, self.cells = np.ascontiguousarray(y), np.ascontiguousarray(permutations), cells
        self.rows, self.largest = len(y), int(y.max(initial=0))
        if y.itemsize > 2:
            raise IncompatibleError(f"Keys of y must have one or two bytes here, not {y.dtype}.")
        if self.permutations.size and not 0 <= int(permutations.min()) <= int(permutations.max()) < self.rows:
            raise IncompatibleError(f"Permutations must hold rows 0 to {self.rows - 1}.")
        count = len(permutations) * self.rows
        self._y = address(self.y, f"uint{8 * y.itemsize}", self.rows**2, "y")
        self._permutations = address(self.permutations, "int32", count, "permutations")

    def count(
        self,
        first: int,
        starts: Int64[NDArray[np.int64], " row_and_one"],
        others: Int32[NDArray[np.int32], " pair"],
        x: UInt16[NDArray[np.uint16], " pair"],
    ) -> Int64[NDArray[np.int64], "order cells={self.cells}"]:
        """Count each sum of a key of x and a key of y among listed pairs, for each permutation.

        Args:
            first: number of the first row with pairs.
            starts: index of the first pair of each row from `first` on, and the number of pairs, [rows + 1].
            others: the second row of each pair, [pairs]; fewer than 2^32.
            x: key of x of each pair, [pairs].

        Raises:
            IncompatibleError: arrays of other shapes or dtypes, or rows or keys out of range.
        """
        rows, ends = len(starts) - 1, [*starts[:1].tolist(), *starts[-1:].tolist()]
        if not 0 <= first <= first + rows <= self.rows or ends != [0, len(others)] or (np.diff(starts) < 0).any():
            raise IncompatibleError(f"Pairs must be listed by row, from 0 to {self.rows - 1}.")
        if others.size and not 0 <= int(others.min()) <= int(others.max()) < self.rows:
            raise IncompatibleError(f"Pairs must have rows 0 to {self.rows - 1}.")
        if int(x.max(initial=0)) + self.largest >= self.cells:
            raise IncompatibleError(f"The sum of a key of x and a key of y must be below {self.cells}.")
        found = np.zeros((len(self.permutations), self.cells), dtype=np.int64)
        pairs = address(others, "int32", len(others), "others"), address(x, "uint16", len(others), "x")
        of_y = self._y, self.y.itemsize, self.rows, self._permutations, len(self.permutations)
        place = address(starts, "int64", rows + 1, "starts")
        _call("count_permuted", place, rows, first, *pairs, *of_y, self.cells, found.ctypes.data)
        return found


def _call(name: str, *arguments: int) -> None:
    """Call a function of the library with addresses and numbers."""
    library = native.load(__name__)
    assert library is not None
    function = library.function(name, None, *_TAKES[name])
    function(*arguments)
