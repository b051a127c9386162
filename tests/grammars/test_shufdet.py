"""The grammar shufdet."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given

from icy.core.streams import stream
from icy.grammars import (
    make_language,
)
from icy.grammars.grammar import base_words
from icy.languages.meanings import MeaningSpace
from tests.grammars.helpers import Sizes, orders, sizes


@given(sizes())
def test_shufdet_order_depends_on_the_last_value_alone(at: Sizes) -> None:
    space = at[0]
    found = orders("shufdet", at)
    last = space.all()[:, -1]
    for value in range(space.values):
        assert len(np.unique(found[last == value], axis=0)) == 1


def test_shufdet_equals_a_plain_loop() -> None:
    at = (MeaningSpace(3, 4), 4, 2, 11)
    words = base_words(*at)
    draws = stream(11, "shufdet").permuted(np.tile(np.arange(3), (4, 1)), axis=1)
    by_hand = []
    for meaning in itertools.product(range(4), repeat=3):
        order = draws[meaning[2]]
        by_hand.append([t for p in range(3) for t in words[order[p], meaning[order[p]]].tolist()])
    assert make_language("shufdet", *at).messages.tolist() == by_hand
