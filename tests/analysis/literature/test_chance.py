"""Agreement by chance, compared with simulations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from icy.analysis.literature.chance import agreement_share, combined_p, count_interval, count_p, mean_difference_p


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


def tables_of_equal_truth(kind: str, count: int, concat: float = 1.0, spread: float = 1.0) -> np.ndarray:
    """Return how often each test rejects at 5 % of tables that measure the same thing twice, of 8 rows of 5 cells.

    Runs of a row share a concat run: ratios are relative to it, and accuracies are read after as many updates.

    Args:
        kind: "ratio", of 5 runs here and there, or "accuracy", of 3.
        count: number of tables.
        concat: how much concat varies, relative to the other grammars.
        spread: how much the runs of one table vary, relative to those of the other.

    Returns:
        Shares of tables: count outside its interval; count_p, combined_p and mean_difference_p below 0.05.
    """
    random, runs, rows, cells = np.random.default_rng(3), 5 if kind == "ratio" else 3, 8, 5
    names = np.repeat(np.arange(rows), cells)
    truth = random.uniform(0.4, 0.9, (rows, cells, 1))
    shares = [agreement_share(runs, runs)] * len(names)
    low, high = count_interval(shares, names)
    found = []
    for _ in range(count):
        shared, own = concat * random.normal(size=(2, rows, 1, runs)), random.normal(size=(2, rows, cells, runs))
        noise = (own - shared) * np.array([1, spread])[:, None, None, None]
        values = np.exp(truth + 0.12 * noise) if kind == "ratio" else truth + 0.015 * noise
        p = stats.ttest_ind(*values, axis=-1, equal_var=False).pvalue.ravel()
        agree, means = int((p >= 0.05).sum()), values.mean(-1)
        gaps = np.log(means[0] / means[1]) if kind == "ratio" else means[0] - means[1]
        tests = (count_p(agree, shares, names), combined_p(p, names), mean_difference_p(gaps.ravel(), names))
        found.append([not low <= agree <= high, *(one < 0.05 for one in tests)])
    return np.mean(found, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "concat", "spread", "most"),
    [("ratio", 1, 1, 0.07), ("accuracy", 1, 1, 0.08), ("ratio", 2, 1, 0.09), ("accuracy", 1, 3, 0.1)],
)
def test_tables_with_equal_means_rarely_differ(kind: str, concat: float, spread: float, most: float) -> None:
    outside, fewer, together, shift = tables_of_equal_truth(kind, 200, concat, spread)
    assert outside <= 0.07
    assert max(fewer, together, shift) <= most
    assert shift >= 0.02
