"""Statistics for few seeds: Student's t, ratios on the log scale with cut runs, paired tests, and seeds needed."""

from __future__ import annotations

import logging
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy  # loads its parts on first use; stats takes half a second
from numpy.typing import NDArray

from icy.core.checks import boolean_column, number_column, real_number, whole_number
from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import listed

log_ = logging.getLogger(__name__)
Values: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Numbers = TypeVar("Numbers", float, Values)  # a number, or an array of any shape
CONFIDENCE = 0.95
LEAST_RATIO = 0.01  # smaller ratios, 0 included, are raised to this before their logarithm is taken
FEWEST_KNOWN = 3  # least number of runs without a cut, if others were cut; two give an interval of a factor above 27
LEAST_SPREAD = 1e-9  # smaller spreads are rounding errors
LARGEST_EFFECT = 1e6  # in standard deviations; the noncentral t distribution is inaccurate for larger effects
MOST_SEEDS = 100_000
PILOT_CONFIDENCE = 0.8  # confidence of the upper limit of a pilot's spread (Browne 1995)
LOG_SPREADS = {  # name of a spread: its counterpart on the log scale
    "sd": "geometric standard deviation over seeds",
    "sem": "geometric standard error",
    "ci95": "95 % interval (Student's t)",
}


def known_runs(values: Mapping[str, Any], cut: Mapping[str, Any] | None = None) -> tuple[list[Values], list[Mask]]:
    """Read columns with a number per run, and leave out runs without a number in one of them, with a warning.

    Args:
        values: name and numbers of each column; a failed run is NaN or another missing value.
        cut: name and values of columns that say whether each run was cut (`icy.core.checks.boolean_column`); None for
            a column without cut runs.

    Returns:
        The numbers and the masks of cut runs, as arrays [run].

    Raises:
        InvalidSettingError: columns of different lengths, text that is not a number or not true or false, or infinity.
    """
    numbers: list[Values] = []
    for name, column in values.items():
        numbers.append(number_column(name, column, len(numbers[0]) if numbers else None))
        if np.isinf(numbers[-1]).any():
            raise InvalidSettingError(f"{name} has values that are not finite; leave them out.")
    count = len(numbers[0])
    masks = [
        np.zeros(count, bool) if column is None else boolean_column(name, column, count)
        for name, column in (cut or {}).items()
    ]
    known = ~np.isnan(numbers).any(0)
    if not known.all():
        log_.warning(
            "Left out %d of %d runs without a value in %s.", count - known.sum(), count, listed([*values], "or")
        )
    return [one[known] for one in numbers], [one[known] for one in masks]


def require_probability(name: str, value: float) -> None:
    """Raise InvalidSettingError if a value is not between 0 and 1, such as a percentage."""
    if not 0 < value < 1:
        raise InvalidSettingError(f"{name} must be a probability between 0 and 1; not {quoted(value)}.")


def student(freedom: Numbers, confidence: float = CONFIDENCE) -> Numbers:
    """Return half the width of a confidence interval by Student's t, in standard errors; NaN if `freedom` is 0.

    Args:
        freedom: degrees of freedom, a number or an array of any shape.
        confidence: confidence level of the interval.

    Raises:
        InvalidSettingError: a confidence level that is not between 0 and 1.

    Example:
        >>> round(student(2), 2), round(student(4), 2)
        (4.3, 2.78)
    """
    require_probability("confidence", confidence)
    found = np.asarray(scipy.special.stdtrit(freedom, (1 + confidence) / 2), float)  # NaN where freedom is 0
    return found if found.ndim else float(found)  # type: ignore[return-value]


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; NaN if unknown."""

    value: float
    low: float = math.nan
    high: float = math.nan

    def __str__(self) -> str:
        return f"{self.value:+.2f} ({self.low:+.2f} to {self.high:+.2f})"


# -- ratios on the log scale -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogSummary:
    """Summary of positive numbers, or of their quotients, on the log scale.

    Attributes:
        center: geometric mean, or the value of the bound.
        deviation: standard deviation of the natural logarithms; NaN if unknown.
        error: standard error of the mean of the logarithms; NaN if unknown.
        freedom: degrees of freedom of `error`.
        bound: ">" or "<" if only a bound of the geometric mean is known, else "".
    """

    center: float
    deviation: float = math.nan
    error: float = math.nan
    freedom: int = 0
    bound: str = ""

    def factor(self, spread: str) -> float:
        """Return the factor that multiplies or divides the geometric mean; `spread` is a name of LOG_SPREADS."""
        widths = {"sd": self.deviation, "sem": self.error}
        wide = student(self.freedom) * self.error if spread == "ci95" else widths[spread]
        return float(np.exp(np.minimum(wide, 700.0)))  # e^710 is too large for a float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the geometric mean, by Student's t; NaN if unknown."""
        if self.bound:
            return (self.center, math.nan) if self.bound == ">" else (math.nan, self.center)
        return self.center / self.factor("ci95"), self.center * self.factor("ci95")

    def text(self, decimals: int, spread: str = "sd") -> str:
        """Return the summary as text: `1.73×/1.02` (1.73, multiplied or divided by 1.02), or a bound such as `> 20`."""
        if self.bound:
            shown = f"{self.center:.{decimals}f}"
            return f"{self.bound} {shown.rstrip('0').rstrip('.') if '.' in shown else shown}"
        factor = self.factor(spread)
        wide = "" if math.isnan(factor) else f"×/{factor:.{decimals}f}" if factor < 100 else f"×/{factor:.0e}"
        return f"{self.center:.{decimals}f}{wide}"


def log_summary(values: Sequence[float] | Values, censored: Sequence[bool] | Mask) -> LogSummary:
    """Summarize ratios on the log scale; the true ratio of a cut run is larger than its value.

    Without cut runs, the summary has the mean and the standard deviation of the logarithms. With cut runs, a log-normal
    distribution is fitted by maximum likelihood: a run contributes its density, and a cut run the probability of a
    larger value (Tobin 1958, "Estimation of Relationships for Limited Dependent Variables"; Helsel 2012, "Statistics
    for Censored Environmental Data"). If u runs were not cut, the variance is scaled by u / (u - 1), and the interval
    has u - 1 degrees of freedom, as without cut runs. With cut runs and u < 3, there is only a lower bound: the
    geometric mean of all values.

    Args:
        values: ratios; smaller values than LEAST_RATIO are raised to it.
        censored: for each run, whether it was cut.

    Raises:
        InvalidSettingError: as for `known_runs`, by which runs without a value are left out.

    Example:
        >>> log_summary([2.0, 8.0], [False, False]).text(2), log_summary([20.0, 20.0], [True, True]).text(2)
        ('4.00×/2.67', '> 20')
    """
    (ratios,), (censored,) = known_runs({"`values`": values}, {"`censored`": censored})
    raised = np.maximum(ratios, LEAST_RATIO)
    logs = np.log(raised)
    known = logs[~censored]
    # Clipped to the extremes, so that the mean of equal values is exactly this value.
    center = float(np.clip(_exp_of_mean(logs), raised.min(), raised.max())) if len(raised) else math.nan
    if len(known) < (FEWEST_KNOWN if censored.any() else 2):
        return LogSummary(center, bound=">" if censored.any() else "")
    if not censored.any() or (np.ptp(known) < LEAST_SPREAD and logs.max() <= known.max()):
        deviation = float(logs.std(ddof=1)) if np.ptp(logs) >= LEAST_SPREAD else 0.0
        return LogSummary(center, deviation, deviation / math.sqrt(len(logs)), len(known) - 1)
    mean, deviation, error = _censored_normal(known, logs[censored])
    fair = math.sqrt(len(known) / (len(known) - 1))
    return LogSummary(float(np.exp(min(mean, 700.0))), fair * deviation, fair * error, len(known) - 1)


def _exp_of_mean(logs: Values) -> float:
    """Return e to the mean of logarithms, rounded to 12 digits."""
    return float(f"{math.exp(float(logs.mean())):.12g}")


def _censored_normal(known: Values, beyond: Values) -> tuple[float, float, float]:
    """Fit a normal distribution to values and lower limits; return its mean, deviation and the mean's standard error.

    The error comes from the observed information of mean and log deviation.
    """
    mean, deviation = map(float, scipy.stats.norm.fit(scipy.stats.CensoredData(uncensored=known, right=beyond)))
    z, limit = (known - mean) / deviation, (beyond - mean) / deviation
    hazard = np.exp(scipy.stats.norm.logpdf(limit) - scipy.stats.norm.logsf(limit))
    slope = hazard * (hazard - limit)
    of_mean = (len(z) + slope.sum()) / deviation**2
    both = (2 * z.sum() + (hazard + limit * slope).sum()) / deviation
    of_deviation = 2 * (z**2).sum() + (limit * (hazard + limit * slope)).sum()
    return mean, deviation, math.sqrt(of_deviation / (of_mean * of_deviation - both**2))


# -- paired tests ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paired:
    """Comparison of two sets of runs that share their seeds.

    Attributes:
        pairs: number of seeds with a result in both.
        both_censored: number of pairs with two cut runs, which give no information.
        one_censored: number of pairs with one cut run, which give only the sign of the difference.
        effect: the quotient of geometric means for ratios; else the mean difference. NaN if unknown.
        bound: ">" or "<" if the true effect is larger or smaller than `effect`, else "".
        spread: standard deviation over pairs, of the logarithms of quotients or of differences; NaN if unknown.
        p: two-sided p-value; NaN without a test.
        test: "t", "sign", or "" for none.
        directions: number of positive differences, and of negative differences.
        log: whether ratios were compared, by their logarithms.
    """

    pairs: int
    both_censored: int
    one_censored: int
    effect: float
    bound: str
    spread: float
    p: float
    test: str
    directions: tuple[int, int] = (0, 0)
    log: bool = False

    @property
    def informative(self) -> int:
        """Number of pairs with at most one cut run."""
        return self.pairs - self.both_censored

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the effect, by Student's t; NaN for other tests."""
        count = self.informative
        wide = student(count - 1) * self.spread / math.sqrt(count) if self.test == "t" else math.nan
        if self.log:
            return self.effect * math.exp(-wide), self.effect * math.exp(min(wide, 700.0))
        return self.effect - wide, self.effect + wide

    def summary(self) -> LogSummary:
        """Return the quotient of ratios as a summary on the log scale."""
        error = self.spread / math.sqrt(self.informative) if self.informative else math.nan
        return LogSummary(self.effect, self.spread, error, self.informative - 1, self.bound)


def paired(
    ours: Sequence[float] | Values,
    theirs: Sequence[float] | Values,
    censored: Sequence[bool] | Mask,
    their_censored: Sequence[bool] | Mask,
    log: bool,
) -> Paired:
    """Compare runs that share their seeds, pair by pair.

    Differences, or differences of logarithms for ratios, are tested by Student's t. Pairs with two cut runs are left
    out. A pair with one cut run gives only the sign of the difference. If there is one, or if all differences are
    equal, the test is the exact sign test, without ties.

    Args:
        ours: values.
        theirs: values of the same seeds to compare with.
        censored: for each of `ours`, whether it was cut; only used for ratios, as an accuracy is known even if
            training was cut.
        their_censored: for each of `theirs`, whether it was cut.
        log: whether the values are ratios.

    Raises:
        InvalidSettingError: as for `known_runs`, by which pairs without a value are left out.
    """
    (a, b), masks = known_runs(
        {"`ours`": ours, "`theirs`": theirs}, {"`censored`": censored, "`their_censored`": their_censored}
    )
    above, below = (one & log for one in masks)
    gaps = _logs(a) - _logs(b) if log else a - b
    both = above & below
    one = above ^ below
    known = ~(above | below)
    pointing = np.where(one, np.where(above & (a >= b), 1, np.where(below & (b >= a), -1, 0)), np.sign(gaps))
    pointing[both | (known & (np.abs(gaps) < LEAST_SPREAD))] = 0
    directions = int((pointing > 0).sum()), int((pointing < 0).sum())
    gaps = gaps[known | one]
    bound = _bound(above & one, below & one, pointing)
    spread = float(gaps.std(ddof=1)) if len(gaps) > 1 and not one.any() else math.nan
    p, test = _test(gaps, directions, bool(one.any()), int(known.sum()))
    effect = math.nan if bound == "?" or not len(gaps) else _exp_of_mean(gaps) if log else float(gaps.mean())
    counts = len(a), int(both.sum()), int(one.sum())
    return Paired(*counts, effect, bound.strip("?"), spread, p, test, directions, log)


def _logs(values: Values) -> Values:
    return np.asarray(np.log(np.maximum(values, LEAST_RATIO)))


def _bound(above: Mask, below: Mask, pointing: Values) -> str:
    """Return whether the true effect is larger (">") or smaller ("<") than the mean; "?" if unknown, "" if equal."""
    if not above.any() and not below.any():
        return ""
    if (pointing[above | below] == 0).any() or (above.any() and below.any()):
        return "?"
    return ">" if above.any() else "<"


def _test(gaps: Values, directions: tuple[int, int], bounded: bool, known: int) -> tuple[float, str]:
    if len(gaps) < 2:
        return math.nan, ""
    if not bounded and gaps.std() >= LEAST_SPREAD:
        return float(scipy.stats.ttest_1samp(gaps, 0.0).pvalue), "t"
    if sum(directions):
        return float(scipy.stats.binomtest(directions[0], sum(directions)).pvalue), "sign"
    return (1.0, "sign") if known == len(gaps) else (math.nan, "")


def holm(p: Sequence[float]) -> list[float]:
    """Correct p-values for multiple tests by Holm's method; NaN stays NaN and does not count as a test.

    Source: Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure".

    Raises:
        InvalidSettingError: a p-value is not from 0 to 1.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    values = number_column("`p`", p)
    if ((values < 0) | (values > 1)).any():
        raise InvalidSettingError("A p-value must be from 0 to 1, such as 0.03 for 3 %.")
    count = int(np.isfinite(values).sum())
    order = np.argsort(values)[:count]  # NaN are sorted last
    corrected = np.full(len(values), math.nan)
    corrected[order] = np.minimum(1, np.maximum.accumulate(values[order] * np.arange(count, 0, -1)))
    return [float(one) for one in corrected]


# -- equivalence -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Equivalence:
    """Test of the equivalence of two sets of runs, up to a margin.

    Attributes:
        effect: quotient of geometric means for ratios; else the difference of means. NaN if unknown.
        low: lower end of the 95 % interval of `effect`, by Welch's t.
        high: upper end of the interval.
        p: p-value of two one-sided tests against the margin; small if the two are equivalent. NaN without a test.
        p_different: p-value of Welch's t-test; small if the two differ.
        margin: the margin of the test.
        freedom: Welch's degrees of freedom.
        runs: number of runs with a value, of each set.
    """

    effect: float
    low: float
    high: float
    p: float
    p_different: float
    margin: float
    freedom: float
    runs: tuple[int, int] = (0, 0)

    @property
    def verdict(self) -> str:
        """ "equivalent", "different", "both" (different, but by less than the margin) or "unclear", at 5 %."""
        alike, apart = self.p < 1 - CONFIDENCE, self.p_different < 1 - CONFIDENCE
        return {(1, 0): "equivalent", (0, 1): "different", (1, 1): "both"}.get((alike, apart), "unclear")


def equivalence(
    ours: Sequence[float] | Values,
    theirs: Sequence[float] | Values,
    margin: float = 0.2,
    *,
    censored: Sequence[bool] | Mask | None = None,
    their_censored: Sequence[bool] | Mask | None = None,
    log: bool = True,
) -> Equivalence:
    """Test whether two sets of independent runs are equivalent, by two one-sided Welch tests (TOST) at a margin.

    Two small sets of runs often do not differ significantly only because their intervals are wide. They are called
    equivalent only if the data exclude every difference as large as the margin (Schuirmann 1987).

    Args:
        ours: ratios, or accuracies. Runs without a value (NaN), such as failed runs, are left out with a warning.
        theirs: values to compare with; seeds that both have are not paired.
        margin: largest difference that does not matter. For ratios, 0.2 means a quotient between 1 / 1.2 and 1.2; for
            accuracies, a difference between -0.2 and 0.2. It is a fraction, not a percentage: at most 1 for ratios and
            for values from -1 to 1.
        censored: for each of `ours`, whether it was cut, so that its ratio is larger; see `log_summary`.
        their_censored: for each of `theirs`, whether it was cut.
        log: whether the values are ratios, which are compared by their logarithms.

    Returns:
        The effect (a quotient of ratios, or a difference of accuracies) with its 95 % interval, p-values, and
        `verdict`: "equivalent", "different", "both" (different, but by less than the margin) or "unclear".

    Raises:
        InvalidSettingError: the margin is not positive or too large; or as for `known_runs`.

    Example:
        >>> found = equivalence([2.0, 2.1, 2.2, 2.1, 2.0], [2.1, 2.0, 2.1, 2.2, 2.2])
        >>> round(found.effect, 2), round(found.p, 4), found.verdict
        (0.98, 0.0001, 'equivalent')
    """
    (one,), (cut_one,) = known_runs({"`ours`": ours}, {"`censored`": censored})
    (other,), (cut_other,) = known_runs({"`theirs`": theirs}, {"`their_censored`": their_censored})
    fractions = log or bool((np.abs(np.concatenate([one, other])) <= 1).all())
    margin = real_number("margin of an equivalence test", margin, above=True, **({"most": 1.0} if fractions else {}))
    mean, error, freedom = _mean_and_error(one, cut_one, log)
    their_mean, their_error, their_freedom = _mean_and_error(other, cut_other, log)
    total = math.hypot(error, their_error)
    parts = error**4 / max(freedom, 1) + their_error**4 / max(their_freedom, 1)
    welch = total**4 / parts if parts > 0 else float(freedom + their_freedom)
    gap, edge = mean - their_mean, math.log1p(margin) if log else margin
    p = float(tost(gap, total, welch, edge))
    apart = float(t_test(gap, total, welch)) if math.isfinite(total) else math.nan
    ends = [gap - student(welch) * total, gap, gap + student(welch) * total]
    low, effect, high = np.exp(np.clip(ends, -700, 700)) if log else ends
    return Equivalence(float(effect), float(low), float(high), p, apart, margin, welch, (len(one), len(other)))


def tost(difference: Numbers, error: Numbers, freedom: Numbers, margin: float | Values) -> Numbers:
    """Return the p-value of two one-sided t-tests that a true difference is within a margin; NaN if unknown.

    Args:
        difference: observed difference, a number or an array of any shape; so are the other arguments.
        error: standard error of the difference.
        freedom: degrees of freedom of the error.
        margin: the largest difference that does not matter, in the same unit.

    Example:
        >>> round(tost(0.1, 0.04, 8, 0.2), 3)
        0.018
    """
    found = np.asarray(_upper_tail(np.asarray(margin, float) - np.abs(difference), error, freedom))
    return found if found.ndim else float(found)  # type: ignore[return-value]


def t_test(difference: float | Values, error: float | Values, freedom: float | Values) -> Values:
    """Return the two-sided p-value of a difference by Student's t, an array of its shape; NaN if unknown.

    Args:
        difference: observed difference, a number or an array of any shape; so are the other arguments.
        error: standard error of the difference.
        freedom: degrees of freedom of the error.

    Example:
        >>> t_test([0.0, 0.1], [0.0, 0.04], 8).round(3).tolist()
        [1.0, 0.037]
    """
    return np.minimum(2 * _upper_tail(np.abs(difference), error, freedom), 1.0)


def _upper_tail(distance: float | Values, error: float | Values, freedom: float | Values) -> Values:
    """Return the probability of a larger Student's t. If the error is 0, it is 0, 0.5 or 1, by the distance's sign."""
    far = np.asarray(distance, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(
            np.asarray(error) > 0, far / np.asarray(error, float), np.where(far == 0, 0, np.sign(far) * np.inf)
        )
    t = np.where(np.isnan(error), np.nan, t)
    return np.asarray(scipy.stats.t.sf(t, freedom), float)


def _mean_and_error(values: Values, cut: Mask, log: bool) -> tuple[float, float, int]:
    """Return the mean of values or of logarithms, its standard error and degrees of freedom; NaN if unknown."""
    if log:
        found = log_summary(values, cut)
        return (math.nan if found.bound else math.log(found.center)), found.error, found.freedom
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(values.mean()) if len(values) else math.nan, error, len(values) - 1


# -- seeds needed ------------------------------------------------------------------------------------------------------


def power_of(seeds: int, effect: float, alpha: float) -> float:
    """Return the power of a two-sided paired t-test, by the noncentral t distribution.

    Args:
        seeds: number of pairs.
        effect: the mean difference, in standard deviations of the differences.
        alpha: significance level.

    Raises:
        InvalidSettingError: fewer than two pairs, or a level that is not between 0 and 1.

    Example:
        >>> round(power_of(34, 0.5, 0.05), 3)
        0.808
    """
    require_probability("alpha", alpha)
    whole_number("number of pairs", seeds, least=2)
    edge, away = scipy.stats.t.ppf(1 - alpha / 2, seeds - 1), abs(effect) * math.sqrt(seeds)
    other = float(scipy.stats.nct.cdf(-edge, seeds - 1, away))
    return float(scipy.stats.nct.sf(edge, seeds - 1, away)) + (other if math.isfinite(other) else 0.0)


def pairs_needed(effect: float, spread: float, power: float = 0.8, alpha: float = 0.05) -> int | None:
    """Return the least number of pairs with which a two-sided paired t-test has `power`; None above MOST_SEEDS.

    Args:
        effect: the true mean difference; for ratios, of their logarithms.
        spread: standard deviation of the differences over pairs.
        power: probability of finding the effect.
        alpha: significance level.

    Raises:
        InvalidSettingError: a power or a level that is not between 0 and 1.

    Example:
        >>> pairs_needed(0.5, 1.0), pairs_needed(1.0, 1.0)
        (34, 10)
    """
    require_probability("power", power)
    require_probability("alpha", alpha)
    if not (math.isfinite(effect) and math.isfinite(spread)) or effect == 0:
        return None
    size = min(abs(effect) / max(spread, LEAST_SPREAD), LARGEST_EFFECT)
    high = 2
    while power_of(high, size, alpha) < power:
        high *= 2
        if high > MOST_SEEDS:
            return None
    low = max(2, high // 2)
    return low + bisect_left(range(low, high), power, key=lambda seeds: power_of(seeds, size, alpha))


def signs_needed(alpha: float = 0.05) -> int:
    """Return the least number of pairs, all with the same sign, for a significant exact two-sided sign test.

    Raises:
        InvalidSettingError: a level that is not between 0 and 1.

    Example:
        >>> signs_needed(0.05)
        6
    """
    require_probability("alpha", alpha)
    return max(1, math.ceil(1 - math.log2(alpha)))


def spread_limit(spread: float, pairs: int) -> float:
    """Return the upper 80 % confidence limit of the true spread, from the spread of a pilot.

    Source: Browne 1995, "On the Use of a Pilot Sample for Sample Size Determination".
    """
    if pairs < 2:
        return math.nan
    return spread * math.sqrt((pairs - 1) / float(scipy.stats.chi2.ppf(1 - PILOT_CONFIDENCE, pairs - 1)))
