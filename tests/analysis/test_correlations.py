"""Rank correlations within models, and across models over seeds."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icy.analysis.correlations import (
    MeanInterval,
    across_models,
    crossed_correlations,
    median_interval,
    rank_correlation,
    reliability,
    within_model_order,
)
from icy.analysis.style import cell
from icy.core.errors import IncompatibleError


def wide(values: object, names: str = "abcdefghijklmnopqrstuvwxyz") -> pd.DataFrame:
    array = np.asarray(values, float)
    return pd.DataFrame(array, index=list(names[: len(array)]), columns=range(array.shape[1]))


# -- within models -----------------------------------------------------------------------------------------------------


def test_within_and_across_may_have_opposite_signs() -> None:
    """Models that are good on everything, but worse on grammars that they learn later."""
    skill, ease = np.arange(8.0)[:, None], np.arange(4.0)
    found = within_model_order(wide(ease + skill), wide(10 * skill - ease))
    assert found.correlations.tolist() == [-1.0] * 8
    assert (found.median, found.low, found.high, found.negative, found.positive) == (-1, -1, -1, 8, 0)
    assert found.p == pytest.approx(2 / 2**8)
    assert stats.spearmanr((ease + skill)[:, 0], (10 * skill - ease)[:, 0])[0] == 1


def test_each_model_has_spearmans_correlation_of_its_known_grammars() -> None:
    x, y = (
        [[1, 2, 2, 4, 5], [5, 5, 5, 5, 5], [1, 2, 3, math.nan, 4]],
        [[2, 1, 3, 5, 4], [1, 2, 3, 4, 5], [1, 3, 2, 0, 4]],
    )
    found = within_model_order(wide(x), wide(y))
    assert list(found.correlations.index) == ["a", "c"]  # b is constant
    assert found.correlations["a"] == pytest.approx(stats.spearmanr(x[0], y[0])[0])
    assert found.correlations["c"] == pytest.approx(0.8)
    assert math.isnan(found.low)  # of two models


def test_models_of_a_group_count_once() -> None:
    names = [f"{kind}:{name}" for name in ("GRU", "LSTM", "RNN") for kind in ("Hier", "Zero")]
    x = pd.DataFrame([[1.0, 2, 3]] * 6, names)
    y = pd.DataFrame([[1, 2, 3], [1, 2, 3], [3, 2, 1], [3, 2, 1], [3, 1, 2], [3, 2, 1]], names)
    found = within_model_order(x, y, groups=cell)
    assert found.median == pytest.approx(-0.75)  # of 1, -1 and -0.75
    assert (found.negative, found.positive, found.p) == (2, 1, 1.0)
    assert len(found.correlations) == 6


def test_tables_without_a_correlation_are_refused() -> None:
    with pytest.raises(IncompatibleError, match="needs a model with varying values"):
        within_model_order(wide([[1, 2]]), wide([[1, 2]]))
    with pytest.raises(IncompatibleError, match="a has more than one row"):
        within_model_order(wide(np.eye(3), "aab"), wide(np.eye(3)))
    with pytest.raises(IncompatibleError, match="no group for c"):
        within_model_order(wide(np.eye(3)), wide(np.eye(3)), groups={"a": 1, "b": 1})


def test_the_interval_of_a_median_is_interpolated_between_order_statistics() -> None:
    assert np.isnan(median_interval(range(5))).all()
    low, high = median_interval([*range(1, 7)])  # depth 1 holds 1 - 2/64, depth 2 1 - 14/64
    share = (62 / 64 - 0.95) / (12 / 64)
    assert low == pytest.approx(1 + 5 * share / (1 + 4 * share))
    assert high == pytest.approx(7 - low)
    assert median_interval([3.0] * 9) == (3, 3)


# -- across models -----------------------------------------------------------------------------------------------------


def test_a_correlation_across_seeds_is_the_mean_over_splits() -> None:
    draws = np.random.default_rng(0)
    x, y = draws.normal(size=(2, 9, 3))
    found = across_models(wide(x), wide(y))
    expected, same = [], []
    for one in range(3):
        rest = [i for i in range(3) if i != one]
        for a, b in (([one], rest), (rest, [one])):
            same.append(stats.spearmanr(x[:, a].mean(1), y[:, a].mean(1))[0])
            expected.append(stats.spearmanr(x[:, a].mean(1), y[:, b].mean(1))[0])
    assert found.correlation.value == pytest.approx(np.mean(expected))
    assert found.same_seeds == pytest.approx(np.mean(same))
    assert (found.models, found.groups, found.seeds) == (9, 9, 3)


def test_reliability_is_by_spearman_and_brown() -> None:
    values = [[1, 2], [2, 1], [3, 3], [4, 5], [5, 4], [6, 6]]
    one = float(stats.spearmanr(*np.transpose(values))[0])
    assert reliability(wide(values)).value == pytest.approx(2 * one / (1 + one))
    found = across_models(wide(values), wide(values))
    assert found.reliability_x == found.reliability_y == reliability(wide(values))
    assert found.correlation.value == pytest.approx(one)
    assert found.disattenuated.value == pytest.approx(1)


def test_its_interval_is_the_jackknifes() -> None:
    draws = np.random.default_rng(1)
    x = draws.normal(size=(10, 1)) + draws.normal(size=(10, 2)) / 2
    y = x + draws.normal(size=(10, 2)) / 2
    left = [across_models(wide(np.delete(x, i, 0)), wide(np.delete(y, i, 0))).correlation.value for i in range(10)]
    error = math.sqrt(0.9 * ((np.arctanh(left) - np.arctanh(left).mean()) ** 2).sum())
    found = across_models(wide(x), wide(y)).correlation
    width = stats.t.ppf(0.975, 9) * error
    assert (found.low, found.high) == pytest.approx([math.tanh(math.atanh(found.value) + s * width) for s in (-1, 1)])


def test_noise_that_measures_share_by_seed_does_not_count() -> None:
    """Two measures with nothing in common but the run that they are divided by."""
    draws = np.random.default_rng(2)
    shared = draws.normal(size=(26, 2))
    x, y = (draws.normal(size=(26, 1)) + 0.3 * draws.normal(size=(26, 2)) - shared for _ in range(2))
    found = across_models(wide(x), wide(y))
    assert found.same_seeds > 0.3
    assert abs(found.correlation.value) < 0.1
    assert found.correlation.low < 0 < found.correlation.high


def test_noise_leaves_the_disattenuated_correlation_unknown() -> None:
    draws = np.random.default_rng(3)
    found = across_models(wide(draws.normal(size=(12, 2))), wide(draws.normal(size=(12, 2))))
    assert math.isnan(found.disattenuated.low)
    assert found.reliability_x.low < 0


def test_models_without_all_seeds_and_few_models_are_left_out_and_refused() -> None:
    values = np.random.default_rng(4).normal(size=(6, 2))
    values[5, 0] = math.nan
    other = wide(np.random.default_rng(5).normal(size=(6, 3)))
    assert across_models(wide(values), other).models == 5
    assert across_models(wide(values), other).seeds == 2
    with pytest.raises(IncompatibleError, match="2 seeds and 3 independent models"):
        across_models(wide(values), other, groups=lambda name: min(name, "c"))
    with pytest.raises(IncompatibleError, match="1 seeds"):
        across_models(wide(values[:, :1]), other)


# -- both ways ---------------------------------------------------------------------------------------------------------


def by_grammar(values: object) -> dict[str, pd.DataFrame]:
    """Tables of `crossed_correlations` of an array [model, grammar, seed]."""
    return {f"g{i}": wide(of) for i, of in enumerate(np.swapaxes(np.asarray(values, float), 0, 1))}


def test_the_three_correlations_are_separate() -> None:
    """Within models -1, across models 1, and an interaction with the other sign."""
    models, grammars = 100.0 * np.arange(6)[:, None], 10_000.0 * np.arange(4)
    both = np.outer([1, -1, 1, -1, 1, -1], [1, -1, -1, 1])
    x, y = (np.repeat((of + models)[..., None], 2, 2) for of in (grammars + both, -grammars - both))
    found = crossed_correlations(by_grammar(x), by_grammar(y))
    values = [of.plain.value for of in (found.within, found.across, found.interaction)]
    assert values == pytest.approx([-1, 1, -1])
    assert found.contrast.value == pytest.approx(-2)
    assert (found.models, found.grammars, found.groups) == (6, 4, 6)


def test_the_correlation_across_models_is_the_mean_over_grammars() -> None:
    draws = np.random.default_rng(6)
    x, y = draws.normal(size=(2, 7, 3, 4)) + draws.normal(size=(2, 7, 1, 1))
    of_x, of_y = by_grammar(x), by_grammar(y)
    found = crossed_correlations(of_x, of_y).across
    assert found.plain.value == pytest.approx(
        np.mean([across_models(of_x[name], of_y[name]).correlation.value for name in of_x])
    )
    assert found.true.value == pytest.approx(found.plain.value / math.sqrt(found.reliability_x * found.reliability_y))
    same = crossed_correlations(of_x, of_x)
    assert (same.across.true.value, same.within.reliability_x) == pytest.approx((1, same.within.reliability_y))


def test_its_interval_leaves_out_one_group_at_a_time() -> None:
    x, y = np.random.default_rng(7).normal(size=(2, 8, 3, 2))
    groups = dict(zip("abcdefgh", "pppqqrss", strict=True))
    left = []
    for group in "pqrs":
        rows = [i for i, of in enumerate(groups.values()) if of != group]
        parts = ({name: of.iloc[rows] for name, of in by_grammar(measure).items()} for measure in (x, y))
        left.append(crossed_correlations(*parts).within.plain.value)
    found = crossed_correlations(by_grammar(x), by_grammar(y), groups).within.plain
    assert found.error == pytest.approx(math.sqrt(3 / 4 * ((np.array(left) - np.mean(left)) ** 2).sum()))
    assert found.freedom == 3
    assert (found.low, found.high) == pytest.approx(found.ends(0.95))


def test_a_mean_is_equivalent_to_0_if_its_90_percent_interval_is_within_the_margin() -> None:
    mean = MeanInterval(0.1, error=0.05, freedom=6)
    margin = mean.ends(0.9)[1]
    assert mean.p_equal(margin) == pytest.approx(0.05)
    assert mean.p == pytest.approx(2 * stats.t.sf(2, 6))


def test_few_grammars_or_groups_have_no_crossed_correlation() -> None:
    table = by_grammar(np.random.default_rng(8).normal(size=(5, 3, 2)))
    two = {name: table[name] for name in list(table)[:2]}
    with pytest.raises(IncompatibleError, match="share 2 grammars, but need 3"):
        crossed_correlations(table, two)
    with pytest.raises(IncompatibleError, match="2 seeds and 3 independent models"):
        crossed_correlations(table, table, groups=lambda name: min(name, "c"))
    table["g0"].iloc[0, 0] = math.nan
    assert crossed_correlations(table, table).models == 4


# -- over pairs of values ----------------------------------------------------------------------------------------------


def test_a_rank_correlation_is_spearmans_with_ties() -> None:
    x, y = [1, 2, 2, 4, 5, 7], [3, 1, 2, 2, 9, 8]
    found = rank_correlation(x, y)
    assert found.value == pytest.approx(stats.spearmanr(x, y)[0])
    assert found.low < found.value < found.high
    x, y = [1, 2, 3, 4, 5], [2, 1, 4, 3, 5]
    exact = stats.permutation_test((x,), lambda a: stats.spearmanr(a, y)[0], permutation_type="pairings")
    assert rank_correlation(x, y).p == pytest.approx(exact.pvalue, abs=1e-9)


def test_its_interval_is_that_of_bonett_and_wright() -> None:
    draws = np.random.default_rng(1)
    x = draws.normal(size=40)
    found = rank_correlation(x, x + draws.normal(size=40))
    width = 1.959964 * math.sqrt((1 + found.value**2 / 2) / 37)
    expected = [math.tanh(math.atanh(found.value) + side * width) for side in (-1, 1)]
    assert [found.low, found.high] == pytest.approx(expected, abs=1e-6)
    assert "40 pairs" in str(found)


def test_its_interval_holds_the_true_correlation_about_as_often_as_it_says() -> None:
    draws, true, held = np.random.default_rng(2), 6 / math.pi * math.asin(0.6 / 2), 0
    for _ in range(300):
        x = draws.normal(size=14)
        found = rank_correlation(x, 0.6 * x + 0.8 * draws.normal(size=14))
        held += found.low <= true <= found.high
    assert 0.91 <= held / 300 <= 0.98


def test_pairs_that_are_not_known_are_left_out() -> None:
    found = rank_correlation([1, 2, math.nan, 4, 5, 6], [1, 2, 3, math.nan, 5, 6])
    assert (found.value, found.pairs) == (pytest.approx(1.0), 4)
    assert math.isnan(rank_correlation([1, 1, 1, 1], [1, 2, 3, 4]).value)
    assert math.isnan(rank_correlation([1, 2, 3], [1, 2, 3]).low)
