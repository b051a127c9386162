"""Layers with parameters that may have leading axes, for a stack of models.

In `x[..., batch, in]` times `weight[..., out, in]`, leading axes of the weight pair with leading axes of `x`. The same
code therefore runs one model or a stack of them, with one (batched) matrix product per layer.
"""

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.fused import traceable
from icy.core.representations import one_hot

from .kernels.cell_steps import tanh
from .kernels.products import product

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
