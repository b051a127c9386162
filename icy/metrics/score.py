"""The result of a metric: a value, the conventions that it depends on, and the reason if it is undefined."""

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, cast

import numpy as np
from jaxtyping import Float64, Int32
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import require_known
from icy.core.streams import stream
from icy.core.text import counted
from icy.core.types import AnyFunction, Options
from icy.languages.table import Codes, Table, count_varying

# -- permutation tests -------------------------------------------------------------------------------------------------


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
        from scipy.stats import beta

        p = (as_extreme + 1) / (number + 1)  # with the 95% interval of Clopper and Pearson
        low = float(beta.ppf(TAIL, as_extreme, number - as_extreme + 1)) if as_extreme else 0.0
        high = float(beta.ppf(1 - TAIL, as_extreme + 1, number - as_extreme)) if as_extreme < number else 1.0
    ends = [float(end) for end in np.quantile(values, [TAIL, 1 - TAIL])]
    sd = float(values.std(ddof=0 if exact or number == 1 else 1))
    chance = float(values.mean()), sd, ends[0], ends[1]
    return PermutationTest(metric, value, number, *chance, p, low, high, alternative, exact, "", values)


@dataclass(frozen=True, eq=False)
class Score:
    """The value of one metric on one table.

    Attributes:
        metric: name of the metric.
        value: the number; NaN where the metric is undefined.
        rows: number of rows of meanings and messages, N, without weights.
        conventions: every choice that affects the value, by the name of its argument.
        details: further results by name, such as the number of pairs or the chosen assignment.
        why: the reason for a value of NaN; empty otherwise.
        error: standard error of the value, if one was requested or the value is estimated from a sample.
        error_of: source of the error, such as "100000 drawn pairs".
        by_chance: permutation test of the value, if one was requested.
        note: the reason for a value that the sizes of the table determine or bound, in the scores of
            `icy.metrics.evaluate`; empty without a reason.

    Raises:
        ValueError: a value of NaN without a reason, or a reason with any other value.

    Example:
        >>> from icy.metrics import Score
        >>> score = Score("topsim", 0.5, rows=4, conventions={"correlation": "spearman"})
        >>> float(score), score
        (0.5, Score(topsim = 0.5, 4 rows, correlation=spearman))
    """

    metric: str
    value: float
    rows: int
    conventions: Options = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)
    why: str = ""
    error: float | None = None
    error_of: str = ""
    by_chance: PermutationTest | None = None
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        if math.isnan(self.value) != bool(self.why):
            raise ValueError(f"{self.metric}: a value of NaN needs a reason (why), and other values must not have one.")

    def __eq__(self, other: object) -> bool:
        """Return whether all fields of two scores are equal; details may be tables.

        pandas compares `attrs` when it joins frames, so this must not raise.
        """
        if not isinstance(other, Score):
            return NotImplemented
        return all(_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        error = "" if self.error is None else f" ± {self.error:.2g}"
        parts = [f"{self.metric} = {self.value:.6g}{error}", counted(self.rows, "row")]
        parts += [f"{name}={value}" for name, value in self.conventions.items() if value is not None]
        return f"Score({', '.join(parts)}{'; ' + self.why if self.why else ''})"


def undefined(metric: str, why: str, rows: int, conventions: Options) -> Score:
    """Return the score of a table for which a metric is undefined."""
    return Score(metric, math.nan, rows, conventions, why=why)


def why_unvaried(factors: Sequence[Codes], needed: int = 1) -> str:
    """Return the reason why a metric is undefined if fewer than `needed` attributes (1 or 2) change, or "".

    A table with one row, or with one meaning in every row, has no attribute that changes.
    """
    varying = count_varying(factors)
    if not varying:
        return "no attribute ever changes"
    return "" if varying >= needed else "no second attribute changes"


def _equal(one: object, other: object) -> bool:
    """Return whether two values are the same, tables and arrays entry by entry, and NaN equal to NaN."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    if hasattr(one, "equals"):  # a data frame
        return type(one) is type(other) and bool(one.equals(other))
    try:
        return one is other or bool(np.asarray(one == other).all()) or bool(one != one and other != other)
    except Exception:  # arrays of different shapes, or any other object that a plug-in stores
        return False


# -- metrics that count rows, on tables with weights -------------------------------------------------------------------


Metric = TypeVar("Metric", bound=AnyFunction)


def of_repeated_rows(metric: Metric) -> Metric:
    """Return a metric that scores a table with weights as its repeated rows; `Score.rows` does not count repeats.

    Args:
        metric: a function `(meanings, messages=None, **conventions)` that returns a Score and does not read weights.
    """

    @functools.wraps(metric)
    def scored(meanings: object, messages: object = None, **conventions: object) -> object:
        if isinstance(meanings, Table) and meanings.weights is not None:
            return replace(
                metric(meanings.repeated(getattr(metric, "__name__", "This metric")), messages, **conventions),
                rows=len(meanings),
            )
        return metric(meanings, messages, **conventions)

    return cast(Metric, scored)
