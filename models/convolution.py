"""Convolution over the positions of a message, and max-pooling with ReLU, each as one autograd node.

Positions come before examples: `[..., length, batch, size]`. A shifted slice is then one block of memory, and a
convolution is three matrix products that add to one result, without copying windows and without padding. Leading axes
of the weights pair with leading axes of the input, as in `icy.models.layers`.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.fused import Context, Fused, Gradients, apply, differentiated, traceable

from .kernels.products import add_product, product

WIDTH = 3  # positions t - 1, t, t + 1


def _overlap(shift: int, inputs: int, outputs: int) -> tuple[slice, slice]:
    """Return the outputs t with an existing input t + shift, and these inputs; other inputs are zero padding."""
    first, last = max(0, -shift), min(outputs, inputs - shift)
    return slice(first, last), slice(first + shift, last + shift)


def _rows(x: Tensor, which: slice) -> Tensor:
    """Return some positions of [stack, length, batch, size] as rows [stack, rows, size]; a view, never a copy."""
    part = x[:, which]
    return part.view(part.shape[0], -1, part.shape[-1])


class Convolve(Fused):
    """y_t = b + sum_k x_{t+k-1} W_k for t < outputs: `x` [stack, length, batch, in], `weight` [stack, 3, in, out]."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor, outputs: int) -> Tensor:
        stack, length, batch, _ = x.shape
        center = _rows(x, slice(outputs))
        y = product(center, weight[:, 1], bias.unsqueeze(1)).view(stack, outputs, batch, weight.shape[-1])
        for k in (0, 2):
            to, of = _overlap(k - 1, length, outputs)
            add_product(_rows(y, to), _rows(x, of), weight[:, k])
        return y

    @staticmethod
    def plain(x: Tensor, weight: Tensor, bias: Tensor, outputs: int) -> Tensor:
        padded = F.pad(x, (0, 0, 0, 0, 1, max(0, outputs + 1 - x.shape[1])))
        parts = [padded[:, k : k + outputs] @ weight[:, k].unsqueeze(1) for k in range(WIDTH)]
        return sum(parts, bias[:, None, None])

    @staticmethod
    def inputs(ctx: Context) -> Sequence[object]:
        return *ctx.saved_tensors, ctx.outputs

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        *tensors, ctx.outputs = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> Gradients:
        x, weight, _ = ctx.saved_tensors
        grad = grad.contiguous()
        places = [_overlap(k - 1, x.shape[1], ctx.outputs) for k in range(WIDTH)]
        to_weight = torch.stack([product(_rows(x, of).mT, _rows(grad, to)) for to, of in places], 1)
        to_x = None
        if ctx.needs_input_grad[0]:
            to_x = torch.zeros_like(x)
            for k, (to, of) in enumerate(places):
                add_product(_rows(to_x, of), _rows(grad, to), weight[:, k].mT)
        return to_x, to_weight, grad.sum((1, 2)), None


class PoolReLU(Fused):
    """relu(max(x_2t, x_2t+1)) of x [..., length, batch, size]; if both are equal, the first gets the gradient."""

    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        even, odd = _pairs(x)
        # The mask is float: on a CPU a product with floats is several times faster than with booleans.
        return torch.maximum(even, odd).relu_(), (even >= odd).to(x.dtype)

    @staticmethod
    def plain(x: Tensor) -> tuple[Tensor]:
        even, odd = _pairs(x)
        return (torch.where(even >= odd, even, odd).relu(),)

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        pooled, first = output
        ctx.mark_non_differentiable(first)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(pooled, first)

    @staticmethod
    def backward(ctx: Context, grad: Tensor | None, *_: object) -> Gradients:
        pooled, first = ctx.saved_tensors
        if grad is None:
            return None
        grad = torch.ops.aten.threshold_backward(grad, pooled, 0)  # zero where the ReLU is
        if differentiated():
            return torch.stack([grad * first, grad - grad * first], -3).flatten(-4, -3)
        to_x = grad.new_empty(*grad.shape[:-3], 2 * grad.shape[-3], *grad.shape[-2:])
        to_even, to_odd = _pairs(to_x)
        torch.mul(grad, first, out=to_even)
        torch.sub(grad, to_even, out=to_odd)
        return to_x


def _pairs(x: Tensor) -> tuple[Tensor, ...]:
    """Return the even and the odd positions as views, [..., length / 2, batch, size] each."""
    pairs: Tensor = x.unflatten(-3, (-1, 2))  # type: ignore[no-untyped-call]
    return pairs.unbind(-3)


class Convolution(nn.Module):
    """Convolution over positions with kernel 3 and padding 1, initialized like PyTorch's: U(+-1/sqrt(3 in)).

    Args:
        inputs: input channels.
        outputs: output channels.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(WIDTH * inputs)
        self.weight = nn.Parameter(torch.empty(WIDTH, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))

    def fold(self, rows: Float[Tensor, "*stack symbols inputs"]) -> Float[Tensor, "*stack 3 symbols outputs"]:
        """Multiply the weights by the rows of an embedding; the result takes weights over V + 1 symbols as input."""
        return fold_rows(rows, self.weight)

    def forward(
        self,
        x: Float[Tensor, "*stack length batch inputs"],
        outputs: int,
        folded: Float[Tensor, "*stack 3 inputs channels"] | None = None,
    ) -> Float[Tensor, "*stack length={outputs} batch channels"]:
        """Return the first `outputs` positions; with `folded` weights, `x` is not embedded."""
        return convolve(x, self.weight if folded is None else folded, self.bias, outputs)


@traceable
def fold_rows(
    rows: Float[Tensor, "*stack symbols inputs"], weight: Float[Tensor, "*stack 3 inputs outputs"]
) -> Float[Tensor, "*stack 3 symbols outputs"]:
    """Return the products of rows with the weights at each of the three positions."""
    of_each = rows.unsqueeze(-3).expand(*weight.shape[:-2], *rows.shape[-2:])
    return product(of_each.flatten(0, -3), weight.flatten(0, -3)).view(*of_each.shape[:-1], weight.shape[-1])


@traceable
def convolve(
    x: Float[Tensor, "*stack length batch inputs"],
    weight: Float[Tensor, "*stack 3 inputs channels"],
    bias: Float[Tensor, "*stack channels"],
    outputs: int,
) -> Float[Tensor, "*stack length={outputs} batch channels"]:
    """Return the first `outputs` positions of a convolution; see Convolve."""
    single = weight.dim() == 3
    parts = (x, weight, bias)
    stacked = [part.unsqueeze(0) for part in parts] if single else parts
    y: Tensor = apply(Convolve, *stacked, outputs)
    return y.squeeze(0) if single else y


@traceable
def pool_relu(x: Float[Tensor, "*stack length batch size"]) -> Float[Tensor, "*stack length//2 batch size"]:
    """Return the maximum of each pair of positions, after a ReLU; see PoolReLU."""
    pooled: Tensor = apply(PoolReLU, x)[0]
    return pooled
