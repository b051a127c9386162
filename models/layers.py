"""Layers with parameters that may have leading axes, for a stack of models.

In `x[..., batch, in]` times `weight[..., out, in]`, leading axes of the weight pair with leading axes of `x`. The same
code therefore runs one model or a stack of them, with one (batched) matrix product per layer.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.fused import Context, Fused, Gradients, apply, differentiated, traceable
from icy.core.representations import one_hot

from .kernels.cell_steps import tanh
from .kernels.products import add_product, product

Meanings = Integer[Tensor, "*#lead attr"] | Float[Tensor, "*#lead attr value"]  # values, or weights over them
Message = Integer[Tensor, "*stack batch length"] | Float[Tensor, "*stack batch length vocab"]  # tokens, or weights


@traceable
def linear(
    x: Float[Tensor, "*#lead inputs"],
    weight: Float[Tensor, "*stack outputs inputs"],
    bias: Float[Tensor, "*stack outputs"] | None = None,
) -> Float[Tensor, "*lead outputs"]:
    """Return `x @ weight.mT + bias`. Axes of `x` after the weight's leading axes and before the last one are rows."""
    if weight.dim() == 2:
        return F.linear(x, weight, bias)
    return rows_times(x, weight.mT, None if bias is None else bias.unsqueeze(-2))


@traceable
def rows_times(
    x: Float[Tensor, "*#lead inputs"],
    matrix: Float[Tensor, "*stack inputs outputs"],
    addend: Float[Tensor, "... outputs"] | None = None,
) -> Float[Tensor, "*lead outputs"]:
    """Return `x @ matrix + addend`, computed as one (batched) matrix product.

    `addend` has the shape of the result, or a single row. If `x` has no leading axes, all models share it.
    """
    if matrix.dim() == 2:
        rows = x.flatten(0, -2)
        found = rows @ matrix if addend is None else torch.addmm(addend.flatten(0, -2), rows, matrix)
        return found.view(*x.shape[:-1], matrix.shape[-1])
    stack = matrix.shape[0]
    if x.dim() == 2:
        x = x.expand(stack, *x.shape)
    rows = x.flatten(1, -2)
    found = product(rows, matrix, None if addend is None else addend.flatten(1, -2))
    return found.view(*x.shape[:-1], matrix.shape[-1])


class Linear(nn.Linear):
    """`nn.Linear` for parameters that may have leading axes: a stack of models is computed as one batched product.

    It has PyTorch's initial weights.
    """

    __call__: Callable[..., Tensor]

    def forward(self, x: Float[Tensor, "*#lead inputs"]) -> Float[Tensor, "*lead outputs"]:
        """Return `x W^T + b`."""
        return linear(x, self.weight, self.bias)


class Tanh(nn.Module):
    """The hyperbolic tangent, by the kernel of the cells."""

    def forward(self, x: Float[Tensor, "*axes"]) -> Float[Tensor, "*axes"]:
        """Return tanh(x)."""
        return tanh(x)


class MeaningEmbedding(nn.Module):
    """The sum of one embedding per attribute: A*K rows of size E, row a*K + m_a (Icy22 appendix B).

    Args:
        attributes: number of attributes A.
        values: number of values K per attribute.
        size: E.
    """

    def __init__(self, attributes: int, values: int, size: int) -> None:
        super().__init__()
        self.values = values
        self.weight = nn.Parameter(torch.randn(attributes * values, size))

    def forward(self, meanings: Meanings) -> Float[Tensor, "*lead_out hidden"]:
        """Return the sum of the rows of the attribute values; for weights over values, the weighted sum of all rows."""
        return rows_times(flat_one_hot(meanings, self.values, self.weight.dtype), self.weight)


class AttributeEmbedding(MeaningEmbedding):
    """One embedding per attribute, not summed. Arguments as for MeaningEmbedding."""

    def forward(self, meanings: Meanings) -> Float[Tensor, "*lead_out hidden"]:
        """Return the row of each attribute's value, or the weighted sum of the attribute's rows."""
        return attribute_rows(meanings, self.weight, self.values)


class SymbolEmbedding(nn.Module):
    """An embedding with one row of size E for each of V + 1 symbols, applied to weights over symbols."""

    def __init__(self, symbols: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(symbols, size))

    def forward(self, message: Float[Tensor, "*#lead vocab"]) -> Float[Tensor, "*lead hidden"]:
        """Return the weighted sum of the rows."""
        return rows_times(message, self.weight)


@traceable
def flat_one_hot(meanings: Meanings, values: int, dtype: torch.dtype) -> Float[Tensor, "*lead attr_values"]:
    """Return the one-hot vectors of the attribute values, or the weights over them, concatenated."""
    weights = meanings.to(dtype) if meanings.is_floating_point() else one_hot(meanings, values, dtype)
    return weights.flatten(-2)


@traceable
def attribute_rows(
    meanings: Meanings, weight: Float[Tensor, "*stack attr_values hidden"], values: int
) -> Float[Tensor, "*lead_out hidden"]:
    """Return the row of `weight` for the value of each attribute: a * values + m_a of attribute a."""
    weights = meanings.to(weight.dtype) if meanings.is_floating_point() else one_hot(meanings, values, weight.dtype)
    vectors: Tensor = weights.transpose(-3, -2) @ weight.unflatten(-2, (-1, values))
    return vectors.transpose(-3, -2)


@traceable
def as_symbol_weights(
    message: Message, symbols: int, dtype: torch.dtype
) -> Float[Tensor, "*stack batch length vocab={symbols}"]:
    """Return a message as weights over symbols: tokens become one-hot vectors; weights do not change."""
    return message.to(dtype) if message.is_floating_point() else one_hot(message, symbols, dtype)


# -- layer normalization with parameters that may have leading axes ----------------------------------------------------


EPSILON = 1e-5  # added to variances, as in PyTorch


Rows = Float[Tensor, "stack rows hidden"]
Column = Float[Tensor, "stack rows 1"]
Row = Float[Tensor, "stack 1 hidden"]
Vector = Float[Tensor, "*stack hidden"]
Normal = Float[Tensor, "*lead hidden"]


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
def normalise(x: Normal, scale: Vector, shift: Vector) -> Normal:
    """Return scale (x - mean) / sqrt(variance + epsilon) + shift, over the last axis."""
    scale, shift = as_row(scale), as_row(shift)
    normal: Tensor = apply(Normalise, x.reshape(len(scale), -1, x.shape[-1]), scale, shift)
    return normal.view(x.shape)


class LayerNorm(nn.LayerNorm):
    """Layer normalization over the last axis, initialized like PyTorch's."""

    def __init__(self, size: int) -> None:
        super().__init__(size)

    def forward(self, x: Normal) -> Normal:
        """Normalize, scale and shift."""
        return normalise(x, self.weight, self.bias)


# -- convolution over the positions of a message, and max-pooling with ReLU, each as one autograd node -----------------

# Positions come before examples: `[..., length, batch, size]`. A shifted slice is then one block of memory, and a
# convolution is three matrix products that add to one result, without copying windows and without padding. Leading axes
# of the weights pair with leading axes of the input, as in `icy.models.layers`.


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
