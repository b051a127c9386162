"""Products of rows and matrices."""

from __future__ import annotations

import pytest

from icy.models.layers import rows_times
from tests.models.cell_helpers import assert_close, random


@pytest.mark.parametrize("stack", [(), (2,)])
def test_rows_times(stack: tuple[int, ...]) -> None:
    x, matrix, addend = random(*stack, 5, 3, 4), random(*stack, 4, 6, seed=1), random(*stack, 1, 6, seed=2)
    expected = x @ (matrix.unsqueeze(-3) if stack else matrix)
    assert_close(rows_times(x, matrix), expected)
    assert_close(rows_times(x, matrix, addend), expected + addend.unsqueeze(-2))
    if stack:
        assert_close(rows_times(x[0, 0], matrix), x[0, 0] @ matrix)
