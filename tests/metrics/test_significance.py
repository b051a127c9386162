"""Permutation tests: exact p-values of small tables, uniform p-values by chance, and what `evaluate` makes of them."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import icy
from icy.core.errors import IcyError
from icy.core.register import register_metric
from icy.core.registry import registry
from icy.metrics import Score, Table, evaluate, permutation_test, topsim
from icy.metrics.score import compare_with_chance, draw_permutations
from tests.helpers import mark_others

TOYS: dict[str, tuple[Any, Any]] = {
    "two rows": ([[0], [1]], ["a", "b"]),
    "repeated meanings": ([[0, 0], [0, 0], [0, 1], [1, 1]], ["ab", "a", "b", "bb"]),
    "repeated messages": ([[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]], ["ac", "ac", "bc", "bd", "d"]),
    "compositional": ([[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bc", "bd"]),
    "ragged": ([[0, 1], [1, 2], [2, 0], [0, 0], [1, 1]], ["", "a", "aab", "ba", "bbbb"]),
}
SLOW = ("tre", "cbm", "residual_entropy")  # here scored on three rows, in all 6 orders


@pytest.mark.parametrize("toy", mark_others("slow", TOYS, lambda toy: toy == "ragged"))
@pytest.mark.parametrize(
    ("metric", "conventions"),
    [
        ("topsim", {}),
        pytest.param("topsim", {"correlation": "pearson", "message": "hamming"}, marks=pytest.mark.slow),
        pytest.param("topsim", {"pairs": "ordered", "normalise": "max"}, marks=pytest.mark.slow),
        ("posdis", {"constant": "zero"}),
        ("cbm", {}),
        ("residual_entropy", {}),
        ("tre", {}),
    ],
)
def test_exact_p_values_of_small_tables(toy: str, metric: str, conventions: dict[str, Any]) -> None:
    """All N! orders, each scored as a table of its own."""
    meanings, messages = TOYS[toy]
    if metric in SLOW:
        meanings, messages = meanings[:3], messages[:3]
    table = Table.of(meanings, messages)
    of_metric: Any = getattr(icy.metrics, metric)
    try:
        observed = of_metric(table, **conventions)
    except IcyError:
        return
    if observed.why:
        assert permutation_test(table, metric=metric, **conventions).why == observed.why
        return
    every = [
        of_metric(meanings, [messages[i] for i in order], **conventions).value
        for order in itertools.permutations(range(len(meanings)))
    ]
    greater = float(np.mean([value >= observed.value - 1e-12 for value in every]))
    less = float(np.mean([value <= observed.value + 1e-12 for value in every]))
    apart = [abs(value - np.mean(every)) for value in every]
    both = float(np.mean([far >= apart[0] - 1e-12 for far in apart]))
    better = less if metric in ("residual_entropy", "tre") else greater
    for alternative, p in (("greater", greater), ("less", less), ("two-sided", both), ("better", better)):
        test = permutation_test(meanings, messages, metric=metric, alternative=alternative, **conventions)
        assert (test.value, test.p, test.exact) == (observed.value, pytest.approx(p), True)
        assert (test.p_low, test.p_high, test.permutations) == (test.p, test.p, len(every))
    assert sorted(test.values) == pytest.approx(sorted(every), abs=1e-12)
    assert (test.mean, test.sd) == (pytest.approx(np.mean(every)), pytest.approx(np.std(every)))
    assert (test.low, test.high) == pytest.approx(tuple(np.quantile(every, [0.025, 0.975])))


def test_metrics_that_are_errors(forgetting: None) -> None:
    lower = [entry.name for entry in registry.entries("metric") if entry.lower_is_better]
    assert sorted(lower) == ["conflict_count", "residual_entropy", "tre"]
    register_metric("error", lower_is_better=True)(lambda meanings, messages=None: topsim(meanings, messages))
    table = Table.of([[0, 0], [0, 1], [1, 1]], [[0, 0], [0, 1], [1, 1]])
    test = permutation_test(table, metric="error")
    assert (test.alternative, test.p) == ("less", 1.0)


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_as_scipy(alternative: str) -> None:
    """SciPy enumerates the same orders."""
    meanings, messages = TOYS["ragged"]
    table = Table.of(meanings, messages)

    def of_order(order: Any) -> float:
        return topsim(replace(table, messages=table.messages[np.asarray(order).astype(int)])).value

    theirs = stats.permutation_test(
        (np.arange(5),), of_order, permutation_type="pairings", alternative=alternative, n_resamples=10**4
    )
    ours = permutation_test(table, alternative=alternative)
    assert (ours.p, ours.value) == (pytest.approx(theirs.pvalue), theirs.statistic)


@pytest.mark.slow
def test_the_p_value_of_drawn_permutations_is_that_of_a_mantel_test() -> None:
    """(B + 1) / (m + 1), as in vegan and scikit-bio, with ties counted; SciPy has the interval of B / m."""
    language = icy.make_language("hol", "2x3", 3, 2, 5)
    test = permutation_test(language, permutations=199, seed=4)
    table, (orders, exact) = Table.of(language), draw_permutations(9, 199, 4)
    values = np.array([topsim(replace(table, messages=table.messages[order])).value for order in orders])
    as_good = int((values >= topsim(language).value - 1e-12).sum())
    assert not exact
    assert test.values.tolist() == pytest.approx(values.tolist(), abs=1e-14)
    assert test.p == (as_good + 1) / 200
    interval = stats.binomtest(as_good, 199).proportion_ci(0.95, "exact")
    assert (test.p_low, test.p_high) == pytest.approx((interval.low, interval.high))
    assert (test.mean, test.sd) == (pytest.approx(values.mean()), pytest.approx(values.std(ddof=1)))


@pytest.mark.parametrize(("values", "p", "low", "high"), [([0.0] * 39, 1 / 40, 0, 0.0903), ([2.0] * 39, 1, 0.9097, 1)])
def test_the_ends_of_the_interval_of_p(values: list[float], p: float, low: float, high: float) -> None:
    test = compare_with_chance("x", 1.0, np.array(values), "greater", exact=False)
    assert (test.p, test.p_low, test.p_high) == pytest.approx((p, low, high), abs=1e-4)


def test_rounding_is_no_difference() -> None:
    values = np.array([0.1 + 0.2, 0.3, 0.3 - 1e-9])
    for observed in (0.3, 0.1 + 0.2):
        assert compare_with_chance("x", observed, values, "greater", exact=False).p == 3 / 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "tables"), [("topsim", 300), ("posdis", 150), ("hce", 150), ("residual_entropy", 100)]
)
def test_p_is_uniform_on_languages_without_structure(metric: str, tables: int) -> None:
    """Exactly so if ties are broken at random; the p-value counts all ties, and so is never too small."""
    random = np.random.default_rng(7)
    found, broken = [], []
    for _ in range(tables):
        meanings, messages = random.integers(4, size=(12, 2)), random.integers(6, size=(12, 3))
        test = permutation_test(meanings, messages, metric=metric, permutations=19)
        better = (test.values - test.value) * (-1 if metric == "residual_entropy" else 1)
        tied = int((np.abs(better) <= 1e-12).sum())
        found.append(test.p)
        broken.append(((better > 1e-12).sum() + random.random() * (tied + 1)) / 20)
        assert broken[-1] <= test.p
    assert stats.kstest(broken, "uniform").pvalue > 0.01
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(found) <= level + 1e-12) < level + 3 * math.sqrt(level * (1 - level) / tables)


def test_a_language_with_structure_has_the_smallest_p() -> None:
    test = permutation_test(icy.make_language("concat", "2x5", 4, 2, 1), permutations=99)
    assert (test.p, test.p_low) == (1 / 100, 0)
    assert test.low < test.mean < test.high < test.value
    assert test.mean == pytest.approx(0, abs=0.05)


def test_draws() -> None:
    orders, exact = draw_permutations(6, 719, 0)
    assert (orders.shape, exact) == ((719, 6), False)
    assert (np.sort(orders, 1) == np.arange(6)).all()
    assert (draw_permutations(6, 30, 0)[0] == orders[:30]).all()
    assert (draw_permutations(6, 30, 1)[0] != orders[:30]).any()
    every, exact = draw_permutations(6, 720, 0)
    assert (len({tuple(order) for order in every.tolist()}), exact) == (720, True)
    assert draw_permutations(1, 5, 0)[0].tolist() == [[0]]


def test_the_same_seed_gives_the_same_test() -> None:
    language = icy.make_language("rot", "2x4", 3, 2, 1)
    first, again, other = (permutation_test(language, permutations=50, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert (first.values == again.values).all()
    assert first.mean != other.mean
    threads = permutation_test(language, permutations=50, seed=1, workers=3)
    assert threads == first


def test_drawn_pairs_are_drawn_once() -> None:
    """The same pairs of rows for each order."""
    language = icy.make_language("rot", "2x4", 3, 2, 1)
    test = permutation_test(language, permutations=5, pairs=40)
    table = Table.of(language)
    for order, value in zip(draw_permutations(16, 5, 0)[0], test.values, strict=True):
        assert topsim(replace(table, messages=table.messages[order]), pairs=40).value == value


def test_undefined_values_say_why() -> None:
    meanings = [[0, 0], [0, 1], [1, 0]]
    test = permutation_test(meanings, ["a", "a", "a"])
    assert "equally far apart" in test.why
    assert math.isnan(test.value)
    assert math.isnan(test.p)
    assert test.permutations == 0
    row = evaluate(meanings, ["a", "a", "a"], metrics=["topsim", "posdis"], permutations=9)
    assert math.isnan(row["topsim_p"][0])
    assert row.attrs["scores"]["topsim"].by_chance.why == test.why


def test_a_metric_that_is_undefined_for_some_orders(forgetting: None) -> None:
    @register_metric("first_is_best", source="this test")
    def first_is_best(meanings: Any, messages: Any = None) -> Score:
        """Defined only where the first row keeps its message."""
        table = Table.of(meanings, messages)
        kept = int(table.messages[0, 0]) == 0
        return Score("first_is_best", 1.0 if kept else math.nan, len(table), why="" if kept else "it is another")

    meanings, messages = [[0], [1], [2], [3]], [[0], [1], [2], [3]]
    test = permutation_test(meanings, messages, metric="first_is_best")
    assert (test.permutations, test.p) == (6, 1)


def test_evaluate_has_a_test_of_each_metric() -> None:
    language = icy.make_language("rot", "2x2", 4, 2, 1)
    done: list[tuple[int, int]] = []
    row = evaluate(
        language, metrics=["topsim", "tre"], permutations=6, seed=3, progress=lambda *given: done.append(given)
    )
    assert done[-1] == (6, 6)
    for metric in ("topsim", "tre"):
        test = permutation_test(language, metric=metric, permutations=6, seed=3)
        assert row.attrs["scores"][metric].by_chance == test
        columns = [f"{metric}{end}" for end in ("", "_chance", "_chance_sd", "_chance_low", "_chance_high", "_p")]
        assert row[columns].values.tolist() == [[test.value, test.mean, test.sd, test.low, test.high, test.p]]
    assert "topsim_p" not in evaluate(language, metrics=["topsim"])
    again = evaluate(language, metrics=["topsim", "tre"], permutations=6, seed=3)
    assert again.attrs["scores"] == row.attrs["scores"]


def test_weights_are_repeated_rows() -> None:
    meanings, messages, weights = np.array([[0, 0], [0, 1], [1, 0]]), np.array([[1, 2], [1, 3], [2, 2]]), [1, 3, 2]
    weighted = replace(Table.of(meanings, messages), weights=np.array(weights))
    repeated = Table.of(meanings.repeat(weights, 0), messages.repeat(weights, 0))
    test, expected = (permutation_test(table, metric="posdis", permutations=50) for table in (weighted, repeated))
    assert (test.values == expected.values).all()
    with pytest.raises(IcyError, match="weights must be whole numbers"):
        permutation_test(replace(weighted, weights=np.array([1, 0.5, 2])))


def test_copies_of_rows_are_refused() -> None:
    table = Table.of([[0, 0], [1, 0], [1, 1]], ["a", "ab", "bb"])
    assert permutation_test(table.rows(np.array([2, 0, 1]))).p == permutation_test(table).p
    with pytest.raises(IcyError, match="copies drawn with replacement"):
        permutation_test(table.rows(np.array([0, 0, 1])))
