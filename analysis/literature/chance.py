"""Agreement by chance: tests that two tables have equal true means, if the cells of a row share a run of concat."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

from icy.analysis.statistics import CONFIDENCE, LEAST_SPREAD, Values, student
from icy.core.streams import stream

# Correlation of the distances of cells that share a run of concat. It is 1/2 if concat varies as much as the other
# grammars; in the tables measured so far it is 0.06 to 0.46.
SHARED = 0.5
NODES = 64  # number of nodes of a quadrature
LEAST_ROWS = 6  # with fewer, no mean difference is significant at 5 %
MOST_ENUMERATED = 12  # up to this many rows, all exchanges are counted
EXCHANGES = 10_000  # random exchanges for more rows
Counts = NDArray[np.int64]


@cache
def agreement_share(ours: int, theirs: int) -> float:
    """Return the probability that Welch's 95 % interval contains 0 if two sets of runs have the same distribution.

    It is more than 95 % with few runs. Runs are assumed to be normal, with equal variances.

    Args:
        ours: number of runs, at least 2.
        theirs: number of the other runs.

    Example:
        >>> round(agreement_share(3, 3), 3), round(agreement_share(5, 5), 3)
        (0.965, 0.956)
    """
    free = ours - 1, theirs - 1
    # Given the share that our runs have in the sum of squares, Welch's t is a multiple of Student's t of all runs.
    x, weights = scipy.special.roots_jacobi(NODES, free[1] / 2 - 1, free[0] / 2 - 1)
    share = (1 + x) / 2
    pooled = np.array([share / free[0], (1 - share) / free[1]]) * sum(free)  # variances, of a pooled variance of 1
    errors = pooled[0] / ours, pooled[1] / theirs
    freedom = (errors[0] + errors[1]) ** 2 / (errors[0] ** 2 / free[0] + errors[1] ** 2 / free[1])
    limit = student(freedom) * np.sqrt((errors[0] + errors[1]) / (1 / ours + 1 / theirs))
    inside = 2 * scipy.special.stdtr(sum(free), limit) - 1
    return float(weights @ inside / weights.sum())


def count_interval(shares: Sequence[float] | Values, rows: Sequence[Hashable]) -> tuple[int, int]:
    """Return the 95 % interval of the number of cells that agree by chance.

    The distances of cells are correlated within a row (SHARED) and independent across rows. In simulated tables with
    equal true means, the interval contains 97 to 99 % of the counts.

    Args:
        shares: probability that each cell agrees.
        rows: row of each cell.

    Example:
        >>> count_interval([0.95] * 20, range(20)), count_interval([0.95] * 20, [0] * 10 + [1] * 10)
        ((17, 20), (15, 20))
    """
    total = _count_distribution(np.asarray(shares, float), _row_numbers(rows)).cumsum()
    low, high = (int(np.searchsorted(total, edge)) for edge in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return low, min(high, len(shares))


def count_p(agree: int, shares: Sequence[float] | Values, rows: Sequence[Hashable]) -> float:
    """Return the probability that `agree` or fewer cells agree by chance; see `count_interval`."""
    found = _count_distribution(np.asarray(shares, float), _row_numbers(rows))
    return float(min(1.0, found[: agree + 1].sum()))


def combined_p(p: Sequence[float] | Values, rows: Sequence[Hashable]) -> float:
    """Combine the p-values of all cells, where cells in a row are correlated.

    This is Fisher's combination with the variance of correlated tests (Brown 1975, "A Method for Combining
    Non-Independent, One-Sided Tests of Significance"), here for two-sided tests with correlated distances (SHARED).

    Args:
        p: p-value of each cell.
        rows: row of each cell.

    Example:
        >>> [round(combined_p([0.1] * 6, rows), 3) for rows in (range(6), [0] * 6)]
        [0.006, 0.038]
    """
    numbers = _row_numbers(rows)
    values = np.maximum(np.asarray(p, float), np.finfo(float).tiny)
    pairs = sum(size * (size - 1) for size in np.bincount(numbers))
    mean, variance = 2.0 * len(values), 4.0 * len(values) + pairs * _fisher_covariance()
    scale = variance / (2 * mean)
    return float(scipy.special.chdtrc(2 * mean**2 / variance, -2 * np.log(values).sum() / scale))


def mean_difference_p(differences: Sequence[float] | Values, rows: Sequence[Hashable]) -> float:
    """Return the two-sided p-value of a mean signed difference, by exchanges of whole rows.

    If two tables measure the same thing, each row may be exchanged for the row of the other table, which changes the
    sign of all its differences. All exchanges are counted, or EXCHANGES random ones if there are more than 12 rows.

    Args:
        differences: signed difference of each cell between the two tables, such as a log ratio.
        rows: row of each cell.

    Returns:
        The p-value; NaN with fewer than six rows, which cannot be significant at 5 %.

    Example:
        >>> mean_difference_p([1, 2, 1, 3, 1, 2], "abcdef")
        0.03125
    """
    numbers = _row_numbers(rows)
    sums = np.bincount(numbers, np.asarray(differences, float))
    if len(sums) < LEAST_ROWS:
        return float("nan")
    exact = len(sums) <= MOST_ENUMERATED
    signs = (
        np.array(list(itertools.product((1.0, -1.0), repeat=len(sums))))
        if exact
        else stream(0, "exchanges of rows").choice([1.0, -1.0], (EXCHANGES, len(sums)))
    )
    as_far = np.abs(signs @ sums) >= abs(sums.sum()) - LEAST_SPREAD
    return float(as_far.mean() if exact else (as_far.sum() + 1) / (EXCHANGES + 1))


def _row_numbers(rows: Sequence[Hashable]) -> Counts:
    places = {row: i for i, row in enumerate(dict.fromkeys(rows))}
    return np.array([places[row] for row in rows], np.int64)


@cache
def _normal_nodes() -> tuple[Values, Values]:
    """Return nodes and weights of a quadrature over a standard normal variable."""
    nodes, weights = scipy.special.roots_hermitenorm(NODES)
    return nodes, weights / weights.sum()


def _count_distribution(shares: Values, numbers: Counts) -> Values:
    """Return the probability of each number of agreeing cells, from 0 to all, [cells + 1]."""
    nodes, weights = _normal_nodes()
    limits = -scipy.special.ndtri((1 - shares) / 2)
    part, rest = np.sqrt(SHARED) * nodes, np.sqrt(1 - SHARED)
    inside = scipy.special.ndtr((limits[:, None] - part) / rest) - scipy.special.ndtr((-limits[:, None] - part) / rest)
    total = np.ones(1)
    for row in range(int(numbers.max(initial=-1)) + 1):
        counts = np.ones((len(nodes), 1))  # probability of every count, given the shared part of the row's distances
        for one in inside[numbers == row]:
            agrees = one[:, None]
            counts = np.pad(counts * (1 - agrees), ((0, 0), (0, 1))) + np.pad(counts * agrees, ((0, 0), (1, 0)))
        total = np.convolve(total, weights @ counts)
    return total


@cache
def _fisher_covariance() -> float:
    """Return the covariance of -2 ln p of two two-sided tests with correlated distances (SHARED)."""
    nodes, weights = _normal_nodes()
    distance = np.sqrt(SHARED) * nodes[:, None] + np.sqrt(1 - SHARED) * nodes
    means = (-2 * np.log(2 * scipy.special.ndtr(-np.abs(distance)))) @ weights  # conditional on the shared part
    return float(weights @ means**2 - (weights @ means) ** 2)
