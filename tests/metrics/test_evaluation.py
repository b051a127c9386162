"""Several metrics at once, their conventions, errors over resampled rows, and `icy metrics`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import icy
from icy.core.errors import IcyError
from icy.core.register import register_metric
from icy.core.streams import stream
from icy.metrics import Score, Table, evaluate, hce, posdis, topsim
from icy.metrics.evaluation import FEW_ROWS, values_by_chance

FAST = ["topsim", "posdis", "hce"]
OF_ANY_LENGTH = [[i // 3, i % 3] for i in range(9)], ["a", "ab", "acc", "b", "bb", "bca", "cc", "cab", "c"]


@pytest.fixture(scope="module")
def language() -> icy.Language:
    return icy.make_language("shufdet", "2x4", 3, 3, 1)


def test_one_row_with_a_column_for_every_metric(language: icy.Language) -> None:
    row = evaluate(language, metrics=FAST)
    assert row.shape[0] == 1
    assert row["topsim"][0] == topsim(language).value
    assert row["posdis"][0] == posdis(language).value
    assert row[["name", "rows", "attributes", "length", "vocab_size"]].values.tolist() == [["shufdet", 16, 2, 6, 3]]
    assert list(row.attrs["scores"]) == FAST
    assert not [column for column in row if str(column).endswith("_error")]
    assert "name" in evaluate(language.space.all(), language.messages, metrics="*dis")


def test_conventions_reach_the_metric(language: icy.Language) -> None:
    row = evaluate(language, metrics=FAST, conventions={"topsim": {"message": "hamming", "pairs": 50}})
    assert row["topsim"][0] == topsim(language, message="hamming", pairs=50).value
    assert row["topsim_error"][0] == topsim(language, message="hamming", pairs=50).error


def test_a_refused_metric_does_not_stop_others(language: icy.Language) -> None:
    meanings = language.space.all() + 0.5
    row = evaluate(meanings, language.messages, metrics=FAST, conventions={"topsim": {"meaning": "euclidean"}})
    assert math.isfinite(row["topsim"][0])
    assert math.isnan(row["posdis"][0])
    assert "discrete attributes" in row.attrs["scores"]["posdis"].why
    with pytest.raises(IcyError, match="discrete attributes"):
        evaluate(meanings, language.messages, metrics="posdis")


def test_bootstrap_errors(language: icy.Language) -> None:
    first, again = (evaluate(language, metrics=FAST, errors="bootstrap", resamples=20, seed=3) for _ in range(2))
    assert first.equals(again)
    draws = icy.languages.table.Table.of(language)
    from icy.core.streams import stream

    random = stream(3, "bootstrap")
    values = [topsim(draws.rows(random.integers(16, size=16))).value for _ in range(20)]
    assert first["topsim_error"][0] == pytest.approx(np.std(values, ddof=1))
    assert first.attrs["scores"]["topsim"].error_of == "20 bootstrap samples of the rows"


def test_a_metric_of_ones_own(language: icy.Language, forgetting: None) -> None:
    @register_metric("mean_length", source="this test")
    def mean_length(meanings: Any, messages: Any = None, *, eos: int | None = None) -> Score:
        """Mean length of a message."""
        table = Table.of(meanings, messages, eos=eos)
        return Score("mean_length", float(table.lengths.mean()), len(table), {"eos": eos})

    assert "mean_length" in icy.list_metrics("mean*")
    assert evaluate(language, metrics=["mean_length", "hce"])["mean_length"][0] == 6


def test_by_chance_is_the_value_of_messages_dealt_out_at_random() -> None:
    table = Table.of(icy.make_language("hol", "3x6", 4, 4, 123))  # 216 rows: of one order
    found = values_by_chance(table, ("topsim", "hce", "posdis"))
    dealt = replace(table, messages=table.messages[stream(0, "values by chance").permutation(len(table))])
    assert found == {"hce": hce(dealt).value}  # topsim has no such bias, and posdis hardly any at this size
    assert found["hce"] == pytest.approx(hce(table).value, abs=0.1)  # hol is such a language


def test_by_chance_is_a_mean_over_orders_on_very_few_rows_and_not_told_of_many() -> None:
    small = Table.of(icy.make_language("concat", "2x3", 4, 2, 123))
    found = values_by_chance(small, ("hce", "residual_entropy"))
    assert found["hce"] > 0.2
    assert found["residual_entropy"] < 0.8
    assert values_by_chance(small, ("hce",)) == {"hce": found["hce"]}
    large = Table.of(icy.make_language("concat", "5x7", 4, 4, 123))
    assert len(large) > FEW_ROWS
    assert values_by_chance(large, ("hce",)) == {}


@pytest.mark.parametrize("metric", ["cbm", "context_independence", "topsim", "posdis"])
def test_rows_with_equal_scores_can_be_joined(metric: str, language: icy.Language) -> None:
    """pandas compares `attrs`, where scores hold tables."""
    import pandas as pd

    one, same = (evaluate(language, metrics=metric) for _ in range(2))
    other = evaluate(icy.make_language("rot", "2x4", 3, 3, 2), metrics=metric)
    assert one.attrs["scores"] == same.attrs["scores"]
    assert one.attrs["scores"] != other.attrs["scores"]
    assert pd.concat([one, same, other])[metric].tolist() == [one[metric][0], same[metric][0], other[metric][0]]
    assert pd.concat([one, same]).attrs == one.attrs


def test_scores_are_equal_if_all_of_them_is() -> None:
    import torch

    details = {"list": [1.0, math.nan], "array": np.arange(3), "tensor": torch.arange(3)}
    score = Score("x", 1.0, 1, {"eos": 0}, details)
    assert score == Score("x", 1.0, 1, {"eos": 0}, {**details, "array": np.arange(3), "tensor": torch.arange(3)})
    assert score != Score("x", 1.0, 1, {"eos": 0}, {**details, "array": np.arange(4)})
    assert score != Score("x", 1.0, 1, {"eos": 0}, {**details, "tensor": torch.arange(4)})
    assert score != Score("x", 1.0, 1, {"eos": 1}, details)
    assert score != 1.0
    assert Score("x", math.nan, 1, why="no") == Score("x", math.nan, 1, why="no")


@pytest.mark.parametrize(
    ("metric", "one", "other", "value"),
    [("topsim", "normalise", "normalize", "max"), ("hce", "normalised", "normalized", False),
     ("residual_entropy", "normalised", "normalized", False), ("mutual_information", "normalised", "normalized", True),
     ("tre", "optimizer", "optimiser", "rmsprop")],
)  # fmt: skip
def test_conventions_have_british_and_american_names(metric: str, one: str, other: str, value: object) -> None:
    table = OF_ANY_LENGTH
    more = {"distance": "l2", "steps": 2, "restarts": 1} if metric == "tre" else {}
    expected, usual = getattr(icy.metrics, metric)(*table, **{one: value}, **more), getattr(icy.metrics, metric)(*table)
    assert expected.value != usual.value
    assert getattr(icy.metrics, metric)(*table, **{other: value}, **more) == expected
    row = icy.metrics.evaluate(*table, metrics=[metric], conventions={metric: {other: value, **more}}).iloc[0]
    assert row[metric] == expected.value
    assert f'"{one}"' in row["conventions"]


def test_permutations_of_topsim_accept_both_spellings() -> None:
    table = OF_ANY_LENGTH
    british, american = (icy.metrics.permutation_test(*table, **{name: "max"}) for name in ("normalise", "normalize"))
    assert british == american
