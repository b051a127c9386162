"""Rank correlations: of pairs, within models over grammars, and across models, with disjoint halves of seeds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import scipy

from icy.analysis.statistics import CONFIDENCE, LEAST_SPREAD, Interval, Values, known_runs, student, tost
from icy.core.checks import number_column
from icy.core.errors import IncompatibleError

if TYPE_CHECKING:
    import pandas as pd

Groups: TypeAlias = "Mapping[Any, Any] | Callable[[Any], Any] | pd.Series[Any]"
FEWEST_MODELS = 4  # least number of models for a correlation across models
FEWEST_ITEMS = 3  # least number of values for a correlation within a model
MOST_PERMUTED = 8  # up to this many pairs, all permutations are counted
ALMOST_ONE = 1 - 1e-9  # correlations are clipped to this before Fisher's transformation


# -- over pairs of values ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RankCorrelation(Interval):
    """Spearman's correlation of pairs of values, with its interval; NaN if one side is constant.

    Attributes:
        pairs: number of pairs.
        p: two-sided p-value: exact permutation test up to eight pairs, else by Student's t.
    """

    pairs: int = 0
    p: float = math.nan

    def __str__(self) -> str:
        return f"{self.value:+.2f} (95 % interval {self.low:+.2f} to {self.high:+.2f}, {self.pairs} pairs)"


def rank_correlation(x: Sequence[float] | Values, y: Sequence[float] | Values) -> RankCorrelation:
    """Return Spearman's correlation with its 95 % interval, by Fisher's transformation.

    The variance is by Bonett and Wright 2000, valid for few pairs and for correlations below 0.95.

    Args:
        x: first values of the pairs.
        y: second values of the pairs. Pairs with NaN are left out.

    Raises:
        InvalidSettingError: the two have different lengths, or text that is not a number.

    Example:
        >>> found = rank_correlation([1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5])
        >>> round(found.value, 3), round(found.low, 2), round(found.high, 2)
        (0.829, -0.13, 0.99)
    """
    a = number_column("`x`", x)
    b = number_column("`y`", y, len(a))
    known = np.isfinite(a) & np.isfinite(b)
    a, b, count = a[known], b[known], int(known.sum())
    if count < 4 or np.ptp(a) == 0 or np.ptp(b) == 0:
        value = float(scipy.stats.spearmanr(a, b)[0]) if count > 2 and min(np.ptp(a), np.ptp(b)) > 0 else math.nan
        return RankCorrelation(value, pairs=count)
    found = scipy.stats.spearmanr(a, b)
    value = float(found[0])
    width = float(scipy.stats.norm.ppf((1 + CONFIDENCE) / 2)) * math.sqrt((1 + value**2 / 2) / (count - 3))
    center = math.atanh(min(max(value, -1 + 1e-12), 1 - 1e-12))
    p = _permutation_p(a, b, float(found[1]))
    return RankCorrelation(value, math.tanh(center - width), math.tanh(center + width), count, p)


def _permutation_p(a: Values, b: Values, otherwise: float) -> float:
    """Return the exact two-sided permutation p-value; `otherwise` for more than MOST_PERMUTED pairs."""
    if len(a) > MOST_PERMUTED:
        return otherwise
    x, y = (scipy.stats.rankdata(side) - (len(a) + 1) / 2 for side in (a, b))
    orders = np.array(list(itertools.permutations(range(len(a)))))
    return float((np.abs(x[orders] @ y) >= abs(x @ y) - LEAST_SPREAD).mean())


# -- within models -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WithinModelCorrelation:
    """Rank correlations of two measures within each model over grammars, and their summary over models.

    Attributes:
        correlations: Spearman's correlation of each model, indexed by model.
        median: median over models; with groups, the median over groups of the medians of their models.
        low: lower end of the 95 % interval of the median; NaN for fewer than six models (or groups).
        high: upper end of the interval.
        negative: number of models (or groups) with a correlation (or median) below 0.
        positive: number of models (or groups) with a correlation (or median) above 0.
        p: p-value of an exact two-sided sign test that the median is 0; ties are left out.
    """

    correlations: pd.Series[float]
    median: float
    low: float
    high: float
    negative: int
    positive: int
    p: float

    def __str__(self) -> str:
        return (
            f"median {self.median:+.2f} (95 % interval {self.low:+.2f} to {self.high:+.2f}), "
            f"negative in {self.negative} and positive in {self.positive}, sign test p = {self.p:.2g}"
        )


def within_model_order(x: pd.DataFrame, y: pd.DataFrame, groups: Groups | None = None) -> WithinModelCorrelation:
    """Correlate two measures within each model, over grammars, and summarize the correlations over models.

    This tests whether a model does better on the grammars that are easier for it. A correlation over models on one
    grammar tests whether some models do better than others, and may have the opposite sign.

    Args:
        x: first measure: a row per model, a column per grammar, means over seeds. Equal values, such as two ratios cut
            at the same cap, share their rank.
        y: second measure, with the same index and columns. Rows and columns that only one table has are left out.
        groups: group of each model, such as its cell (a function of the model's name, or a mapping). Models of a
            group do not count as independent: the summary is over the medians of groups.

    Returns:
        The summary, and the correlation of each model with at least three grammars in both tables and without a
        constant measure. The interval of the median is distribution-free (Hettmansperger and Sheather 1986).

    Raises:
        IncompatibleError: no model has a correlation, or a model has two rows.

    Example:
        >>> import pandas as pd
        >>> ratios = pd.DataFrame({"perm": [1.0, 1.1], "rot": [2.0, 4.0], "hol": [9.0, 8.0]}, index=["FC", "GRU"])
        >>> accuracies = pd.DataFrame({"perm": [0.9, 0.8], "rot": [0.7, 0.4], "hol": [0.1, 0.5]}, index=["FC", "GRU"])
        >>> within_model_order(ratios, accuracies).correlations.tolist()
        [-1.0, -0.5]
    """
    import pandas as pd

    _check_rows(x, y)
    models, grammars = x.index.intersection(y.index), x.columns.intersection(y.columns)
    found = {}
    for model in models:
        pairs = np.array([x.loc[model, grammars], y.loc[model, grammars]], float)
        pairs = pairs[:, np.isfinite(pairs).all(0)]
        if pairs.shape[1] >= FEWEST_ITEMS and (np.ptp(pairs, axis=1) > 0).all():
            found[model] = round(_pearson(*scipy.stats.rankdata(pairs, axis=1)), 12)
    if not found:
        raise IncompatibleError(
            f"A correlation needs a model with varying values on at least {FEWEST_ITEMS} grammars of both tables."
        )
    correlations = pd.Series(found, name="correlation")
    summary = correlations if groups is None else correlations.groupby(_groups(correlations.index, groups)).median()
    negative, positive = int((summary < -LEAST_SPREAD).sum()), int((summary > LEAST_SPREAD).sum())
    p = float(scipy.stats.binomtest(negative, negative + positive).pvalue) if negative + positive else 1.0
    low, high = median_interval(summary.to_numpy(float))
    return WithinModelCorrelation(correlations, float(summary.median()), low, high, negative, positive, p)


def median_interval(values: Sequence[float] | Values) -> tuple[float, float]:
    """Return the 95 % interval of a median, by interpolated order statistics; NaN below six values.

    Source: Hettmansperger and Sheather 1986, "Confidence Intervals Based on Interpolated Order Statistics".

    Example:
        >>> [round(end, 2) for end in median_interval([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])]
        [2.66, 8.34]
    """
    ((known,), _) = known_runs({"`values`": values})
    ordered = np.sort(known)
    count = len(ordered)
    depths = np.arange(1, count // 2 + 1)
    coverage = 1 - 2 * scipy.stats.binom.cdf(depths - 1, count, 0.5)  # probability that depth d contains the median
    if not len(coverage) or coverage[0] < CONFIDENCE:
        return math.nan, math.nan
    depth = int(depths[coverage >= CONFIDENCE][-1])
    inner = float(1 - 2 * scipy.stats.binom.cdf(depth, count, 0.5))
    share = (coverage[depth - 1] - CONFIDENCE) / (coverage[depth - 1] - inner)
    weight = (count - depth) * share / (depth + (count - 2 * depth) * share)
    ends = [(1 - weight) * ordered[a] + weight * ordered[b] for a, b in ((depth - 1, depth), (-depth, -depth - 1))]
    return float(ends[0]), float(ends[1])


def _check_rows(*tables: pd.DataFrame) -> None:
    """Raise IncompatibleError if a model has two rows."""
    for table in tables:
        if table.index.has_duplicates:
            twice = table.index[table.index.duplicated()][0]
            raise IncompatibleError(f"{twice} has more than one row; the table needs one row per model.")


def _groups(models: pd.Index[Any], groups: Groups) -> pd.Index[Any]:
    """Return the group of each model.

    Raises:
        IncompatibleError: a model has no group.
    """
    found = models.map(cast(Any, groups))
    if found.isna().any():
        raise IncompatibleError(f"`groups` has no group for {models[found.isna()][0]}.")
    return found


# -- across models -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AcrossModels:
    """Rank correlation of two measures over models, from runs of different seeds.

    Attributes:
        correlation: Spearman's correlation of means over one half of the seeds with means over the other half.
        same_seeds: the correlation with the same half of the seeds for both measures, for comparison. It is too large
            if both measures of a seed share noise, such as two ratios to the same run of concat.
        reliability_x: reliability of means over all seeds of the first measure: the fraction of their variance that
            is due to models.
        reliability_y: reliability of the second measure.
        disattenuated: estimated correlation of means over infinitely many seeds, clipped to -1 to 1.
        models: number of models.
        groups: number of independent groups of models.
        seeds: number of seeds.
    """

    correlation: Interval
    same_seeds: float
    reliability_x: Interval
    reliability_y: Interval
    disattenuated: Interval
    models: int
    groups: int
    seeds: int


def across_models(x: pd.DataFrame, y: pd.DataFrame, groups: Groups | None = None) -> AcrossModels:
    """Correlate two measures over models, using separate seeds for each measure, and correct for the noise of seeds.

    Seeds are split into halves: means of `x` over one half are ranked against means of `y` over the other half, and the
    correlations of all splits are averaged. With more than three seeds, only halves of consecutive seeds (in a circle)
    are used. The reliability of a half is the correlation of the halves of one measure. The disattenuated correlation
    is the correlation divided by the geometric mean of the two reliabilities (Spearman 1904). Reliabilities of means
    over all seeds follow from correlations of single seeds by the Spearman-Brown formula. Intervals are by the
    jackknife over models or groups, with Student's t; for correlations and reliabilities on Fisher's scale.

    Args:
        x: first measure: a row per model, a column per seed.
        y: second measure, with the same index and columns. Models and seeds that only one table has are left out, as
            are models without a value for one of the seeds.
        groups: group of each model, such as its cell (a function of the model's name, or a mapping). Models of a
            group do not count as independent.

    Returns:
        The correlations and reliabilities, with 95 % intervals. `disattenuated` is NaN if a reliability is not above
        0, and has no interval if the interval of a reliability contains 0.

    Raises:
        IncompatibleError: fewer than four models or groups, fewer than two seeds, or a model has two rows.

    Example:
        >>> import pandas as pd
        >>> x = pd.DataFrame({1: [1, 2, 3, 4, 5, 6], 2: [2, 1, 3, 4, 6, 5]})
        >>> y = pd.DataFrame({1: [1, 3, 2, 4, 5, 6], 2: [1, 2, 4, 3, 5, 6]})
        >>> found = across_models(x, y)
        >>> round(found.correlation.value, 2), round(found.disattenuated.value, 2)
        (0.86, 1.0)
    """
    (first, second), names = _shared([x, y], groups)
    splits = _splits(first.shape[1])
    subsets = [names != name for name in dict.fromkeys(names)]
    full = _correlations(first, second, splits)
    parts = np.array([_correlations(first[rows], second[rows], splits) for rows in subsets])
    across, of_x, of_y = (_jackknife(float(full[i]), parts[:, i], fisher=True) for i in range(3))
    true = _jackknife(float(full[3]), parts[:, 3], fisher=False)
    known = of_x.low > 0 and of_y.low > 0
    ends = np.clip([true.value, true.low, true.high] if known else [true.value, math.nan, math.nan], -1, 1)
    disattenuated = Interval(*map(float, ends))
    return AcrossModels(across, float(full[4]), of_x, of_y, disattenuated, len(first), len(subsets), first.shape[1])


def reliability(values: pd.DataFrame, groups: Groups | None = None) -> Interval:
    """Return the reliability of a measure's means over seeds, with its interval; see `across_models`.

    Args:
        values: a row per model, a column per seed.
        groups: as for `across_models`.

    Returns:
        The estimate with its 95 % interval, without a unit: 1 if every seed orders the models alike, about 0 if
        differences between models are only noise of the seeds.

    Example:
        >>> import pandas as pd
        >>> print(reliability(pd.DataFrame({1: [1, 2, 3, 4, 5, 6, 7, 8], 2: [2, 1, 3, 4, 6, 5, 8, 7]})))
        +0.96 (+0.88 to +0.99)
    """
    return across_models(values, values, groups).reliability_x


# -- both ways ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeanInterval(Interval):
    """A mean with its 95 % interval and its standard error, by the jackknife over groups.

    Attributes:
        error: standard error.
        freedom: degrees of freedom of `error`, one less than the number of groups.
    """

    error: float = math.nan
    freedom: int = 0

    @property
    def p(self) -> float:
        """Two-sided p-value of a mean of 0, by Student's t."""
        return float(2 * scipy.stats.t.sf(abs(self.value) / self.error, self.freedom))

    def p_equal(self, margin: float) -> float:
        """Return the p-value of two one-sided tests that the mean is within a margin of 0."""
        return float(tost(self.value, self.error, self.freedom, margin))

    def ends(self, confidence: float) -> tuple[float, float]:
        """Return the ends of the interval with another confidence level."""
        half = student(self.freedom, confidence) * self.error
        return self.value - half, self.value + half


@dataclass(frozen=True)
class MeanCorrelation:
    """Mean of correlations of two measures from runs of different seeds.

    Attributes:
        plain: mean of the correlations of halves of the seeds.
        true: estimate for infinitely many seeds: `plain` divided by the geometric mean of the reliabilities of halves
            (Spearman 1904); NaN if a reliability is not above 0.
        reliability_x: mean correlation of the halves of the first measure.
        reliability_y: mean correlation of the halves of the second measure.
    """

    plain: MeanInterval
    true: MeanInterval
    reliability_x: float
    reliability_y: float


@dataclass(frozen=True)
class CrossedCorrelations:
    """Correlations of two measures in a table of models and grammars.

    Attributes:
        within: mean over models of Spearman's correlation over grammars.
        across: mean over grammars of Spearman's correlation over models.
        interaction: Pearson's correlation of the double-centered tables, without the means of models and grammars.
        contrast: `within.true` minus `across.true`.
        models: number of models.
        grammars: number of grammars.
        groups: number of independent groups of models.
    """

    within: MeanCorrelation
    across: MeanCorrelation
    interaction: MeanCorrelation
    contrast: MeanInterval
    models: int
    grammars: int
    groups: int


def crossed_correlations(
    x: Mapping[str, pd.DataFrame], y: Mapping[str, pd.DataFrame], groups: Groups | None = None
) -> CrossedCorrelations:
    """Correlate two measures within models, across models, and in the interaction of model and grammar.

    This compares three answers to one question, in the same unit: whether grammars that a model learns sooner, models
    that learn sooner, or pairs of both that are sooner than their model and grammar, have larger values of the other
    measure. Seeds are split as in `across_models`, so the two measures share no seed.

    Args:
        x: first measure of each grammar: a row per model, a column per seed.
        y: second measure. Grammars, models and seeds that are not everywhere are left out.
        groups: group of each model, such as its cell. Models of a group do not count as independent; intervals are by
            the jackknife over groups, with Student's t.

    Returns:
        The three correlations, from -1 to 1, with 95 % intervals, plain and corrected for the noise of seeds, and the
        contrast of the first two.

    Raises:
        IncompatibleError: as for `across_models`, or fewer than three common grammars.

    Example:
        >>> import pandas as pd
        >>> speed = {g: pd.DataFrame({1: [v, v + 1, v, v + 2], 2: [v, v + 1, v, v + 3]}) for v, g in enumerate("abc")}
        >>> held_out = {grammar: -values for grammar, values in speed.items()}
        >>> crossed_correlations(speed, held_out).within.plain.value
        -1.0
    """
    names = [name for name in x if name in y]
    if len(names) < FEWEST_ITEMS:
        raise IncompatibleError(f"The two measures share {len(names)} grammars, but need {FEWEST_ITEMS}.")
    tables, of_models = _shared([measure[name] for measure in (x, y) for name in names], groups)
    first, second = np.stack(tables[: len(names)], 1), np.stack(tables[len(names) :], 1)
    parts = [np.full(len(first), True), *(of_models != name for name in dict.fromkeys(of_models))]
    found = np.array([_both_ways(first[rows], second[rows], _splits(first.shape[2])) for rows in parts])
    within, across, interaction = (
        MeanCorrelation(_mean_interval(of[:, 0]), _mean_interval(of[:, 1]), float(of[0, 2]), float(of[0, 3]))
        for of in found.transpose(1, 0, 2)
    )
    contrast = _mean_interval(found[:, 0, 1] - found[:, 1, 1])
    return CrossedCorrelations(within, across, interaction, contrast, len(first), len(names), len(parts) - 1)


def _both_ways(x: Values, y: Values, splits: Sequence[tuple[list[int], list[int]]]) -> Values:
    """Return a row for within, across and interaction: correlation, corrected correlation, and both reliabilities.

    Args:
        x: first measure, shape [model, grammar, seed].
        y: second measure.
        splits: halves of the seeds.
    """
    kinds = (
        _mean_spearman,
        lambda a, b: _mean_spearman(a.T, b.T),
        lambda a, b: _pearson(*(without_margins(of).ravel() for of in (a, b))),
    )
    found = np.zeros((3, 3))
    for half, rest in splits:
        (x_half, y_half), (x_rest, y_rest) = ([of[..., seeds].mean(2) for of in (x, y)] for seeds in (half, rest))
        pairs = ((x_half, y_rest), (x_half, x_rest), (y_half, y_rest))
        found += np.array([[kind(a, b) for a, b in pairs] for kind in kinds]) / len(splits)
    plain, of_x, of_y = found.T
    with np.errstate(invalid="ignore", divide="ignore"):
        true = plain / np.sqrt(np.where((of_x > 0) & (of_y > 0), of_x * of_y, np.nan))
    return np.stack([plain, true, of_x, of_y], 1)


def _mean_spearman(a: Values, b: Values) -> float:
    """Return the mean of the rank correlations of rows; rows with a constant measure are left out."""
    ranks = [scipy.stats.rankdata(of, axis=1) for of in (a, b)]
    return float(np.nanmean([_pearson(one, other) for one, other in zip(*ranks, strict=True)]))


def without_margins(values: Values) -> Values:
    """Return the interaction of rows and columns: a table without the means of its rows and columns."""
    return np.asarray(values - values.mean(1, keepdims=True) - values.mean(0) + values.mean())


def _mean_interval(values: Values) -> MeanInterval:
    """Return the first of `values`, with the jackknife interval by the others, each with one group left out."""
    freedom = len(values) - 2
    of = _jackknife(float(values[0]), values[1:], fisher=False)
    return MeanInterval(of.value, of.low, of.high, (of.high - of.low) / 2 / student(freedom), freedom)


# -- shared ------------------------------------------------------------------------------------------------------------


def _shared(tables: Sequence[pd.DataFrame], groups: Groups | None) -> tuple[list[Values], Any]:
    """Return the values of tables for their common models and seeds, and the group of each model.

    Raises:
        IncompatibleError: a model has two rows, or too few seeds or groups for a correlation across seeds.
    """
    _check_rows(*tables)
    seeds = reduce(lambda both, own: both.intersection(own), [table.columns for table in tables])
    models = reduce(lambda both, own: both.intersection(own), [table[seeds].dropna().index for table in tables])
    names = (models if groups is None else _groups(models, groups)).to_numpy()
    if len(seeds) < 2 or len(set(names)) < FEWEST_MODELS:
        raise IncompatibleError(
            f"The two measures share {len(seeds)} seeds and {len(set(names))} independent models with all values. "
            f"A correlation across seeds needs 2 seeds and {FEWEST_MODELS} models, or groups."
        )
    return [table.loc[models, seeds].to_numpy(float) for table in tables], names


def _splits(seeds: int) -> list[tuple[list[int], list[int]]]:
    """Return splits of seeds into two halves, each in both orders.

    One half has consecutive seeds, where the first seed follows the last.
    """
    found = []
    for start in range(seeds):
        half = [(start + i) % seeds for i in range(seeds // 2)]
        rest = [i for i in range(seeds) if i not in half]
        found += [(sorted(half), rest), (rest, sorted(half))]
    return [split for i, split in enumerate(found) if split not in found[:i]]


def _correlations(x: Values, y: Values, splits: Sequence[tuple[list[int], list[int]]]) -> Values:
    """Return five values: correlation across seeds, reliability of x, of y, disattenuated and same-seed correlation."""
    halves = np.array([[side[:, half].mean(1) for side in (x, y) for half in split] for split in splits])
    ranks = scipy.stats.rankdata(halves, axis=2)  # [split, half, model]; the halves are x's two and y's two

    def mean(one: int, other: int) -> float:
        return float(np.mean([_pearson(split[one], split[other]) for split in ranks]))

    across, of_x, of_y, same = mean(0, 3), mean(0, 1), mean(2, 3), mean(0, 2)
    shrunk = math.sqrt(of_x * of_y) if min(of_x, of_y) > 0 else math.nan
    return np.array([across, _spearman_brown(x), _spearman_brown(y), across / shrunk, same])


def _spearman_brown(values: Values) -> float:
    """Return the reliability of means over seeds, from the mean correlation of two seeds."""
    ranks, seeds = scipy.stats.rankdata(values, axis=0), values.shape[1]
    one = float(np.mean([_pearson(ranks[:, a], ranks[:, b]) for a in range(seeds) for b in range(a)]))
    return float(seeds * one / (1 + (seeds - 1) * one))


def _pearson(a: Values, b: Values) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float((a @ b) / size) if size > 0 else math.nan


def _jackknife(value: float, parts: Values, fisher: bool) -> Interval:
    """Return an estimate with its jackknife interval; `parts` are the estimates with one group left out."""
    scaled = _fisher(parts) if fisher else parts
    error = math.sqrt((len(parts) - 1) / len(parts) * float(((scaled - scaled.mean()) ** 2).sum()))
    width = student(len(parts) - 1) * error
    if not fisher:
        return Interval(value, value - width, value + width)
    center = float(_fisher(np.array(value)))
    return Interval(value, math.tanh(center - width), math.tanh(center + width))


def _fisher(correlation: Values) -> Values:
    return np.asarray(np.arctanh(np.clip(correlation, -ALMOST_ONE, ALMOST_ONE)))
