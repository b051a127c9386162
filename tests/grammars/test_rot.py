"""The grammar rot."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from icy.grammars.grammar import base_messages
from icy.languages.meanings import MeaningSpace
from tests.grammars.helpers import TOY, Sizes, apply, sizes


def test_toy_rot() -> None:
    assert apply("rot", TOY, (MeaningSpace(3, 1), 4, 2, 0)).tolist() == [[1, 3, 2, 2, 0, 1]]


@given(sizes())
def test_rot_is_inverted_by_differences(at: Sizes) -> None:
    base = base_messages(*at)
    rotated = apply("rot", base, at)
    np.testing.assert_array_equal(np.diff(rotated, axis=1, prepend=0) % at[1], base)
