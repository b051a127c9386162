"""Entropy and mutual information of discrete variables: plug-in estimates from counts, in bits."""

import numpy as np
from numpy.typing import NDArray

from icy.languages.codes import Codes

NOTHING = 1e-12  # bits; less is floating-point noise
DENSE = 16  # cells of a joint count table per row of data, up to which the table is kept as an array


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
