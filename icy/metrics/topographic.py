"""Topographic similarity: do like meanings get like messages?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icy.errors import InvalidSettingError

PAIRS = ("distinct", "ordered")
ROWS_AT_ONCE = 2048  # of the table of pairs, which is never held whole


def topsim(meanings: ArrayLike, messages: ArrayLike, pairs: str = "distinct") -> float:
    """Spearman correlation, over pairs, between the equal attributes of two meanings and the equal positions of their
    messages.

    Similarities are small whole numbers, so a count of each combination gives the exact correlation, with average
    ranks for ties, without a list of pairs.

    Args:
        meanings: attribute values, whole numbers, [N, A].
        messages: tokens, whole numbers, [N, L].
        pairs: "distinct", every pair of different rows once; or "ordered", all N x N pairs, each row with itself too,
            as in the authors' program (Icy22; icy-facts 4.1).

    Returns:
        The correlation in [-1, 1]; NaN where all meanings, or all messages, are equally alike.

    Raises:
        InvalidSettingError: another word for `pairs`, or tables of different length.

    Example:
        >>> from icy.metrics import topsim
        >>> topsim([[0, 0], [0, 1], [1, 0], [1, 1]], [[2, 3], [2, 1], [0, 3], [0, 1]])
        1.0
    """
    if pairs not in PAIRS:
        raise InvalidSettingError(f"pairs is {' or '.join(PAIRS)}, not '{pairs}'.")
    x, y = np.asarray(meanings), np.asarray(messages)
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise InvalidSettingError(
            f"Give a table of meanings and one of messages; their shapes are {x.shape}, {y.shape}."
        )
    counts = _joint_counts(x, y)
    if pairs == "distinct":
        counts[-1, -1] -= len(x)  # each row with itself; what is left counts every pair twice, which changes nothing
    return spearman_of_counts(counts)


def _joint_counts(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
    """How many ordered pairs of rows agree in i columns of `x` and in j columns of `y`: [A + 1, L + 1]."""
    one_hots = _one_hot(x), _one_hot(y)
    shape = x.shape[1] + 1, y.shape[1] + 1
    counts = np.zeros(shape[0] * shape[1], dtype=np.int64)
    for first in range(0, len(x), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        alike_x, alike_y = ((table[rows] @ table.T).astype(np.int64) for table in one_hots)
        counts += np.bincount((alike_x * shape[1] + alike_y).ravel(), minlength=len(counts))
    return counts.reshape(shape)


def _one_hot(table: NDArray[Any]) -> NDArray[np.float32]:
    """One-hot vectors of every column side by side, so that a product counts equal columns (exactly, in float32)."""
    columns = [np.unique(column, return_inverse=True)[1] for column in table.T]
    return np.concatenate([np.eye(column.max() + 1, dtype=np.float32)[column] for column in columns], 1)


def spearman_of_counts(counts: NDArray[np.int64]) -> float:
    """Spearman correlation of two ordinal variables from their table of counts, with average ranks for ties."""
    total = counts.sum()
    ranks = []
    for axis in (1, 0):
        margin = counts.sum(axis)
        ranks.append(margin.cumsum() - (margin - 1) / 2 - (total + 1) / 2)  # centred
    covariance = float(ranks[0] @ counts @ ranks[1])
    spread = [float(counts.sum(axis) @ rank**2) for axis, rank in zip((1, 0), ranks, strict=True)]
    if min(spread) <= 0:
        return math.nan
    return max(-1.0, min(1.0, covariance / math.sqrt(spread[0] * spread[1])))
