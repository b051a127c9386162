"""Distances of all pairs of rows, and their counts, in native code; `icy.metrics.topographic` does without where it
cannot be had (`usable`), with the same numbers.

Other threads run during a call.
"""

import ctypes
from typing import Any

import numpy as np
from jaxtyping import Int32, Int64, UInt, UInt8, UInt16
from numpy.typing import NDArray

from icy.core import native

MOST_COLUMNS = 2**8 - 1  # of equal_columns, whose keys are bytes
MOST_CODES = 2**8
MOST_TOKENS = 64  # in a message, a bit each
MOST_SYMBOLS = 2**12  # more would not fit the caches
GROUP = 256  # rows on the right are padded to a multiple

_ADDRESS, _SIZE = ctypes.c_void_p, ctypes.c_int64
_TAKES = {
    "equal_columns": (_ADDRESS, _SIZE, _ADDRESS, _SIZE, _SIZE, _SIZE, _ADDRESS),
    "levenshtein": (_ADDRESS, _ADDRESS, _SIZE, _ADDRESS, _ADDRESS, _SIZE, _SIZE, _SIZE, _ADDRESS),
    "count_keys": (_ADDRESS, _SIZE, _SIZE, _SIZE, _ADDRESS),
}


def usable() -> bool:
    """Return whether there is native code to call."""
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
    columns = np.zeros((width, -(-rows // GROUP) * GROUP), dtype=np.uint8)
    columns[:, :rows] = right.T
    found = np.empty((len(left), rows), dtype=np.uint8)
    _call("equal_columns", np.ascontiguousarray(left), len(left), columns, rows, columns.shape[1], width, found)
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
        left_lengths: how many of a row's tokens are its message, [left].
        right: tokens, [right, tokens].
        right_lengths: likewise, [right].
        symbols: number of different tokens, at most MOST_SYMBOLS.
    """
    one, other = (np.ascontiguousarray(tokens) for tokens in (left, right))
    found = np.empty((len(one), len(other)), dtype=np.uint8)
    texts = (one, left_lengths, len(one), other, right_lengths, len(other))
    _call("levenshtein", *texts, one.shape[1], symbols, found)
    return found


def count_keys(keys: UInt[NDArray[Any], "*shape"], cells: int) -> Int64[NDArray[np.int64], "cells={cells}"]:
    """Return how often each key below `cells` occurs, [cells].

    Args:
        keys: unsigned integers of at most four bytes, all below `cells`; fewer than 2^32.
        cells: number of different keys that there may be.
    """
    found = np.zeros(cells, dtype=np.int64)
    _call("count_keys", np.ascontiguousarray(keys), keys.itemsize, keys.size, cells, found)
    return found


def _call(name: str, *arguments: NDArray[Any] | int) -> None:
    """Call a function of the library with arrays, by their addresses, and numbers."""
    library = native.load(__name__)
    assert library is not None
    function = library.function(name, None, *_TAKES[name])
    function(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments))
