"""Adjusted mutual information: worked values, and what it is by convention."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_mutual_info_score

from icy.core.errors import IcyError
from icy.metrics import ami
from icy.metrics.information import entropy, mutual_information

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
    assert ami([[0], [0]], ["a", "a"]).why == ami([[0], [0]], ["a", "b"]).why == "no attribute ever changes"
    assert ami([[0, 0], [0, 1]], ["a", "b"], attribute=0).why == "no attribute ever changes"
    assert ami([[0], [1], [2]], ["a", "a", "a"]).value == 0
    assert ami([[0], [1]], ["", ""]).value == 0


def test_hopeless_sizes() -> None:
    rows = np.arange(30_000)[:, None]
    with pytest.raises(IcyError, match="29999 labels by 29999 messages are too many"):
        ami(np.maximum(rows, 1), np.minimum(rows, 29_998))


def test_it_is_the_definition() -> None:
    """What chance gives is the mean over all ways to deal the messages out."""
    labels, said = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 0])
    dealt = [mutual_information(labels, np.array(other)) for other in itertools.permutations(said)]
    chance, most = np.mean(dealt), max(entropy(labels), entropy(said))
    expected = (mutual_information(labels, said) - chance) / (most - chance)
    assert ami(labels[:, None], said[:, None]).value == pytest.approx(expected, abs=1e-9)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), rows=st.integers(6, 30), average=st.sampled_from(["max", "arithmetic"]))
def test_what_it_does_not_depend_on(seed: int, rows: int, average: str) -> None:
    """Names on both sides, the order of rows, and which side is which (metrics-facts 13)."""
    random = np.random.default_rng(seed)
    meanings, messages = random.integers(2, size=(rows, 2)), random.integers(2, size=(rows, 2))
    order = random.permutation(rows)
    before = ami(meanings, messages, average=average).value
    assert before <= 1 + 1e-9
    assert ami(1 - meanings[order], messages[order] + 5, average=average).value == pytest.approx(before, abs=1e-9)
    assert ami(messages, meanings, average=average).value == pytest.approx(before, abs=1e-9)


@pytest.mark.parametrize("average", ["max", "arithmetic", "geometric"])
def test_rows_that_are_all_different_say_nothing(average: str) -> None:
    unique, few = np.arange(40)[:, None], np.arange(40)[:, None] % 7
    assert adjusted_mutual_info_score(unique[:, 0], few[:, 0], average_method=average) == pytest.approx(0, abs=1e-9)
    assert ami(unique, few, average=average).value == 0
    assert ami(few, unique, average=average).value == 0
    assert "every label occurs once" in ami(unique, few, average=average).details["note"]
    assert "uninformative" in ami(unique, unique, average=average).details["note"]


def test_rows_that_are_all_different_leave_the_lesser_entropy_to_chance() -> None:
    """0 / 0, which floating point would make a number near 1."""
    score = ami([[0], [1], [2], [3]], ["a", "a", "b", "c"], average="min")
    assert math.isnan(score.value)
    assert "every label occurs once" in score.why
    assert ami([[0], [1], [2]], ["a", "a", "a"], average="min").value == 0


def test_a_large_language_with_a_few_equal_messages_is_answered_at_once() -> None:
    rows = np.arange(100_000)[:, None]
    assert ami(rows, np.maximum(rows, 1)).value == 0
