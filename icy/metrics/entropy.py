"""Entropy and mutual information of discrete variables: plug-in estimates from counts, in bits.

With weights of the rows, [N], the counts are sums of weights.
"""

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from icy.languages.codes import Codes, Weights, number

NOTHING = 1e-12  # bits; smaller values are floating-point noise
DENSE = 16  # limit of the cells of a joint count table, per row of data, for storing the table as an array


def entropy(codes: Codes, weights: Weights | None = None) -> float:
    """Return the entropy of a variable, in bits."""
    return _entropy_of_counts(np.bincount(codes, weights))


def joint_entropy(x: Codes, y: Codes, weights: Weights | None = None) -> float:
    """Return the joint entropy of two variables, in bits."""
    width = int(y.max()) + 1
    cells = x * width + y
    if (int(x.max()) + 1) * width <= DENSE * len(x):
        return _entropy_of_counts(np.bincount(cells, weights))
    if weights is not None:
        return _entropy_of_counts(np.bincount(number(cells), weights))
    return _entropy_of_counts(np.unique(cells, return_counts=True)[1])


def mutual_information(x: Codes, y: Codes, weights: Weights | None = None) -> float:
    """Return the mutual information of two variables, in bits, clipped to [0, min(H(x), H(y))] against rounding."""
    return information_of(entropy(x, weights), entropy(y, weights), joint_entropy(x, y, weights))


def information_of(x: float, y: float, joint: float) -> float:
    """Return the mutual information of two variables from their entropies and their joint entropy, in bits."""
    found = min(x + y - joint, x, y)
    return found if found > NOTHING else 0.0


def conditional_entropy(x: Codes, given: Codes, weights: Weights | None = None) -> float:
    """Return the conditional entropy H(x | given), in bits."""
    left = joint_entropy(x, given, weights) - entropy(given, weights)
    return left if left > NOTHING else 0.0


def _entropy_of_counts(counts: NDArray[np.int64] | NDArray[np.float64]) -> float:
    some = counts[counts > 0].astype(float)
    if len(some) < 2:
        return 0.0
    total = some.sum()
    return float(max(0.0, np.log2(total) - (some @ np.log2(some)) / total))


def shares_of(values: Float64[NDArray[np.float64], "*axes"], axis: int) -> Float64[NDArray[np.float64], "*axes"]:
    """Return values as shares of their sum along an axis, or 0 where the sum is 0."""
    total = values.sum(axis, keepdims=True)
    shares: NDArray[np.float64] = np.divide(values, total, out=np.zeros_like(values), where=total > 0)
    return shares
