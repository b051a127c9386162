"""The grammar pairsum."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from icy.grammars.grammar import base_messages
from icy.languages.meanings import MeaningSpace
from tests.grammars.helpers import TOY, Sizes, apply, sizes


def test_toy_pairsum() -> None:
    assert apply("pairsum", TOY, (MeaningSpace(3, 1), 4, 2, 0)).tolist() == [[0, 2, 1, 1, 2, 3]]


@given(sizes())
def test_pairsum_is_inverted_by_back_substitution(at: Sizes) -> None:
    space, vocab_size, word_length, _ = at
    base = base_messages(*at)
    given_base = base.copy()
    words = apply("pairsum", base, at).reshape(space.size, space.attributes, word_length).copy()
    words[:, -1] -= words[:, 0]
    for a in reversed(range(space.attributes - 1)):
        words[:, a] -= words[:, a + 1]
    np.testing.assert_array_equal(words.reshape(base.shape) % vocab_size, base)
    np.testing.assert_array_equal(base, given_base)  # not changed in place
