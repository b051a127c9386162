"""Words and messages that all grammars start from."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from icy.core.streams import stream
from icy.grammars.grammar import base_messages, base_words, digits, distinct_digits
from icy.languages.meanings import MeaningSpace
from tests.grammars.helpers import Sizes, sizes


def test_digits_least_significant_first() -> None:
    assert digits(np.array([27, 6]), 4, 4).tolist() == [[3, 2, 1, 0], [2, 1, 0, 0]]
    assert digits(np.array([6]), 10, 3).tolist() == [[6, 0, 0]]


def test_base_words_are_the_digits_of_one_draw() -> None:
    drawn = stream(7, "words").choice(4**4, size=50, replace=False)
    by_hand = [[(n // 4**j) % 4 for j in range(4)] for n in drawn.tolist()]
    assert base_words(MeaningSpace(5, 10), 4, 4, 7).reshape(50, 4).tolist() == by_hand


@given(sizes())
def test_words_are_distinct_and_messages_concatenate_them(at: Sizes) -> None:
    space, _, word_length, _ = at
    words = base_words(*at)
    assert len(np.unique(words.reshape(-1, word_length), axis=0)) == space.attributes * space.values
    messages = base_messages(*at)
    for number, meaning in enumerate(itertools.product(range(space.values), repeat=space.attributes)):
        expected = [token for a, value in enumerate(meaning) for token in words[a, value].tolist()]
        assert messages[number].tolist() == expected


@given(st.integers(0, 99))
def test_distinct_digits_can_exhaust_the_numbers(seed: int) -> None:
    rows = distinct_digits(np.random.default_rng(seed), 27, 3, 3)
    assert sorted(map(tuple, rows.tolist())) == sorted(itertools.product(range(3), repeat=3))
