"""Scores, noise and gradients for tests of representations."""

from __future__ import annotations

import torch
from torch import Tensor

from icy.core.noise import Noise

NOISE = Noise(torch.tensor(5))


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """Scores in double precision."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64, requires_grad=True)


def gradient(of: Tensor, at: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(of.sum(), at)
    return found
