"""The grammar perm."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from icy.grammars.grammar import base_messages
from tests.grammars.helpers import Sizes, apply, sizes


@given(sizes())
def test_perm_is_one_permutation_of_positions(at: Sizes) -> None:
    space, _, word_length, _ = at
    marked = np.arange(space.attributes * word_length)[None, :].repeat(space.size, axis=0)
    permuted = apply("perm", marked, at)
    assert sorted(permuted[0].tolist()) == marked[0].tolist()
    assert (permuted == permuted[0]).all()
    np.testing.assert_array_equal(apply("perm", base_messages(*at), at), base_messages(*at)[:, permuted[0]])
