"""Weights of rows: every metric scores rows with whole weights exactly as it scores the same rows repeated."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icy import metrics
from icy.core.errors import IcyError, InvalidSettingError
from icy.core.registry import Entry, registry
from icy.metrics import Score, Table
from icy.metrics.evaluation import evaluate, score_all, values_by_chance
from tests.helpers import mark_others
from tests.properties.helpers import Rows, tables

METRICS = [entry.name for entry in registry.match("all", "metric") if entry.weighted]
FEW: dict[str, dict[str, Any]] = {"factor_vae": {"training_votes": 40, "test_votes": 40, "batch_size": 4}}


def unlike(x: Any, y: Any) -> float:
    """A distance of the user's own, of meanings and of messages."""
    return float(abs(len(x) - len(y)) + (x[: len(y)] != y[: len(x)]).sum() + 0.1 * abs(float(x.sum() - y.sum())))


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in METRICS),
    ("topsim", {"message": "hamming", "correlation": "pearson"}),
    ("topsim", {"meaning": "euclidean", "correlation": "pearson", "normalise": "mean"}),
    ("topsim", {"pairs": "ordered", "padded": True, "normalise": "max"}),
    ("topsim", {"meaning": unlike}),
    ("topsim", {"message": "jaccard"}),
    ("topsim", {"message": "cosine", "pairs": "ordered"}),
    ("topsim", {"message": unlike, "correlation": "pearson", "pairs": "ordered"}),
    ("topsim", {"pairs": 20}),
    ("topsim", {"pairs": "published"}),
    ("posdis", {"constant": "zero"}),
    ("bosdis", {"constant": "zero", "ignore": 0}),
    ("hce", {"normalised": False}),
    ("residual_entropy", {"search": "greedy"}),
    ("residual_entropy", {"search": "resnick"}),
    ("context_independence", {"alignment": "em"}),
    ("context_independence", {"chosen_by": "concept_given_token", "ties": "lowest", "smoothing": 0.5}),
    ("cbm", {"words": "positions", "repeats": "once"}),
    ("cbm", {"concepts": "items", "unmatched": "assigned"}),
    ("tre", {"composition": "permutation"}),
    ("modularity", {"dead": "skip"}),
    ("ami", {"average": "arithmetic", "attribute": 0}),
    ("ami", {"average": "min"}),
]
SUMMED_IN_ANOTHER_ORDER = {"tre": 1e-7, "topsim": 1e-12}  # a linear program ends within its tolerance


def counts(rows: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 4), min_size=rows, max_size=rows).filter(any)


def both(table: Rows, weights: list[int]) -> tuple[Table, Table]:
    """The table with weights, and the table of repeated rows."""
    meanings, messages = ([row for row, n in zip(rows, weights, strict=True) for _ in range(n)] for rows in table)
    return Table.of(*table, weights=weights, one_hot="no"), Table.of(meanings, messages, one_hot="no")


def scored(name: str, table: Table, conventions: dict[str, Any]) -> Score | str:
    """The score of a metric, or the sentence with which it refuses the table."""
    try:
        return score_all(table, name, {name: {**FEW.get(name, {}), **conventions}})[name]
    except IcyError as error:
        return str(error)


def score_of(name: str, table: Table, conventions: dict[str, Any]) -> Score:
    found = scored(name, table, conventions)
    assert isinstance(found, Score)
    return found


@pytest.mark.parametrize(
    ("name", "conventions"),
    mark_others("slow", VARIANTS, lambda variant: not variant[1]),
    ids=[f"{name} {' '.join(given)}".strip() for name, given in VARIANTS],
)
@settings(deadline=None, max_examples=8)
@given(data=st.data())
def test_whole_weights_are_repeated_rows(name: str, conventions: dict[str, Any], data: st.DataObject) -> None:
    table = data.draw(tables())
    weighted, repeated = both(table, data.draw(counts(len(table[0]))))
    found, expected = scored(name, weighted, conventions), scored(name, repeated, conventions)
    assert isinstance(found, Score) == isinstance(expected, Score)
    if isinstance(found, Score) and isinstance(expected, Score):
        tolerance = SUMMED_IN_ANOTHER_ORDER.get(name, 0.0)
        assert found.value == pytest.approx(expected.value, abs=tolerance, rel=0, nan_ok=True)
        assert found.why == expected.why
        assert (found.error is None) == (expected.error is None)
        assert dict(found.conventions) == dict(expected.conventions)
        assert found.rows == len(weighted)
        if name in ("topsim", "cbm"):
            numbers = {key for key, value in expected.details.items() if isinstance(value, (int, float))}
            assert {key: found.details[key] for key in numbers} == pytest.approx(
                {key: expected.details[key] for key in numbers}, abs=1e-12
            )


def random_table(seed: int, rows: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Meanings, messages that are half composition and half noise, and weights."""
    random = np.random.default_rng(seed)
    meanings = random.integers(3, size=(rows, 2))
    messages = np.concatenate([meanings + np.array([1, 4]), random.integers(5, size=(rows, 1))], 1)
    messages[:, 1] = np.where(random.random(rows) < 0.5, messages[:, 1], 4)
    return meanings, messages, random.integers(1, 6, size=rows)


@pytest.mark.parametrize("name", METRICS)
def test_weights_of_one_are_no_weights(name: str) -> None:
    meanings, messages, _ = random_table(1)
    table = Table.of(meanings, messages, weights=np.ones(len(meanings)))
    assert table.weights is None
    assert scored(name, table, {}) == scored(name, Table.of(meanings, messages), {})


@pytest.mark.parametrize("name", METRICS)
def test_weights_change_the_value(name: str) -> None:
    meanings, messages, weights = random_table(2)
    found, without = (score_of(name, Table.of(meanings, messages, weights=one), {}) for one in (weights, None))
    assert found.value != without.value or name == "factor_vae"


SCALED = [
    *(("topsim", {"pairs": "ordered", "correlation": one}) for one in ("spearman", "pearson")),
    *(("topsim", {"pairs": "ordered", "correlation": one, "meaning": unlike}) for one in ("spearman", "pearson")),
    *((name, {}) for name in METRICS if name not in ("topsim", "ami", "cbm")),
    ("tre", {"composition": "permutation"}),
    ("residual_entropy", {"search": "greedy"}),
    ("context_independence", {"alignment": "em"}),
]


@pytest.mark.parametrize(("name", "conventions"), SCALED)
@pytest.mark.parametrize("scale", [1 / 7, 1e-9])
def test_weights_with_fractions_are_shares(name: str, conventions: dict[str, Any], scale: float) -> None:
    """Where weights may have fractions, the value does not depend on their scale."""
    meanings, messages, weights = random_table(3)
    whole, shares = (Table.of(meanings, messages, weights=one) for one in (weights, weights * scale))
    found, expected = score_of(name, shares, conventions), score_of(name, whole, conventions)
    assert found.value == pytest.approx(expected.value, abs=1e-9)


def test_topsim_of_counts_by_hand() -> None:
    """Two rows of weight 2 and one of weight 1 make ten pairs, two of them at distance 0."""
    table = Table.of([[0, 0], [0, 1], [1, 1]], ["ab", "cb", "dd"], weights=[2, 2, 1])
    score = metrics.topsim(table, correlation="pearson")
    meanings, said = [0, 0, 1, 1, 1, 1, 2, 2, 1, 1], [0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert score.details["pairs"] == 10
    assert score.rows == 3
    assert score.value == pytest.approx(np.corrcoef(meanings, said)[0, 1], abs=1e-12)


@pytest.mark.parametrize("correlation", ["spearman", "pearson"])
@pytest.mark.parametrize("distances", [{}, {"meaning": unlike}])
def test_rows_may_be_too_many_to_repeat(correlation: str, distances: dict[str, Any]) -> None:
    """A correlation over pairs of 10^14 rows: those of copies of one row hardly differ from w^2 / 2."""
    meanings, messages, weights = random_table(4)
    table = Table.of(meanings, messages, weights=weights * 10**12)
    found, few = (
        metrics.topsim(one, correlation=correlation, pairs=pairs, **distances)
        for one, pairs in ((table, "all"), (Table.of(meanings, messages, weights=weights), "ordered"))
    )
    assert found.value == pytest.approx(few.value, abs=1e-9)
    for name in ("posdis", "mig", "context_independence", "factor_vae"):
        one, other = (score_of(name, Table.of(meanings, messages, weights=w), {}) for w in (weights, weights * 10**12))
        assert one.value == pytest.approx(other.value, abs=1e-9)


@pytest.mark.parametrize("name", ["ami", "topsim"])
def test_repeated_rows_need_memory(name: str) -> None:
    table = Table.of([[0, 0], [0, 1], [1, 0]], ["ac", "ad", "bc"], weights=[2**50, 1, 1])
    with pytest.raises(InvalidSettingError, match="1125899906842626 repeated rows needs about"):
        score_all(table, name, {"topsim": {"pairs": 10}} if name == "topsim" else {})


def test_cbm_refuses_weights_that_it_cannot_compare_exactly() -> None:
    table = Table.of([[0, 0], [0, 1], [1, 0]], ["ac", "ad", "bc"], weights=[10**10, 1, 1])
    with pytest.raises(InvalidSettingError, match="too often for concept best matching to be exact; divide"):
        metrics.cbm(table)


@pytest.mark.parametrize("name", ["topsim", "posdis", "factor_vae", "tre"])
def test_drawn_rows_keep_their_weights(name: str) -> None:
    """As the bootstrap draws them: in topsim a copy makes no pair with its own copies."""
    meanings, messages, weights = random_table(5, rows=12)
    which = np.random.default_rng(0).integers(12, size=12)
    table = Table.of(meanings, messages, weights=weights).rows(which)
    assert table.weights is not None
    assert table.weights.tolist() == weights[which].tolist()
    repeated = table.repeated()
    assert repeated.drawn_from is not None
    assert len(np.unique(repeated.drawn_from)) == weights[np.unique(which)].sum()
    for conventions in ({}, {"meaning": unlike}, {"pairs": "ordered"}) if name == "topsim" else ({},):
        found, expected = score_of(name, table, conventions), score_of(name, repeated, conventions)
        assert found.value == pytest.approx(expected.value, abs=1e-7 if name == "tre" else 1e-12)


@pytest.mark.parametrize("distances", [{}, {"meaning": "euclidean", "message": unlike}])
def test_the_bootstrap_draws_weighted_rows(distances: dict[str, Any]) -> None:
    meanings, messages, weights = random_table(6)
    row = evaluate(
        Table.of(meanings, messages, weights=weights / 7),
        metrics=["posdis", "topsim"], conventions={"topsim": {"pairs": "ordered", **distances}}, errors="bootstrap",
        resamples=20,
    )  # fmt: skip
    assert row["rows"][0] == 40
    assert 0 < row["posdis_error"][0] < 0.3
    assert 0 < row["topsim_error"][0] < 0.3


def test_tre_draws_rows_with_their_weights() -> None:
    meanings, messages, weights = random_table(7, rows=60)
    table = Table.of(meanings, messages, weights=weights)
    whole = metrics.tre(table)
    draws = [metrics.tre(table, rows=50, seed=seed) for seed in range(6)]
    assert whole.error is None
    assert all(draw.error is not None and 0 < draw.error < 0.3 for draw in draws)
    assert np.mean([draw.value for draw in draws]) == pytest.approx(whole.value, abs=0.15)  # few rows are overfitted
    repeated = table.repeated()
    assert whole.value == pytest.approx(metrics.tre(repeated, rows=len(repeated)).value, abs=1e-7)
    alike = Table.of(meanings, messages, weights=np.full(60, 3))
    one, other = (metrics.tre(some, rows=30) for some in (alike, Table.of(meanings, messages)))
    assert (one.value, one.error) == (pytest.approx(other.value, abs=1e-7), pytest.approx(other.error, abs=1e-7))


def additive(atoms: Any) -> Any:
    return atoms.sum(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "conventions",
    [
        {"composition": "linear", "steps": 60, "restarts": 2},
        {"composition": additive, "distance": "l2", "steps": 60, "restarts": 2},
        {"preset": "published"},
    ],
)
def test_trained_reconstructions(conventions: dict[str, Any]) -> None:
    meanings, messages, weights = random_table(8, rows=15)
    table = Table.of(meanings, messages, weights=weights)
    found, expected, without = (
        metrics.tre(some, **conventions) for some in (table, table.repeated(), Table.of(meanings, messages))
    )
    assert found.value == pytest.approx(expected.value, abs=0.01)
    assert abs(without.value - expected.value) > 0.02


@settings(deadline=None, max_examples=4)
@given(data=st.data())
def test_tables_of_metrics(data: st.DataObject) -> None:
    table = data.draw(tables())
    weighted, repeated = both(table, data.draw(counts(len(table[0]))))
    pd.testing.assert_frame_equal(metrics.information_table(weighted), metrics.information_table(repeated))
    assert values_by_chance(weighted, METRICS[1:5]) == values_by_chance(repeated, METRICS[1:5])


def test_concept_best_matching_by_sample_size() -> None:
    meanings, messages, weights = random_table(9)
    table = Table.of(meanings, messages, weights=weights)
    found, expected = (metrics.cbm_by_sample_size(some, segment=20) for some in (table, table.repeated()))
    pd.testing.assert_frame_equal(found, expected)


def test_no_value_by_chance_of_shares() -> None:
    meanings, messages, weights = random_table(10, rows=10)
    assert values_by_chance(Table.of(meanings, messages, weights=weights), METRICS)
    assert values_by_chance(Table.of(meanings, messages, weights=weights / 7), METRICS) == {}


def distinct(meanings: Any, messages: Any = None) -> Score:
    """A metric that does not know of weights."""
    table = Table.of(meanings, messages)
    return Score("distinct", len(np.unique(table.messages, axis=0)) / len(table), len(table))


def test_a_metric_that_does_not_read_weights_gets_repeated_rows() -> None:
    given = [[0, 0], [0, 1], [1, 0]], ["ac", "ad", "bc"]
    with registry.holding(Entry("metric", "distinct", distinct, "", "", origin=__name__)):
        (score,) = score_all(Table.of(*given, weights=[4, 1, 1]), "distinct", {}).values()
        assert (score.value, score.rows) == (0.5, 3)
        said = "distinct counts rows, so weights must be whole numbers, but one is 0.5"
        with pytest.raises(InvalidSettingError, match=said):
            score_all(Table.of(*given, weights=[4, 0.5, 1]), "distinct", {})
        row = evaluate(Table.of(*given, weights=[4, 0.5, 1]), metrics=["distinct", "posdis"])
        assert math.isnan(row["distinct"][0])
        assert math.isfinite(row["posdis"][0])


FORMS: dict[str, Callable[[list[float]], Any]] = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "of 32 bits": lambda weights: np.array(weights, dtype=np.float32),
    "series": lambda weights: pd.Series(weights, index=range(5, 5 + len(weights))),
    "extension": lambda weights: pd.Series(weights, dtype="Float64"),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_weights(form: str) -> None:
    table = Table.of([[0], [1], [2]], ["a", "b", "c"], weights=FORMS[form]([2, 0, 3]))
    assert table.weights is not None
    assert (table.weights.tolist(), table.weights.dtype) == ([2, 3], np.int64)
    assert table.total_weight == 5
    shares = Table.of([[0], [1], [2]], ["a", "b", "c"], weights=FORMS[form]([0.5, 0, 0.25]))
    assert shares.weights is not None
    assert shares.weights.tolist() == [0.5, 0.25]


@settings(deadline=None, max_examples=40)
@given(table=tables(), data=st.data(), named=st.booleans())
def test_rows_of_weight_0_are_no_rows(table: Rows, data: st.DataObject, named: bool) -> None:
    """Nothing of them is left: no token, no length, no value."""
    if named:
        table = (table[0], [[f"t{token}" for token in message] for message in table[1]])  # type: ignore[misc]
    weights = data.draw(st.lists(st.integers(0, 1), min_size=len(table[0]), max_size=len(table[0])).filter(any))
    found, expected = both(table, weights)
    assert found.weights is None
    assert found.messages.tolist() == expected.messages.tolist()
    assert (found.token_names, found.vocab_size, found.drawn_from) == (expected.token_names, expected.vocab_size, None)
    assert [f.tolist() for f in found.factors] == [f.tolist() for f in expected.factors]


def test_a_table_keeps_its_weights() -> None:
    table = Table.of([[0], [1], [2]], ["ax", "bx", "cx"], weights=[2, 3, 4])
    for same in (Table.of(table), Table.of(table, eos="x")):
        assert same.weights is not None
        assert same.weights.tolist() == [2, 3, 4]
    again = Table.of(table, weights=[1, 0, 0.5])
    assert again.weights is not None
    assert again.weights.tolist() == [1, 0.5]


@pytest.mark.parametrize("name", ["npmi", "message_entropy", "unique_messages", "mutual_information", "sap", "dci"])
def test_metrics_that_count_rows_repeat_them_wherever_they_are_called(name: str) -> None:
    meanings, messages, weights = random_table(5)
    metric = getattr(metrics, name)
    found = metric(Table.of(meanings, messages, weights=weights))
    expected = metric(meanings.repeat(weights, 0), messages.repeat(weights, 0))
    assert (found.value, found.rows) == (expected.value, len(meanings))
    assert found.value != metric(meanings, messages).value or name == "unique_messages"
    with pytest.raises(InvalidSettingError, match="weights must be whole numbers"):
        metric(Table.of(meanings, messages, weights=weights / 2))
