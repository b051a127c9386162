"""Adjusted mutual information: worked values, and what it is by convention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score

from icy.errors import IcyError
from icy.metrics import ami

LABELS, MESSAGES = [[0], [0], [1], [1], [2], [2]], [[0], [0], [1], [2], [3], [3]]


@pytest.mark.parametrize(
    ("average", "expected"), [("max", 0.615385), ("arithmetic", 0.761905), ("geometric", 0.770654), ("min", 1.0)]
)
def test_worked_values(average: str, expected: float) -> None:
    """metrics-facts 8"""
    assert ami(LABELS, MESSAGES, average=average).value == pytest.approx(expected, abs=1e-6)


def test_it_can_be_negative_and_symmetric() -> None:
    assert ami([[0], [0], [1], [1]], [[0], [1], [0], [1]]).value == pytest.approx(-0.5)
    assert ami(MESSAGES, LABELS).value == pytest.approx(ami(LABELS, MESSAGES).value)


def test_meanings_and_messages_are_opaque() -> None:
    random = np.random.default_rng(0)
    meanings, messages = random.integers(2, size=(60, 2)), random.integers(2, size=(60, 3))
    expected = adjusted_mutual_info_score(meanings @ [2, 1], messages @ [4, 2, 1], average_method="max")
    score = ami(meanings, messages)
    assert score.value == pytest.approx(expected)
    assert score.details == {"labels": 4, "messages": 8}
    one = adjusted_mutual_info_score(meanings[:, 1], messages @ [4, 2, 1], average_method="max")
    assert ami(meanings, messages, attribute=1).value == pytest.approx(one)


def test_conventions_of_degenerate_tables() -> None:
    unique = np.arange(100_000)[:, None]
    assert ami(unique, unique).value == 1  # at once
    assert ami([[0], [0]], ["a", "a"]).value == 1
    assert ami([[0], [1], [2]], ["a", "a", "a"]).value == 0
    assert ami([[0], [1]], ["", ""]).value == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"average": "mean"}, "No average is called 'mean'"),
        ({"attribute": 1}, "There is no attribute 1; they are numbered 0 to 0"),
        ({"attribute": -1}, "attribute must be a whole number"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(IcyError, match=sentence):
        ami(LABELS, MESSAGES, **options)


def test_hopeless_sizes() -> None:
    rows = np.arange(30_000)[:, None]
    with pytest.raises(IcyError, match="29999 labels by 30000 messages are too many"):
        ami(np.maximum(rows, 1), rows)
