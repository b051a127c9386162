"""Layers whose parameters may carry leading axes.

`x[..., batch, in]` times `weight[..., out, in]`: leading axes of the weight pair with those of `x`. A model built from
these layers therefore computes one model or a stack of them with the same code, as one batched matrix product a layer.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.representations import one_hot


def linear(
    x: Float[Tensor, "*lead rows inputs"], weight: Float[Tensor, "*stack outputs inputs"], bias: Tensor | None = None
) -> Float[Tensor, "*lead rows outputs"]:
    """`x @ weight.mT + bias`. Axes of `x` between the weight's leading axes and the last one are all rows."""
    if weight.dim() == 2:
        return F.linear(x, weight, bias)
    return rows_times(x, weight.mT, None if bias is None else bias.unsqueeze(-2))


def rows_times(
    x: Float[Tensor, "*lead inputs"], matrix: Float[Tensor, "*stack inputs outputs"], addend: Tensor | None = None
) -> Float[Tensor, "*lead outputs"]:
    """`x @ matrix + addend` as one (batched) matrix product.

    `addend` has the shape of the result, or 1 for its rows. Where `x` has no leading axes, all models share it.
    """
    if matrix.dim() == 2:
        rows = x.flatten(0, -2)
        product = rows @ matrix if addend is None else torch.addmm(addend.flatten(0, -2), rows, matrix)
        return product.view(*x.shape[:-1], matrix.shape[-1])
    stack = matrix.shape[0]
    if x.dim() == 2:
        x = x.expand(stack, *x.shape)
    rows = x.flatten(1, -2)
    product = torch.bmm(rows, matrix) if addend is None else torch.baddbmm(addend.flatten(1, -2), rows, matrix)
    return product.view(*x.shape[:-1], matrix.shape[-1])


class Linear(nn.Linear):
    """A linear layer over the last axis; initialised as PyTorch's."""

    def forward(self, x: Float[Tensor, "*lead inputs"]) -> Float[Tensor, "*lead outputs"]:
        """`x W^T + b`."""
        return linear(x, self.weight, self.bias)


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

    def forward(self, meanings: Int[Tensor, "*stack batch attr"]) -> Float[Tensor, "*stack batch hidden"]:
        """Look the values up and add."""
        return rows_times(flat_one_hot(meanings, self.values, self.weight.dtype), self.weight)


class SymbolEmbedding(nn.Module):
    """One row of size E per symbol (V + 1 of them), for tokens and for weights over symbols alike."""

    def __init__(self, symbols: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(symbols, size))

    def forward(self, message: Float[Tensor, "*lead vocab"]) -> Float[Tensor, "*lead hidden"]:
        """The weighted mean of the rows."""
        return rows_times(message, self.weight)


def flat_one_hot(
    meanings: Int[Tensor, "*lead attr"], values: int, dtype: torch.dtype
) -> Float[Tensor, "*lead attr_values"]:
    """One-hot vectors of the attribute values, side by side."""
    return one_hot(meanings, values, dtype).flatten(-2)


def as_symbol_weights(message: Tensor, symbols: int, dtype: torch.dtype) -> Float[Tensor, "*stack batch length vocab"]:
    """A message as weights over symbols: tokens become one-hot vectors, weights stay what they are."""
    return message.to(dtype) if message.is_floating_point() else one_hot(message, symbols, dtype)
