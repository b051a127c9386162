"""Modules with wrong second derivatives, or with none."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function


class _Squared(Function):
    """x^2, whose backward pass treats the saved tensor as a constant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.x = x.detach()
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return 2 * grad * ctx.x


class WrongCurvature(nn.Module):
    """Squares the output of the next class, with wrong second derivatives."""

    def forward(self, inputs: Tensor) -> Tensor:
        squared: Tensor = _Squared.apply(super().forward(inputs))  # type: ignore[no-untyped-call, misc]
        return squared


class FirstDerivativesOnly(nn.Module):
    """Refuses second derivatives of the output of the next class."""

    def forward(self, inputs: Tensor) -> Tensor:
        scores: Tensor = super().forward(inputs)  # type: ignore[misc]
        if scores.requires_grad:
            scores.register_hook(_refuse)
        return scores


def _refuse(grad: Tensor) -> None:
    if torch.is_grad_enabled():
        raise NotImplementedError("Bare has first derivatives only; use plain=True.")
