"""Entropy and mutual information of discrete variables, from counts (plug-in estimates, in bits)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]  # the values of a variable, numbered from 0 without gaps
NOTHING = 1e-12  # bits; less is the noise of floating point
DENSE = 16  # cells per row, up to which a table of counts is kept as an array


def number(values: NDArray[Any]) -> Codes:
    """Values numbered from 0 in sorted order, without gaps: [N] -> [N]."""
    codes: Codes = np.unique(values, return_inverse=True)[1].astype(np.int64).ravel()
    return codes


def together(*variables: Codes) -> Codes:
    """Several variables as one: a number for every combination that occurs; with none, the same number everywhere.

    Args:
        *variables: at least one, [N] each.
    """
    joint = variables[0]
    for other in variables[1:]:
        joint = number(joint * (int(other.max()) + 1) + other)
    return joint


def entropy(codes: Codes) -> float:
    """Entropy in bits."""
    return _entropy_of_counts(np.bincount(codes))


def joint_entropy(x: Codes, y: Codes) -> float:
    """Entropy of two variables together, in bits."""
    width = int(y.max()) + 1
    cells = x * width + y
    if (int(x.max()) + 1) * width <= DENSE * len(x):
        return _entropy_of_counts(np.bincount(cells))
    return _entropy_of_counts(np.unique(cells, return_counts=True)[1])


def mutual_information(x: Codes, y: Codes) -> float:
    """Mutual information in bits: at least 0, at most the smaller entropy; what is only rounding is 0."""
    alone = entropy(x), entropy(y)
    found = min(sum(alone) - joint_entropy(x, y), *alone)
    return found if found > NOTHING else 0.0


def conditional_entropy(x: Codes, given: Codes) -> float:
    """Entropy of `x` where `given` is known, in bits."""
    left = joint_entropy(x, given) - entropy(given)
    return left if left > NOTHING else 0.0


def _entropy_of_counts(counts: NDArray[np.int64]) -> float:
    some = counts[counts > 0].astype(float)
    if len(some) < 2:
        return 0.0
    total = some.sum()
    return float(max(0.0, np.log2(total) - (some @ np.log2(some)) / total))
