"""Random tensors, gradients and the formulas of the SRU for tests of cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

INPUTS, HIDDEN, BATCH = 3, 5, 4


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), requires_grad=True)


def gradients(loss: Tensor, *of: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, of))


def assert_close(found: Tensor, expected: Tensor, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=0)


# -- the SRU -----------------------------------------------------------------------------------------------------------


def sru_by_the_book(
    x: Tensor, weight: Tensor, v: Tensor, bias: Tensor, c: Tensor, activation: str = "identity"
) -> tuple[Tensor, Tensor]:
    """The formulas as they stand, step by step: h of every step and the last c, for x [..., step, batch, inputs].

    A fourth block of the weight is what the highway passes on; without it, it passes x on.
    """
    outputs = []
    for t in range(x.shape[-3]):
        candidate, f, r, *passed = (x[..., t, :, :] @ weight).split(c.shape[-1], -1)
        f = torch.sigmoid(f + v[..., :1, :] * c + bias[..., :1, :])
        r = torch.sigmoid(r + v[..., 1:, :] * c + bias[..., 1:, :])
        c = f * c + (1 - f) * candidate
        shown = torch.tanh(c) if activation == "tanh" else c
        outputs.append(r * shown + (1 - r) * (passed[0] if passed else x[..., t, :, :]))
    return torch.stack(outputs, -3), c


# -- the fused functions -----------------------------------------------------------------------------------------------


def check_gradients(function: Callable[..., Any], *inputs: Tensor) -> bool:
    """Against finite differences; not for an undefined gradient, which autograd never hands to these nodes."""
    found: bool = torch.autograd.gradcheck(function, inputs, check_undefined_grad=False)
    return found


def double(*shape: int, seed: int = 0) -> Tensor:
    return random(*shape, seed=seed).detach().double().requires_grad_()
