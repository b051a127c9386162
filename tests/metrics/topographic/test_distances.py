"""Distances of meanings and messages."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from scipy.spatial.distance import cosine, jaccard
from scipy.stats import spearmanr

import icy
from icy.core.errors import InvalidSettingError
from icy.metrics import Table, topsim
from icy.metrics.topographic import distances
from icy.metrics.topographic.distances import message_distance


def test_a_function_is_a_distance() -> None:
    language = icy.make_language("shufdet", "2x4", 3, 3, 1)
    edit = topsim(language)
    own = topsim(
        language,
        meaning=lambda a, b: float((a != b).sum()),
        message=lambda a, b: Levenshtein.distance(a.tolist(), b.tolist()),
    )
    assert own.value == pytest.approx(edit.value, abs=1e-12)
    assert own.conventions["message"] == "<lambda>"


# -- sets and counts of tokens -----------------------------------------------------------------------------------------


def overlap(name: str, one: list[int], other: list[int]) -> float:
    """Distance of two messages by SciPy; of empty ones as topsim defines it."""
    if not one or not other:
        return float(bool(one) != bool(other))
    counts = np.array([[message.count(token) for token in range(5)] for message in (one, other)])
    return float(jaccard(*(counts > 0)) if name == "jaccard" else cosine(*counts))


@pytest.mark.parametrize("name", ["jaccard", "cosine"])
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10_000), rows=st.integers(3, 14))
def test_overlap_of_tokens(name: str, seed: int, rows: int) -> None:
    """Counted, listed and drawn; equal ratios tie, whatever they are ratios of."""
    random = np.random.default_rng(seed)
    meanings = random.integers(3, size=(rows, 2))
    messages = [random.integers(5, size=random.integers(0, 7)).tolist() for _ in range(rows)]
    pairs = list(itertools.combinations(range(rows), 2))
    x = [int((meanings[i] != meanings[j]).sum()) for i, j in pairs]
    y = [round(overlap(name, messages[i], messages[j]), 12) for i, j in pairs]
    expected = math.nan if len(set(x)) == 1 or len(set(y)) == 1 else spearmanr(x, y).statistic
    listed = topsim(meanings, messages, message=name, meaning=lambda a, b: float((a != b).sum()))
    for score in (topsim(meanings, messages, message=name), listed):
        assert score.value == pytest.approx(expected, abs=1e-9, nan_ok=True)
        assert score.conventions["message"] == name


@pytest.mark.parametrize("name", ["jaccard", "cosine"])
def test_exact_overlap(name: str) -> None:
    distance = message_distance(Table.of([[0]] * 5, ["aab", "ab", "c", "", ""]), name, False, "none")
    left, right = np.array([0, 0, 0, 3, 0]), np.array([1, 2, 3, 4, 0])
    first = 0 if name == "jaccard" else 1 - 3 / math.sqrt(10)
    assert distance.of_pairs(left, right).tolist() == pytest.approx([first, 1, 1, 0, 0], abs=1e-15)
    assert distance.values is not None
    every = distance.values[distance.block(slice(0, 5), slice(0, 5))]
    assert every[left, right].tolist() == distance.of_pairs(left, right).tolist()


def test_counts_of_long_messages_are_listed() -> None:
    random = np.random.default_rng(0)
    messages = [random.integers(3, size=50 + 40 * i).tolist() for i in range(12)]
    distance = message_distance(Table.of([[i] for i in range(12)], messages), "cosine", False, "none")
    assert distance.values is None
    assert -1 <= topsim([[i % 4, i % 3] for i in range(12)], messages, message="cosine").value <= 1


# -- long messages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalise", ["max", "mean"])
def test_memory_is_linear_in_the_length_of_messages(normalise: str) -> None:
    messages = [[i % 2] * (8000 - i) for i in range(6)]
    table = Table.of([[i % 3, i % 2] for i in range(6)], messages)
    tracemalloc.start()
    score = topsim(table, normalise=normalise)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20e6
    lengths = [(8000 - i, 8000 - j) for i, j in itertools.combinations(range(6), 2)]
    edits = [max(a, b) if (a - b) % 2 else abs(a - b) for a, b in lengths]  # each message is one token repeated
    y = [n / (max(ab) if normalise == "max" else sum(ab) / 2) for n, ab in zip(edits, lengths, strict=True)]
    x = [(i % 3 != j % 3) + (i % 2 != j % 2) for i, j in itertools.combinations(range(6), 2)]
    assert score.value == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("normalise", ["max", "mean"])
@pytest.mark.parametrize("pairs", ["all", 40])
def test_listed_distances_are_those_of_the_table(
    normalise: str, pairs: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    table = random.integers(3, size=(9, 2)), [random.integers(3, size=1 + i).tolist() for i in range(9)]
    expected = topsim(*table, normalise=normalise, pairs=pairs).value
    monkeypatch.setattr(distances, "MOST_KEYS", 1)
    assert message_distance(Table.of(*table), "levenshtein", False, normalise).values is None
    assert topsim(*table, normalise=normalise, pairs=pairs).value == pytest.approx(expected, abs=1e-15)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_numbers_written_as_text_are_numbers() -> None:
    messages = ["aaaa", "aaab", "bbbb"]
    texts, numbers = ([["1"], ["2"], ["10"]], [[1], [2], [10]])
    assert topsim(texts, messages, meaning="euclidean").value == topsim(numbers, messages, meaning="euclidean").value


def test_whole_numbers_are_exact_or_refused() -> None:
    messages = ["aaaa", "aaab", "aabb", "bbbb"]
    near = [[2**53 + i] for i in (0, 1, 3, 7)]  # floats do not hold them, but their differences
    expected = topsim([[0], [1], [3], [7]], messages, meaning="euclidean").value
    assert topsim(near, messages, meaning="euclidean").value == expected
    with pytest.raises(InvalidSettingError, match="more than 2\\^53 apart"):
        topsim([[0], [2**53], [2**53 + 1], [2**60]], messages, meaning="euclidean")
    assert topsim([[0], [2**53], [2**53 + 1], [2**60]], messages).why  # all differ
