"""Permutation tests: values of a metric if messages are assigned to meanings at random, and p-values from them."""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64, Int32
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import require_known
from icy.core.streams import stream

ALTERNATIVES = ("better", "greater", "less", "two-sided")
ROUNDING = 1e-12  # relative to the largest value; values that differ by less are equal
TAIL = 0.025  # outside a 95% interval, on either side
Permutations = Int32[NDArray[np.int32], "permutation batch"]
Values = Float64[NDArray[np.float64], " permutation"]


@dataclass(frozen=True)
class PermutationTest:
    """A metric's value on a table, compared with its values if the messages were assigned to meanings at random.

    Attributes:
        metric: name of the metric.
        value: the observed value; NaN where the metric is undefined.
        permutations: number of permutations for which the metric is defined, m.
        mean: value by chance: the mean over permutations. NaN, like all below, where the metric is undefined.
        sd: standard deviation over permutations.
        low: lower end of the 95% interval of the values by chance (2.5% quantile).
        high: upper end of the interval (97.5% quantile).
        p: (B + 1) / (m + 1), where B permutations have a value at least as extreme as the observed one.
        p_low: lower end of the 95% Clopper-Pearson interval of B / m, the Monte Carlo error of p.
        p_high: upper end of this interval.
        alternative: "greater", "less" or "two-sided".
        exact: whether all N! permutations were used, including the observed order. Then p is B / m, without error.
        why: the reason where the metric is undefined; empty otherwise.
        values: the values by chance, [m].
    """

    metric: str
    value: float
    permutations: int = 0
    mean: float = math.nan
    sd: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_low: float = math.nan
    p_high: float = math.nan
    alternative: str = "greater"
    exact: bool = False
    why: str = ""
    values: Values = field(default_factory=lambda: np.empty(0), repr=False, compare=False)


def resolve_alternative(alternative: str, lower_is_better: bool) -> str:
    """Return "greater", "less" or "two-sided": replace "better" by the direction in which a metric is better.

    Raises:
        UnknownNameError: another name.
    """
    require_known("alternative", alternative, ALTERNATIVES)
    return alternative if alternative != "better" else "less" if lower_is_better else "greater"


def draw_permutations(rows: int, number: int, seed: int) -> tuple[Permutations, bool]:
    """Return permutations of the rows, [permutations, N], and whether they are all N! permutations.

    All N! are returned if there are at most `number`. Otherwise permutations are drawn at random; with a smaller
    `number`, the result is the start of the same sequence.

    Args:
        rows: number of rows, N.
        number: number of permutations.
        seed: seed of the draw.

    Raises:
        InvalidSettingError: `number` is not a whole number from 1.
    """
    whole_number("number of permutations", number)
    if rows <= number and math.factorial(rows) <= number:
        return np.array(list(itertools.permutations(range(rows))), dtype=np.int32), True
    draws, found = stream(seed, "permutations"), np.empty((number, rows), dtype=np.int32)
    for row in found:
        row[:] = draws.permutation(rows)
    return found, False


def compare_with_chance(metric: str, value: float, values: Values, alternative: str, exact: bool) -> PermutationTest:
    """Return the test of a value, given the values for the permutations; NaN values are left out.

    Args:
        metric: name of the metric.
        value: the observed value.
        values: the value for each permutation, [permutations].
        alternative: "greater", "less", or "two-sided" (at least as far from the mean by chance).
        exact: whether `values` covers all N! permutations.
    """
    values = values[np.isfinite(values)]
    if not len(values):
        return PermutationTest(metric, value, alternative=alternative, why="it is undefined for every permutation")
    every = np.append(value, values)
    if alternative == "two-sided":
        # The mean of all N! values, or of a sample that holds the observed value as the test assumes.
        every = np.abs(every - (values if exact else every).mean())
    elif alternative == "less":
        every = -every
    as_extreme = int((every[1:] >= every[0] - ROUNDING * np.abs(every).max()).sum())
    number = len(values)
    if exact:
        p = low = high = as_extreme / number
    else:
        p, (low, high) = (as_extreme + 1) / (number + 1), _clopper_pearson(as_extreme, number)
    ends = [float(end) for end in np.quantile(values, [TAIL, 1 - TAIL])]
    sd = float(values.std(ddof=0 if exact or number == 1 else 1))
    chance = float(values.mean()), sd, ends[0], ends[1]
    return PermutationTest(metric, value, number, *chance, p, low, high, alternative, exact, "", values)


def _clopper_pearson(successes: int, number: int) -> tuple[float, float]:
    """Return the 95% interval of a probability, given the successes among a number of trials."""
    from scipy.stats import beta

    low = float(beta.ppf(TAIL, successes, number - successes + 1)) if successes else 0.0
    high = float(beta.ppf(1 - TAIL, successes + 1, number - successes)) if successes < number else 1.0
    return low, high
