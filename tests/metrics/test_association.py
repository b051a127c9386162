"""NPMI of tokens and concepts, against its formula pair by pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icy.core.errors import UnknownNameError
from icy.metrics import npmi


def by_hand(units: list[set[Any]], concepts: list[set[Any]]) -> dict[tuple[Any, Any], float]:
    """NPMI of all pairs that occur together."""
    rows, found = len(units), {}
    for v in set().union(*units):
        for c in set().union(*concepts):
            both = sum(v in unit and c in concept for unit, concept in zip(units, concepts, strict=True)) / rows
            if both:
                alone = sum(v in unit for unit in units) / rows, sum(c in concept for concept in concepts) / rows
                found[v, c] = math.log(both / math.prod(alone)) / -math.log(both)
    return found


@pytest.mark.parametrize("units", ["tokens", "messages"])
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), rows=st.integers(2, 20))
def test_it_is_the_formula(units: str, seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    meanings = random.integers(3, size=(rows, 2))
    meanings[:2] = [[0, 0], [1, 1]]
    messages = [random.integers(4, size=random.integers(1, 4)).tolist() for _ in range(rows)]
    if units == "tokens":
        said: list[set[Any]] = [set(message) for message in messages]
        meant: list[set[Any]] = [set(enumerate(meaning)) for meaning in meanings.tolist()]
    else:
        said, meant = [{tuple(message)} for message in messages], [{tuple(meaning)} for meaning in meanings.tolist()]
    expected = by_hand(said, meant)
    score = npmi(meanings, messages, units=units)
    found = {(row.token, row.concept): row.npmi for row in score.details["pairs"].itertuples()}
    assert found == pytest.approx(expected, abs=1e-12)
    best = [max(value for (_, c), value in expected.items() if c == concept) for concept in set().union(*meant)]
    assert score.value == pytest.approx(np.mean(best), abs=1e-12)


def test_pairs_have_names_and_are_sorted() -> None:
    score = npmi([["red", 0], ["red", 1], ["blue", 0], ["blue", 1]], ["ac", "ad", "bc", "bb"])
    pairs = score.details["pairs"]
    assert pairs.iloc[0].tolist() == ["b", (0, "blue"), 2, 1.0]
    assert pairs.iloc[1].tolist() == ["a", (0, "red"), 2, 1.0]
    assert pairs["npmi"].is_monotonic_decreasing
    assert pairs.query("token == 'd'")["npmi"].tolist() == [0.5, 0.5]


def test_empty_messages_and_constant_attributes() -> None:
    assert npmi([[0, 5], [0, 5], [1, 5], [1, 5]], ["a", "a", "", ""]).value == 0  # the mean of 1 and -1
    assert npmi([[0], [1]], ["", ""]).why == "all messages are empty"
    with pytest.raises(UnknownNameError, match="No unit of messages is called 'words'"):
        npmi([[0], [1]], ["a", "b"], units="words")
