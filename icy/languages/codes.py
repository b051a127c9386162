"""Discrete variables: values numbered from 0 without gaps."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Int64, Real, Shaped
from numpy.typing import NDArray

from .containers import Array

Codes = Int64[NDArray[np.int64], " batch"]  # values of a discrete variable, numbered from 0 without gaps, [N]
Weights = Real[Array, " batch"]  # number of times each row counts, [N] positive numbers: integers if all are whole


def number(values: Shaped[Array, " batch"]) -> Codes:
    """Number values from 0 in sorted order, without gaps: [N] -> [N]."""
    codes: Codes = np.unique(values, return_inverse=True)[1].astype(np.int64).ravel()
    return codes


def count_varying(variables: Iterable[Codes]) -> int:
    """Count the variables that have more than one value."""
    return sum(int(codes.max()) > 0 for codes in variables)


def together(*variables: Codes) -> Codes:
    """Combine variables into one variable that numbers the combinations of their values.

    Args:
        *variables: at least one, [N] each.

    Returns:
        The joint variable, [N].
    """
    joint = variables[0]
    for other in variables[1:]:
        joint = number(joint * (int(other.max()) + 1) + other)
    return joint


def mean_of_rows(values: Shaped[Array, "batch ..."], weights: Weights | None) -> Shaped[Array, "..."]:
    """Return the mean of values over the rows, [N, ...] -> [...]."""
    return np.asarray(values.mean(0) if weights is None else np.average(values, 0, weights))
