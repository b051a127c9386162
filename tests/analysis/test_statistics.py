"""Statistics for few seeds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icy.analysis.correlations import median_interval
from icy.analysis.statistics import (
    LogSummary,
    equivalence,
    holm,
    log_summary,
    paired,
    pairs_needed,
    power_of,
    signs_needed,
    spread_limit,
    student,
    tost,
)
from icy.core.errors import InvalidSettingError

NO = [False] * 5


def test_intervals_of_several_freedoms_are_students() -> None:
    found = student(np.array([1.0, 4.0, 0.0]))
    assert found == pytest.approx([student(1), student(4), math.nan], nan_ok=True)
    assert found[0] == pytest.approx(12.7062, abs=1e-4)


def test_intervals_are_students() -> None:
    assert [student(n) for n in (2, 4, 1000)] == pytest.approx([4.303, 2.776, 1.962], abs=1e-3)
    assert math.isnan(student(0))


def test_ratios_that_were_not_cut_are_summarised_by_their_logarithms() -> None:
    values = [1.0, 2.0, 4.0, 8.0]
    found, logs = log_summary(values, NO[:4]), np.log(values)
    assert found.center == pytest.approx(8**0.5)
    assert found.factor("sd") == pytest.approx(math.exp(logs.std(ddof=1)))
    low, high = stats.t.interval(0.95, 3, logs.mean(), logs.std(ddof=1) / 2)
    assert found.interval == pytest.approx((math.exp(low), math.exp(high)))


def test_a_cut_run_counts_as_larger_than_its_value() -> None:
    """A censored normal sample, with the maximum of its likelihood found by a grid."""
    values, cut = [3.0, 5.0, 6.0, 20.0, 20.0], [False, False, False, True, True]
    found = log_summary(values, cut)
    assert found.center > math.exp(np.log(values).mean())  # the mean of the values as they stand is too small
    logs, mean, deviation = np.log(values), math.log(found.center), found.deviation / math.sqrt(3 / 2)

    def likelihood(m: float, s: float) -> float:
        return float(stats.norm.logpdf(logs[:3], m, s).sum() + stats.norm.logsf(logs[3:], m, s).sum())

    best = likelihood(mean, deviation)
    around = [
        likelihood(mean + a, deviation * b) for a in (-0.05, 0, 0.05) for b in (0.95, 1, 1.05) if (a, b) != (0, 1)
    ]
    assert best > max(around)
    assert found.freedom == 2


def test_the_error_of_a_censored_fit_is_that_of_the_observed_information() -> None:
    values, cut = [3.0, 5.0, 6.0, 20.0, 20.0], [False, False, False, True, True]
    found, logs = log_summary(values, cut), np.log(values)
    scale = math.sqrt(3 / 2)
    at = np.array([math.log(found.center), math.log(found.deviation / scale)])

    def loss(p: np.ndarray) -> float:
        s = math.exp(p[1])
        return -float(stats.norm.logpdf(logs[:3], p[0], s).sum() + stats.norm.logsf(logs[3:], p[0], s).sum())

    h, one = 1e-4, list(np.eye(2))
    hessian = [
        [sum(x * y * loss(at + h * (x * a + y * b)) for x in (-1, 1) for y in (-1, 1)) / (4 * h**2) for b in one]
        for a in one
    ]
    assert found.error == pytest.approx(scale * math.sqrt(np.linalg.inv(hessian)[0, 0]), rel=1e-2)


@pytest.mark.parametrize(
    ("values", "cut", "text"),
    [
        ([20.0, 20.0, 20.0], [True] * 3, "> 20"),  # all cut: a bound
        ([5.0, 20.0], [False, True], "> 10"),  # one that was not tells no spread
        ([5.0, 10.0, 20.0], [False, False, True], "> 10"),  # two leave an interval of a factor of 27 or more
        ([20.0], [True], "> 20"),
        ([5.0], [False], "5.00"),
        ([5.0, 5.0], [False] * 2, "5.00×/1.00"),
        ([0.0, 0.0], [False] * 2, "0.01×/1.00"),
    ],
)
def test_few_seeds_bear_little(values: list[float], cut: list[bool], text: str) -> None:
    assert log_summary(values, cut).text(2, "sd") == text


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("value", [20.0, 1 / 3, 19.7, 12.300000000000002])
def test_equal_values_are_summarised_by_themselves(value: float, cut: bool) -> None:
    found = log_summary([value] * 3, [cut] * 3)
    assert (found.center, found.interval[0]) == (value, value)


def test_means_of_logarithms_are_rounded() -> None:
    assert log_summary([10.0, 40.0], [True, True]).center == 20
    assert log_summary([0.1, 0.4, 0.2], [False] * 3).center == 0.2
    assert paired([4.0, 6.0, 6.6], [2.0, 3.0, 3.3], [False] * 3, [False] * 3, log=True).effect == 2


def test_a_wide_factor_is_short() -> None:
    assert LogSummary(2.0, 5.0, 5.0, 1).text(2, "ci95") == "2.00×/4e+27"
    assert log_summary([20.0] * 2, [True] * 2).interval[0] == pytest.approx(20)


def test_pairs_are_tested_by_the_logarithms_of_their_quotients() -> None:
    ours, theirs = [2.0, 3.0, 5.0], [1.0, 2.0, 2.0]
    found = paired(ours, theirs, NO[:3], NO[:3], log=True)
    gaps = np.log(ours) - np.log(theirs)
    assert found.effect == pytest.approx(math.exp(gaps.mean()))
    assert (found.test, found.p) == ("t", pytest.approx(stats.ttest_rel(np.log(ours), np.log(theirs)).pvalue))
    low, high = found.interval
    assert (low < 1) == (found.p > 0.05)
    assert math.sqrt(low * high) == pytest.approx(found.effect)
    plain = paired([0.5, 0.7, 0.6], [0.4, 0.5, 0.5], NO[:3], NO[:3], log=False)
    assert plain.effect == pytest.approx(0.4 / 3)
    assert plain.p == pytest.approx(stats.ttest_rel([0.5, 0.7, 0.6], [0.4, 0.5, 0.5]).pvalue)


def test_pairs_cut_in_both_say_nothing() -> None:
    cut = [False, False, False, True, True]
    found = paired([2.0, 3.0, 5.0, 20.0, 20.0], [1.0, 2.0, 2.0, 20.0, 20.0], cut, cut, log=True)
    alone = paired([2.0, 3.0, 5.0], [1.0, 2.0, 2.0], NO[:3], NO[:3], log=True)
    assert (found.pairs, found.both_censored, found.one_censored, found.informative) == (5, 2, 0, 3)
    assert (found.effect, found.p, *found.interval) == pytest.approx((alone.effect, alone.p, *alone.interval))
    nothing = paired([20.0] * 3, [20.0] * 3, [True] * 3, [True] * 3, log=True)
    assert math.isnan(nothing.p)
    assert math.isnan(nothing.effect)


def test_of_pairs_cut_in_one_only_the_direction_counts() -> None:
    cut = [True, True, False, False, False]
    found = paired([20.0, 20.0, 9.0, 8.0, 7.0], [4.0, 5.0, 4.0, 4.0, 6.0], cut, NO, log=True)
    assert (found.test, found.directions, found.bound) == ("sign", (5, 0), ">")
    assert found.p == pytest.approx(2 * 0.5**5)
    assert math.isnan(found.spread)
    turned = paired([4.0, 5.0, 4.0, 4.0, 6.0], [20.0, 20.0, 9.0, 8.0, 7.0], NO, cut, log=True)
    assert (turned.bound, turned.effect) == ("<", pytest.approx(1 / found.effect))
    unknown = paired([20.0, 3.0], [30.0, 2.0], [True, False], NO[:2], log=True)  # cut at 20, the other took 30
    assert (unknown.directions, unknown.bound) == ((1, 0), "")
    assert math.isnan(unknown.effect)
    accuracies = paired([0.5, 0.6], [0.4, 0.3], [True, True], [True, True], log=False)  # known, whenever they stopped
    assert (accuracies.both_censored, accuracies.test) == (0, "t")


def test_equal_differences_are_counted_not_measured() -> None:
    assert paired([1.0] * 3, [1.0] * 3, NO[:3], NO[:3], log=True).p == 1
    same = paired([2.0] * 3, [1.0] * 3, NO[:3], NO[:3], log=True)
    assert (same.test, same.p) == ("sign", 0.25)  # a spread of 0 would make any test significant


def test_holms_correction() -> None:
    assert holm([0.01, math.nan, 0.04, 0.03, 0.005]) == pytest.approx([0.03, math.nan, 0.06, 0.06, 0.02], nan_ok=True)
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []


@pytest.mark.parametrize(("effect", "needed"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10), (100.0, 2)])
def test_seeds_needed_are_those_of_the_noncentral_t(effect: float, needed: int) -> None:
    """The numbers of G*Power for a paired t-test; a normal approximation has 32 in place of 34."""
    assert pairs_needed(effect, 1.0) == needed
    assert power_of(needed, effect, 0.05) >= 0.8
    assert needed == 2 or power_of(needed - 1, effect, 0.05) < 0.8


@pytest.mark.parametrize(
    ("effect", "alpha", "needed"),
    [(30.0, 0.05 / 20, 3), (30.0, 0.05 / 400, 4), (1000.0, 0.05 / 20, 2), (1000.0, 0.05 / 400, 3), (1e300, 1e-4, 2)],
)
def test_a_huge_effect_needs_more_than_two_pairs_only_if_the_level_is_low(
    effect: float, alpha: float, needed: int
) -> None:
    """With two pairs of a large effect d, |t| exceeds t' where the chance of |z| < d√2 / t' is."""
    assert pairs_needed(effect, 1.0, alpha=alpha) == needed
    edge = stats.t.ppf(1 - alpha / 2, 1)
    assert (2 * stats.norm.cdf(effect * math.sqrt(2) / edge) - 1 >= 0.8) == (needed == 2)


def test_the_power_is_reached_in_simulations() -> None:
    draws = np.random.default_rng(3).normal(1.0, 1.0, (20_000, 6))
    found = (stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05).mean()
    assert power_of(6, 1.0, 0.05) == pytest.approx(found, abs=0.01)


def test_without_an_effect_the_number_of_pairs_is_unknown() -> None:
    assert pairs_needed(0.0, 1.0) is None
    assert pairs_needed(math.nan, 1.0) is None
    assert pairs_needed(1e-6, 1.0) is None


def test_signs_needed() -> None:
    for alpha in (0.05, 0.05 / 7, 0.5):
        n = signs_needed(alpha)
        assert 2 * 0.5**n <= alpha < 2 * 0.5 ** (n - 1)


@pytest.mark.slow
def test_the_spread_of_a_pilot_may_be_much_larger() -> None:
    """The true one is below the limit in four of five pilots."""
    pilots = np.random.default_rng(4).normal(size=(5000, 4)).std(axis=1, ddof=1)
    assert np.mean([spread_limit(one, 4) >= 1 for one in pilots]) == pytest.approx(0.8, abs=0.02)


# -- equivalence -------------------------------------------------------------------------------------------------------


def test_equivalence_is_two_welch_tests_at_the_margin() -> None:
    ours, theirs = [2.0, 2.2, 2.5, 2.1], [2.3, 2.2, 2.1, 2.4, 2.6]
    a, b, edge = np.log(ours), np.log(theirs), math.log(1.2)
    above = stats.ttest_ind(a + edge, b, equal_var=False, alternative="greater").pvalue
    below = stats.ttest_ind(a - edge, b, equal_var=False, alternative="less").pvalue
    found, welch = equivalence(ours, theirs), stats.ttest_ind(a, b, equal_var=False)
    assert found.p == pytest.approx(max(above, below))
    assert (found.p_different, found.freedom) == pytest.approx((welch.pvalue, welch.df))
    interval = welch.confidence_interval()
    assert (found.low, found.high) == pytest.approx((math.exp(interval.low), math.exp(interval.high)))
    plain = equivalence(ours, theirs, 0.5, log=False)
    expected = stats.ttest_ind(np.array(ours) + 0.5, theirs, equal_var=False, alternative="greater").pvalue
    assert plain.p == pytest.approx(expected)
    assert plain.effect == pytest.approx(np.mean(ours) - np.mean(theirs))


@pytest.mark.parametrize(
    ("quotient", "spread", "verdict"),
    [(1.0, 0.01, "equivalent"), (1.1, 0.001, "both"), (1.5, 0.01, "different"), (1.0, 0.3, "unclear")],
)
def test_verdicts_of_equivalence(quotient: float, spread: float, verdict: str) -> None:
    around = np.exp(spread * np.array([-1.0, 0, 1]))
    assert equivalence(quotient * around, around).verdict == verdict


def test_equivalence_without_spread_or_with_cut_runs() -> None:
    same = equivalence([2.0] * 3, [2.0] * 3)
    assert (same.p, same.p_different, same.verdict) == (0, 1, "equivalent")
    assert equivalence([3.0] * 3, [2.0] * 3).verdict == "different"
    bound = equivalence([20.0] * 3, [19.0] * 3, censored=[True] * 3)
    assert math.isnan(bound.p)
    assert bound.verdict == "unclear"
    assert math.isnan(equivalence([2.0], [2.0, 2.1]).p)
    values, cut = [3.0, 5.0, 6.0, 20.0, 20.0], [False, False, False, True, True]
    assert equivalence(values, [8.0, 9.0], censored=cut).effect == pytest.approx(
        log_summary(values, cut).center / math.sqrt(72)
    )
    with pytest.raises(InvalidSettingError, match="above 0"):
        equivalence([1.0, 2.0], [1.0, 2.0], margin=0)


def test_tost_of_arrays() -> None:
    found = tost(np.array([0.0, 0.1, -0.1, 0.2]), np.array([0.05, 0.05, 0.05, 0.0]), np.array([4.0, 8, 8, 4]), 0.2)
    assert found == pytest.approx([stats.t.sf(4, 4), stats.t.sf(2, 8), stats.t.sf(2, 8), 0.5])


# -- input -------------------------------------------------------------------------------------------------------------

RATIOS = [2.0, 2.1, 2.2, 2.1, 2.0]


@pytest.mark.parametrize("missing", [math.nan, None, "NA", pd.NA])
def test_failed_runs_are_left_out_with_a_warning(missing: Any, caplog: pytest.LogCaptureFixture) -> None:
    found = equivalence(RATIOS, [2.1, missing, *RATIOS[2:]], their_censored=[0, 1, 0, 0, 0])
    assert found.runs == (5, 4)
    assert found == equivalence(RATIOS, [2.1, *RATIOS[2:]])
    assert caplog.text.count("Left out 1 of 5 runs without a value in `theirs`.") == 1
    assert log_summary([2.0, 8.0, missing], [0, 0, 1]) == log_summary([2.0, 8.0], [0, 0])
    assert paired([1, 2, missing, 4], [2, 2, 3, missing], [0] * 4, [1] * 4, True).pairs == 2
    assert median_interval([1, 2, 3, 4, 5, 6, missing]) == median_interval([1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize("cut", [["FALSE"] * 5, ["F", "no", "0", "0.0", "NA"], [None] * 5, np.full(5, np.nan), None])
def test_runs_that_were_not_cut_may_be_text(cut: Any) -> None:
    assert equivalence(RATIOS, RATIOS, censored=cut) == equivalence(RATIOS, RATIOS)
    cuts = ["TRUE", False, 1.0, "f", 0], [True, False, True, False, False]
    assert equivalence(RATIOS, RATIOS, censored=cuts[0]) == equivalence(RATIOS, RATIOS, censored=cuts[1])


def test_margins_of_other_units_are_not_limited() -> None:
    assert equivalence([850, 840, 845], [840, 850, 846], 100, log=False).verdict == "equivalent"
