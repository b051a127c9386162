"""Several metrics at once, their conventions, errors over resampled rows, and `icy metrics`."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import icy
from icy.core.errors import IcyError, InvalidSettingError
from icy.core.register import register_metric
from icy.core.registry import registry
from icy.core.streams import stream
from icy.metrics import Score, Table, evaluate, hce, posdis, topsim
from icy.metrics.construction import SAME
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


# -- tables on which a formula is 0 / 0, or rests on one class ---------------------------------------------------------


RANDOM = np.random.default_rng(0)
MEANINGS, MESSAGES = RANDOM.integers(3, size=(20, 2)), RANDOM.integers(1, 4, size=(20, 2))
ALIKE_ROWS = np.zeros((20, 2), dtype=np.int64)
NAMES = [entry.name for entry in registry.match("all", "metric")]
WITHOUT_MEANINGS = {"message_entropy", "unique_messages"}
COMPARED = {"posdis", "bosdis", "modularity", "factor_vae", "dci"}  # one attribute with another
TABLES: dict[str, tuple[Any, Any, set[str]]] = {
    "one row": (MEANINGS[:1], MESSAGES[:1], set(NAMES) - WITHOUT_MEANINGS),
    "all rows alike": (MEANINGS[[0] * 20], MESSAGES[[0] * 20], set(NAMES) - WITHOUT_MEANINGS),
    "one meaning": (ALIKE_ROWS, MESSAGES, set(NAMES) - WITHOUT_MEANINGS),
    "one attribute": (MEANINGS[:, :1], MESSAGES, COMPARED),
    "one attribute that changes": (np.hstack([ALIKE_ROWS[:, :1], MEANINGS[:, 1:]]), MESSAGES, COMPARED),
    "one message": (MEANINGS, ALIKE_ROWS, {"topsim", "posdis", "bosdis", "factor_vae", "dci", "tre"}),
    "two attributes that change": (MEANINGS, MESSAGES, set()),
}
NO_INFORMATION = {
    **dict.fromkeys(("hce", "mig", "modularity", "ami", "mutual_information", "npmi", "sap", "message_entropy"), 0.0),
    "residual_entropy": 1.0,
    "unique_messages": 1.0,
}


@pytest.mark.parametrize("metric", NAMES)
@pytest.mark.parametrize("table", TABLES)
def test_undefined_with_a_reason(metric: str, table: str) -> None:
    meanings, messages, undefined = TABLES[table]
    score = registry.get(metric, "metric").load()(meanings, messages)
    assert math.isnan(score.value) == bool(score.why) == (metric in undefined)
    assert score.rows == len(meanings)
    if table == "one message" and metric in NO_INFORMATION:
        assert score.value == NO_INFORMATION[metric]


@pytest.mark.parametrize("table", [name for name in TABLES if name.startswith(("one row", "all rows", "one meaning"))])
def test_the_same_reason_in_every_metric(table: str) -> None:
    meanings, messages, undefined = TABLES[table]
    row = evaluate(meanings, messages, metrics=sorted(undefined))
    assert {row[f"{name}_why"][0] for name in undefined} == {"no attribute ever changes"}


@pytest.mark.parametrize("metric", NAMES)
def test_a_table_without_meanings(metric: str) -> None:
    table = Table(np.zeros((20, 0), dtype=np.int64), MESSAGES, vocab_size=4)
    measured = registry.get(metric, "metric").load()
    if metric in WITHOUT_MEANINGS:
        assert measured(table) == measured(MEANINGS, MESSAGES)
        return
    with pytest.raises(InvalidSettingError, match="compares messages with meanings, but this table has no meanings"):
        measured(table)


def test_a_table_without_meanings_has_what_needs_none() -> None:
    table = Table(np.zeros((20, 0), dtype=np.int64), MESSAGES, vocab_size=4)
    row = evaluate(table, metrics=["message_entropy", "topsim"])
    assert (row["attributes"][0], row["message_entropy_why"][0]) == (0, "")
    assert "has no meanings" in row["topsim_why"][0]
    for conventions in ({"meaning": "euclidean"}, {"meaning": "cosine"}, {"meaning": lambda a, b: 1.0}):
        with pytest.raises(InvalidSettingError, match="has no meanings"):
            evaluate(table, metrics="topsim", conventions={"topsim": conventions})


# -- values that the sizes of a table determine or bound, and the reasons for them -------------------------------------


GREEDY = {"residual_entropy": {"search": "greedy"}}
METRICS = [entry.name for entry in registry.entries("metric") if entry.origin.startswith("icy")]
GRID = [[a, b] for a in range(2) for b in range(3)]


def scored(meanings: Any, messages: Any, metrics: Any = METRICS, **given: Any) -> dict[str, Score]:
    chosen = {name: value for name, value in GREEDY.items() if name in metrics}
    messages = list(messages) if isinstance(messages, str) else messages
    found: dict[str, Score] = evaluate(meanings, messages, metrics=metrics, conventions=chosen, **given).attrs["scores"]
    return found


@pytest.mark.parametrize(
    ("messages", "metric", "value", "note"),
    [
        (["a"] * 6, "hce", 0.0, f"all messages are alike: {SAME}"),
        (["a"] * 6, "residual_entropy", 1.0, f"all messages are alike: {SAME}"),
        (["a"] * 6, "npmi", 0.0, f"all messages are alike: {SAME}"),
        ("abcdef", "ami", 1.0, "every label and every message occurs once: 1 by convention"),
        ("aabbcc", "ami", 0.0, "every label occurs once"),
        ("abcdef", "mutual_information", math.log2(6), "no message occurs twice"),
        ("abcdef", "posdis", math.log2(1.5) / math.log2(6), "every position that changes has a different token"),
        ("aabbcc", "hce", None, "fewer positions (1) than attributes (2) change, and each encodes one: at most 0.5"),
        ("aabbcc", "residual_entropy", None, "at least 0.5"),
        ("aabbcc", "factor_vae", None, "only one position changes and wins every vote"),
        (["ax", "ay", "az", "bx", "by", "bz"], "context_independence", 0.25, "1 / A^2 = 0.25"),
        (["ax", "ay", "az", "bx", "by", "bz"], "sap", 1 - (1 / 2 + 1 / 3) / 2, "an ideal language has 0.583"),
        (["ax", "ay", "az", "bx", "by", "bz"], "posdis", 1.0, ""),
        (["ax", "ay", "az", "bx", "by", "bz"], "topsim", None, ""),
    ],
)  # fmt: skip
def test_the_reason_of_a_value(messages: Any, metric: str, value: float | None, note: str) -> None:
    score = scored(GRID, list(messages), [metric])[metric]
    assert score.note.startswith(note) if not note else note in score.note
    assert bool(score.note) == bool(note)
    if value is not None:
        assert score.value == pytest.approx(value)


def test_one_attribute_and_no_recurring_words() -> None:
    assert "only one attribute changes" in scored([[0], [1], [2]], ["ab", "ca", "bb"], ["tre"])["tre"].note
    assert SAME in scored(GRID, "abcdef", ["cbm"])["cbm"].note
    assert not scored(GRID, ["ax", "ay", "az", "bx", "by", "bz"], ["cbm"])["cbm"].note


@pytest.mark.parametrize("kind", range(4))
def test_what_is_the_same_for_any_meanings_is_so_in_another_order(kind: int) -> None:
    draws = np.random.default_rng(kind)
    for rows in (4, 5, 7):
        meanings, shape = draws.integers(3, size=(rows, 2)), (rows, 2)
        if kind == 0:
            meanings = np.stack([draws.permutation(rows) for _ in range(2)], 1)
        messages = {
            0: draws.integers(2, size=shape),
            1: np.zeros(shape, int),
            2: np.stack([draws.permutation(rows) for _ in range(2)], 1),
            3: np.arange(rows * 2).reshape(shape),
        }[kind]
        given, permuted = scored(meanings, messages), scored(meanings, messages[draws.permutation(rows)])
        for name, score in given.items():
            if score.why:
                continue
            bound = float(score.note.split()[-1]) if re.search("at (least|most) ", score.note) else score.value
            assert score.value >= bound - 1e-3 if "at least" in score.note else score.value <= bound + 1e-3
            if SAME in score.note or "for any" in score.note or "whatever" in score.note:
                assert permuted[name].value == pytest.approx(score.value, abs=0.02 if name == "factor_vae" else 1e-9)


def test_permutations_find_it_in_metrics_without_a_rule() -> None:
    score = scored(GRID, "aabbcc", ["message_entropy"], permutations=20)["message_entropy"]
    assert score.note == "the value is the same in every permutation"
    assert scored(GRID, ["ax", "ay", "az", "bx", "by", "bz"], ["topsim"], permutations=20)["topsim"].note == ""


def test_undefined_values_keep_their_own_reason() -> None:
    score = scored([[0, 0]] * 3, "abc", ["posdis"])["posdis"]
    assert (score.why, score.note) == ("no attribute ever changes", "")


def test_rows_have_the_reason() -> None:
    row = evaluate(icy.make_language("rot", "2x3", 4, 2), metrics=["ami", "posdis"])
    assert row["posdis_note"][0] == ""
    assert "every message occurs once" in row["ami_note"][0]
