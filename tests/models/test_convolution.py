"""Convolutions: initialised as the library's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from icy.models.layers import Convolution


def test_convolutions_are_initialised_as_the_librarys() -> None:
    torch.manual_seed(5)
    block, library = Convolution(60, 80), nn.Conv1d(60, 80, 3)
    bound = (3 * 60) ** -0.5
    for mine, theirs in ((block.weight, library.weight), (block.bias, library.bias)):
        assert mine.numel() == theirs.numel()
        assert 0.9 * bound < mine.abs().max() <= bound
        assert mine.std().item() == pytest.approx(theirs.std().item(), rel=0.2)
