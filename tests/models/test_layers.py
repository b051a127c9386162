"""Layers: products and convolutions of stacks."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from icy.models.layers import Convolution, rows_times
from tests.models.test_cells import assert_close, random

# -- products of rows and matrices -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stack", [(), (2,)])
def test_rows_times(stack: tuple[int, ...]) -> None:
    x, matrix, addend = random(*stack, 5, 3, 4), random(*stack, 4, 6, seed=1), random(*stack, 1, 6, seed=2)
    expected = x @ (matrix.unsqueeze(-3) if stack else matrix)
    assert_close(rows_times(x, matrix), expected)
    assert_close(rows_times(x, matrix, addend), expected + addend.unsqueeze(-2))
    if stack:
        assert_close(rows_times(x[0, 0], matrix), x[0, 0] @ matrix)


# -- convolutions: initialised as the library's ------------------------------------------------------------------------


def test_convolutions_are_initialised_as_the_librarys() -> None:
    torch.manual_seed(5)
    block, library = Convolution(60, 80), nn.Conv1d(60, 80, 3)
    bound = (3 * 60) ** -0.5
    for mine, theirs in ((block.weight, library.weight), (block.bias, library.bias)):
        assert mine.numel() == theirs.numel()
        assert 0.9 * bound < mine.abs().max() <= bound
        assert mine.std().item() == pytest.approx(theirs.std().item(), rel=0.2)
