"""Entropy and mutual information of discrete variables: plug-in estimates from counts, in bits."""

from typing import Any

import numpy as np
from jaxtyping import Int64, Shaped
from numpy.typing import NDArray

Codes = Int64[NDArray[np.int64], " batch"]  # values of a discrete variable, numbered from 0 without gaps, [N]
NOTHING = 1e-12  # bits; less is floating-point noise
DENSE = 16  # cells of a joint count table per row of data, up to which the table is kept as an array


def number(values: Shaped[NDArray[Any], " batch"]) -> Codes:
    """Number values from 0 in sorted order, without gaps: [N] -> [N]."""
    codes: Codes = np.unique(values, return_inverse=True)[1].astype(np.int64).ravel()
    return codes


def together(*variables: Codes) -> Codes:
    """Combine several variables into one, with a number for every combination that occurs.

    Args:
        *variables: at least one, [N] each.

    Returns:
        The joint variable, [N].
    """
    joint = variables[0]
    for other in variables[1:]:
        joint = number(joint * (int(other.max()) + 1) + other)
    return joint


def entropy(codes: Codes) -> float:
    """Return the entropy of a variable, in bits."""
    return _entropy_of_counts(np.bincount(codes))


def joint_entropy(x: Codes, y: Codes) -> float:
    """Return the joint entropy of two variables, in bits."""
    width = int(y.max()) + 1
    cells = x * width + y
    if (int(x.max()) + 1) * width <= DENSE * len(x):
        return _entropy_of_counts(np.bincount(cells))
    return _entropy_of_counts(np.unique(cells, return_counts=True)[1])


def mutual_information(x: Codes, y: Codes) -> float:
    """Return the mutual information of two variables, in bits, clipped to [0, min(H(x), H(y))] against rounding."""
    alone = entropy(x), entropy(y)
    found = min(sum(alone) - joint_entropy(x, y), *alone)
    return found if found > NOTHING else 0.0


def conditional_entropy(x: Codes, given: Codes) -> float:
    """Return the conditional entropy H(x | given), in bits."""
    left = joint_entropy(x, given) - entropy(given)
    return left if left > NOTHING else 0.0


def _entropy_of_counts(counts: NDArray[np.int64]) -> float:
    some = counts[counts > 0].astype(float)
    if len(some) < 2:
        return 0.0
    total = some.sum()
    return float(max(0.0, np.log2(total) - (some @ np.log2(some)) / total))
