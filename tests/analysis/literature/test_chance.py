"""What agrees by chance, held against simulations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from icy.analysis.literature.chance import (
    agreement_share,
    combined_p,
    count_interval,
    count_p,
    mean_difference_p,
)


@pytest.mark.parametrize(("ours", "theirs"), [(3, 3), (5, 5), (3, 5), (10, 10), (2, 2)])
def test_welchs_interval_of_few_runs_holds_0_in_more_than_95_of_100_cases(ours: int, theirs: int) -> None:
    random = np.random.default_rng(1)
    runs = random.normal(size=(40_000, ours)), random.normal(size=(40_000, theirs))
    found = stats.ttest_ind(*runs, axis=1, equal_var=False).pvalue >= 0.05
    assert agreement_share(ours, theirs) == pytest.approx(found.mean(), abs=0.003)
    assert agreement_share(ours, theirs) == pytest.approx(agreement_share(theirs, ours))
    assert agreement_share(ours, theirs) > 0.95


def test_the_count_of_independent_cells_is_binomial() -> None:
    shares, rows = [0.95] * 30, range(30)
    for count in (24, 26, 28, 30):
        assert count_p(count, shares, rows) == pytest.approx(stats.binom.cdf(count, 30, 0.95))
    assert count_interval(shares, rows) == tuple(stats.binom.ppf([0.025, 0.975], 30, 0.95))
    assert count_interval([], []) == (0, 0)
    assert count_p(0, [], []) == 1


def test_cells_that_share_a_run_agree_together() -> None:
    alone, shared = ([0.95] * 30, range(30)), ([0.95] * 30, [i // 6 for i in range(30)])
    assert count_interval(*shared)[0] < count_interval(*alone)[0]
    assert count_p(25, *shared) > 2 * count_p(25, *alone)
    assert combined_p([0.1] * 6, [0] * 6) > combined_p([0.1] * 6, range(6))
    assert combined_p([0.1] * 6, range(6)) == pytest.approx(stats.combine_pvalues([0.1] * 6).pvalue)
    assert combined_p([0.0], [0]) < 1e-100


def test_a_mean_difference_is_tested_by_rows() -> None:
    """Six cells of one row are one exchange, not six."""
    assert mean_difference_p([1.0] * 6, range(6)) == 2 / 2**6
    assert np.isnan(mean_difference_p([1.0] * 6, [0] * 6))
    assert np.isnan(mean_difference_p([1.0] * 30, [i % 5 for i in range(30)]))
    assert mean_difference_p([0.0] * 8, range(8)) == 1
    many = [1.0, *([0.5] * 19)]
    assert mean_difference_p(many, range(20)) == mean_difference_p(many, range(20)) < 0.001
    assert mean_difference_p([*many, *(-x for x in many)], range(40)) == 1


def tables_of_equal_truth(kind: str, count: int, rows: int = 8, cells: int = 5, seed: int = 3) -> np.ndarray:
    """Return how often each test rejects at 5 % of tables that measure the same thing twice.

    Runs of a row share a concat run: ratios are relative to it, and accuracies are read after as many updates.

    Returns:
        Shares of tables: fewer agree than the interval allows, more do, count_p, combined_p and mean_difference_p
        below 0.05.
    """
    random, runs = np.random.default_rng(seed), 5 if kind == "ratio" else 3
    names = np.repeat(np.arange(rows), cells)
    truth = random.uniform(0.4, 0.9, (rows, cells, 1))
    found = []
    for _ in range(count):
        concat, own = random.normal(size=(2, rows, 1, runs)), random.normal(size=(2, rows, cells, runs))
        values = np.exp(truth + 0.12 * (own - concat)) if kind == "ratio" else truth + 0.015 * (own + concat)
        p = stats.ttest_ind(*values, axis=-1, equal_var=False).pvalue.ravel()
        shares, agree = [agreement_share(runs, runs)] * len(names), int((p >= 0.05).sum())
        low, high = count_interval(shares, names)
        means = values.mean(-1)
        gaps = np.log(means[0] / means[1]) if kind == "ratio" else means[0] - means[1]
        tests = (count_p(agree, shares, names), combined_p(p, names), mean_difference_p(gaps.ravel(), names))
        found.append([agree < low, agree > high, *(one < 0.05 for one in tests)])
    return np.mean(found, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ratio", "accuracy"])
def test_tables_of_equal_truth_are_seldom_found_to_differ(kind: str) -> None:
    below, above, fewer, together, shift = tables_of_equal_truth(kind, 300)
    assert below + above <= 0.07
    assert max(fewer, together, shift) <= 0.08
    assert shift >= 0.02
