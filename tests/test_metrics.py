"""Topographic similarity: exact by counts, equal to a list of pairs, and near the measured values of the grammars."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import icy
from icy.errors import InvalidSettingError
from icy.metrics import topsim
from icy.metrics.topographic import ROWS_AT_ONCE


def by_pairs(meanings: np.ndarray, messages: np.ndarray, pairs: str) -> float:
    """The definition, with a list of pairs."""
    n = len(meanings)
    i, j = np.triu_indices(n, 1) if pairs == "distinct" else np.indices((n, n)).reshape(2, -1)
    return float(spearmanr((meanings[i] == meanings[j]).sum(1), (messages[i] == messages[j]).sum(1))[0])


@settings(deadline=None, max_examples=40)
@given(
    st.integers(8, 40),
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(2, 4),
    st.sampled_from(["distinct", "ordered"]),
    st.integers(0, 999),
)
def test_it_is_the_spearman_correlation_over_pairs(
    rows: int, attributes: int, length: int, values: int, pairs: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    meanings, messages = random.integers(values, size=(rows, attributes)), random.integers(3, size=(rows, length))
    messages[:, 0] = meanings[:, 0] % 3  # some structure
    with np.errstate(all="ignore"):
        expected = by_pairs(meanings, messages, pairs)
    found = topsim(meanings, messages, pairs)
    assert found == pytest.approx(expected, abs=1e-9) or (math.isnan(found) and math.isnan(expected))


def test_one_to_one_positions_are_perfectly_alike() -> None:
    space = icy.MeaningSpace(3, 4)
    meanings = space.meanings(np.arange(space.size))
    assert topsim(meanings, 3 - meanings[:, ::-1]) == 1


def test_nothing_to_compare_is_nan() -> None:
    meanings = [[0], [1], [2]]
    assert math.isnan(topsim(meanings, [[1], [1], [1]]))
    assert math.isnan(topsim([[0], [0]], [[1], [2]]))


def test_blocks_make_no_difference() -> None:
    random = np.random.default_rng(0)
    meanings = random.integers(10, size=(ROWS_AT_ONCE + 100, 2))
    messages = np.concatenate([meanings, random.integers(4, size=(len(meanings), 3))], 1)
    order = random.permutation(len(meanings))
    assert topsim(meanings, messages) == pytest.approx(topsim(meanings[order], messages[order]), abs=1e-12)


@pytest.mark.parametrize(
    ("grammar", "mean", "sd"),
    [("concat", 0.712, 0.020), ("perm", 0.712, 0.020), ("proj", 0.337, 0.011), ("shuf", 0.164, 0.006),
     ("rot", 0.104, 0.014), ("hol", 0.005, 0.008)],
)  # fmt: skip
def test_values_measured_on_the_authors_languages(grammar: str, mean: float, sd: float) -> None:
    """Over five seeds, at 5x10, from 1000 meanings instead of 10,000 pairs; within four standard errors."""
    found = []
    for seed in range(123, 128):
        language = icy.make_language(grammar, "5x10", seed=seed)
        rows = np.random.default_rng(seed).choice(language.space.size, 1000, replace=False)
        found.append(topsim(language.space.meanings(rows), language.messages[rows]))
    assert np.mean(found) == pytest.approx(mean, abs=4 * math.sqrt(2) * sd / math.sqrt(5) + 0.005)


def test_mistakes_are_answered_in_a_sentence() -> None:
    with pytest.raises(InvalidSettingError, match="distinct or ordered"):
        topsim([[0], [1]], [[0], [1]], "all")
    with pytest.raises(InvalidSettingError, match="a table of meanings and one of messages"):
        topsim([[0], [1]], [[0], [1], [2]])
