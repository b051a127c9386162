"""Entropy of messages, distinct messages, and mutual information, against SciPy and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy
from sklearn.metrics import mutual_info_score

from icy.metrics import message_entropy, mutual_information, unique_messages

Message = st.lists(st.integers(0, 2), max_size=3)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), Message), min_size=2, max_size=20))
def test_they_are_the_definitions(rows: list[tuple[int, int, list[int]]]) -> None:
    meanings, messages = [[a, b] for a, b, _ in rows], [message for *_, message in rows]
    said, counts = np.unique([str(message) for message in messages], return_counts=True)
    score = message_entropy(meanings, messages)
    assert score.value == pytest.approx(entropy(counts, base=2), abs=1e-12)
    tokens = np.unique([token for message in messages for token in message], return_counts=True)[1]
    assert score.details["token_entropy"] == pytest.approx(entropy(tokens, base=2) if len(tokens) else 0, abs=1e-12)
    assert unique_messages(meanings, messages).value == score.details["messages"] == len(said)
    assert unique_messages(meanings, messages, share=True).value == len(said) / len(rows)
    shared = mutual_information(meanings, messages)
    if len({tuple(meaning) for meaning in meanings}) == 1:
        assert shared.why
        return
    expected = mutual_info_score([str(m) for m in meanings], [str(m) for m in messages]) / math.log(2)
    assert shared.value == pytest.approx(expected, abs=1e-9)
    whole = shared.details["meaning_entropy"]
    assert mutual_information(meanings, messages, normalised=True).value == pytest.approx(expected / whole, abs=1e-9)
    assert shared.details["meaning_given_message"] == pytest.approx(whole - expected, abs=1e-9)
    assert shared.details["message_given_meaning"] == pytest.approx(score.value - expected, abs=1e-9)


def test_the_end_of_a_message_is_not_part_of_it() -> None:
    messages = [[1, 0, 2], [1, 0, 3], [2, 0, 0], [2, 1, 0]]
    assert unique_messages([[0]] * 4, messages).value == 4
    assert unique_messages([[0]] * 4, messages, eos=0).value == 3
    assert message_entropy([[0]] * 4, messages, eos=0).value == 1.5


def test_distinct_messages_determine_the_meaning() -> None:
    rows = np.arange(8)[:, None]
    assert mutual_information(rows, rows).value == message_entropy(rows, rows).value == 3
    assert mutual_information(rows // 2, rows, normalised=True).value == 1
    assert mutual_information(rows, rows // 2, normalised=True).value == pytest.approx(2 / 3)
