"""Tables on which a formula is 0 / 0, or rests on one class: undefined, with a reason, in every metric alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from icy.core.errors import InvalidSettingError
from icy.core.registry import registry
from icy.metrics import Table, evaluate

RANDOM = np.random.default_rng(0)
MEANINGS, MESSAGES = RANDOM.integers(3, size=(20, 2)), RANDOM.integers(1, 4, size=(20, 2))
SAME = np.zeros((20, 2), dtype=np.int64)
NAMES = [entry.name for entry in registry.match("all", "metric")]
WITHOUT_MEANINGS = {"message_entropy", "unique_messages"}
COMPARED = {"posdis", "bosdis", "modularity", "factor_vae", "dci"}  # one attribute with another
TABLES: dict[str, tuple[Any, Any, set[str]]] = {
    "one row": (MEANINGS[:1], MESSAGES[:1], set(NAMES) - WITHOUT_MEANINGS),
    "all rows alike": (MEANINGS[[0] * 20], MESSAGES[[0] * 20], set(NAMES) - WITHOUT_MEANINGS),
    "one meaning": (SAME, MESSAGES, set(NAMES) - WITHOUT_MEANINGS),
    "one attribute": (MEANINGS[:, :1], MESSAGES, COMPARED),
    "one attribute that changes": (np.hstack([SAME[:, :1], MEANINGS[:, 1:]]), MESSAGES, COMPARED),
    "one message": (MEANINGS, SAME, {"topsim", "posdis", "bosdis", "factor_vae", "dci", "tre"}),
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
