"""The grammars shuf and shufdet: words in another order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.grammars import (
    make_language,
)
from icy.languages.meanings import MeaningSpace
from tests.grammars.helpers import Sizes, orders, sizes, words_of


@given(sizes(), st.sampled_from(["shuf", "shufdet"]))
def test_shuffles_keep_the_words(at: Sizes, name: str) -> None:
    before, after = words_of(make_language("concat", *at)), words_of(make_language(name, *at))
    weights = at[1] ** np.arange(at[2])
    np.testing.assert_array_equal(np.sort(before @ weights, axis=1), np.sort(after @ weights, axis=1))


@pytest.mark.parametrize("name", ["shuf", "shufdet"])
def test_shuffles_draw_every_order_equally_often(name: str) -> None:
    at = (MeaningSpace(3, 18), 18, 2, 0) if name == "shuf" else (MeaningSpace(3, 60), 60, 2, 0)
    found = orders(name, at)
    drawn = found if name == "shuf" else found[: at[0].values]
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 6
    expected = len(drawn) / 6
    assert ((counts - expected) ** 2 / expected).sum() < 20.5  # chi-square, 5 degrees of freedom, p = 0.001
