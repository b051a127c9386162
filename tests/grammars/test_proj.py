"""The grammar proj."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError
from icy.core.streams import stream
from icy.grammars import WordTable, make_language, proj
from icy.grammars.grammar import base_messages
from icy.languages.meanings import MeaningSpace


def test_proj_equals_a_plain_loop() -> None:
    at = (MeaningSpace(3, 3), 4, 2, 11)
    base = base_messages(*at)
    matrix = stream(11, "proj").random((24, 24))
    by_hand = []
    for message in base:
        one_hot = np.zeros(24)
        for position, token in enumerate(message):
            one_hot[position * 4 + token] = 1
        scores = one_hot @ matrix
        by_hand.append([int(np.argmax(scores[t * 4 : t * 4 + 4])) for t in range(6)])
    assert make_language("proj", *at).messages.tolist() == by_hand


@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(2, 4),
    st.sampled_from([1, 7, 100, 10_000]),
)
def test_proj_is_the_same_in_blocks_of_any_size(
    seed: int, rows: int, length: int, vocab_size: int, scores_at_once: int
) -> None:
    """On any table, its rows in any order, with scores that are equal now and then."""
    rng = np.random.default_rng(seed)
    space = MeaningSpace(1, rows)
    messages = rng.integers(vocab_size, size=(rows, length))
    matrix = rng.integers(3, size=(length * vocab_size,) * 2) / 3
    table = WordTable(space, vocab_size, length, cast(Any, SimpleNamespace(random=lambda shape: matrix)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proj, "SCORES_AT_ONCE", scores_at_once)
        found = proj.Proj().apply(messages, table)
    total = matrix[messages[:, 0]]
    for position in range(1, length):
        total = total + matrix[position * vocab_size + messages[:, position]]
    assert found.tolist() == total.reshape(rows, length, vocab_size).argmax(axis=2).tolist()


@pytest.mark.slow
def test_proj_distinct_messages_at_main_setting() -> None:
    """Reference facts, section 6: 91.6 +- 1.6 % over seeds 123-127."""
    rates = [make_language("proj", "5x10", seed=seed).facts()["fraction_distinct"] for seed in range(123, 128)]
    assert abs(np.mean(rates) - 0.916) < 3 * 0.016


def test_proj_matrix_too_large() -> None:
    with pytest.raises(InvalidSettingError, match="matrix of proj needs about"):
        make_language("proj", "2x3", vocab_size=10**6, word_length=2)
