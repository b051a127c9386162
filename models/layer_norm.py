"""Layer normalization with parameters that may have leading axes."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.fused import Context, Fused, Gradients, apply, traceable

EPSILON = 1e-5  # added to variances, as in PyTorch


Rows = Float[Tensor, "stack rows hidden"]
Column = Float[Tensor, "stack rows 1"]
Row = Float[Tensor, "stack 1 hidden"]


def standardize(x: Rows) -> tuple[Rows, Column, Column]:
    """Return (x - mean) / sqrt(variance + epsilon), the mean, and 1 / sqrt(variance + epsilon)."""
    return torch.native_layer_norm(x, x.shape[-1:], None, None, EPSILON)


def standardize_backward(grad: Rows, x: Rows, normal: Rows, mean: Column, rate: Column, scale: Row) -> tuple[Rows, Row]:
    """Return the gradients of x [stack, rows, hidden] and scale [stack, 1, hidden] from `grad`, of scale * normal."""
    to_x = torch.ops.aten.native_layer_norm_backward(
        grad * scale, x, x.shape[-1:], mean, rate, None, None, [True, False, False]
    )[0]
    return to_x, over_rows(normal * grad)


def over_rows(grad: Float[Tensor, "stack rows size"]) -> Float[Tensor, "stack 1 size"]:
    """Return the gradient of a vector that was added to every row."""
    return grad.sum(1, keepdim=True)


def as_stack(matrix: Float[Tensor, "*stack rows size"]) -> Float[Tensor, "stack rows size"]:
    """Reshape to exactly one axis before the last two."""
    return matrix.reshape(math.prod(matrix.shape[:-2]), *matrix.shape[-2:])


def as_row(vector: Float[Tensor, "*stack size"]) -> Float[Tensor, "stack 1 size"]:
    """Reshape the vector of each model so that it broadcasts over the model's rows."""
    return vector.reshape(-1, 1, vector.shape[-1])


class Normalise(Fused):
    """scale (x - mean) / sqrt(variance + epsilon) + shift; x [stack, rows, hidden], the others [stack, 1, hidden]."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        normal, mean, rate = standardize(x)
        ctx.save_for_backward(x, normal, mean, rate, scale, shift)
        return torch.addcmul(shift, normal, scale)

    @staticmethod
    def plain(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        return torch.addcmul(shift, F.layer_norm(x, x.shape[-1:], eps=EPSILON), scale)

    @staticmethod
    def inputs(ctx: Context) -> Sequence[object]:
        x, _, _, _, scale, shift = ctx.saved_tensors
        return x, scale, shift

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> Gradients:
        return *standardize_backward(grad, *ctx.saved_tensors[:5]), over_rows(grad)


@traceable
def normalise(
    x: Float[Tensor, "*lead hidden"], scale: Float[Tensor, "*stack hidden"], shift: Float[Tensor, "*stack hidden"]
) -> Float[Tensor, "*lead hidden"]:
    """Return scale (x - mean) / sqrt(variance + epsilon) + shift, over the last axis."""
    scale, shift = as_row(scale), as_row(shift)
    normal: Tensor = apply(Normalise, x.reshape(len(scale), -1, x.shape[-1]), scale, shift)
    return normal.view(x.shape)


class LayerNorm(nn.LayerNorm):
    """Layer normalization over the last axis, initialized like PyTorch's."""

    def __init__(self, size: int) -> None:
        super().__init__(size)

    def forward(self, x: Float[Tensor, "*lead hidden"]) -> Float[Tensor, "*lead hidden"]:
        """Normalize, scale and shift."""
        return normalise(x, self.weight, self.bias)
