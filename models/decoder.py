"""The decoder layer of Icy22's transformer senders: one head, and a memory of one vector."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.fused import Context, Fused, Gradients, apply, traceable

from .attention import WIDENING, Cache, library_projection_
from .kernels.products import add_product, product
from .layer_norm import LayerNorm, Normalise, as_row, as_stack, over_rows, standardize, standardize_backward
from .layers import Linear, rows_times


class _AfterAttention(Fused):
    """The rest of a post-norm decoder layer after self-attention, as one autograd node with its own backward pass.

    h = norm2(norm1(x) + crossed); y = norm3(h + relu(h W1 + c1) W2 + c2), for x [stack, batch, hidden], matrices
    [stack, inputs, outputs] and vectors [stack, 1, size]. `shift1` [stack, batch, hidden] is the shift of norm1 plus
    crossed.
    """

    @staticmethod
    def forward(ctx: Context, x: Tensor, *weights: Tensor) -> Tensor:
        scale1, shift1, scale2, shift2, widen, widen_bias, narrow, narrow_bias, scale3, shift3 = weights
        first = standardize(x)
        crossed = torch.addcmul(shift1, first[0], scale1)
        second = standardize(crossed)
        h = torch.addcmul(shift2, second[0], scale2)
        wide = product(h, widen, widen_bias).relu_()
        narrowed = add_product(h + narrow_bias, wide, narrow)
        third = standardize(narrowed)
        norms = (x, *first, scale1), (crossed, *second, scale2), (narrowed, *third, scale3)
        ctx.inputs = len(weights) + 1
        ctx.save_for_backward(x, *weights, *norms[0], *norms[1], *norms[2], h, wide, widen, narrow)
        return torch.addcmul(shift3, third[0], scale3)

    @staticmethod
    def plain(x: Tensor, *weights: Tensor) -> Tensor:
        scale1, shift1, scale2, shift2, widen, widen_bias, narrow, narrow_bias, scale3, shift3 = weights
        crossed = Normalise.plain(x, scale1, shift1)
        h = Normalise.plain(crossed, scale2, shift2)
        wide = torch.relu(torch.baddbmm(widen_bias, h, widen))
        return Normalise.plain(h + torch.baddbmm(narrow_bias, wide, narrow), scale3, shift3)

    @staticmethod
    def inputs(ctx: Context) -> Sequence[object]:
        found: Sequence[object] = ctx.saved_tensors[: ctx.inputs]
        return found

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> Gradients:
        *norms, h, wide, widen, narrow = ctx.saved_tensors[ctx.inputs :]
        to_narrowed, to_scale3 = standardize_backward(grad, *norms[10:])
        to_wide = product(to_narrowed, narrow.mT)
        torch.ops.aten.threshold_backward(to_wide, wide, 0, grad_input=to_wide)
        of_narrow = product(wide.mT, to_narrowed), over_rows(to_narrowed)
        of_widen = product(h.mT, to_wide), over_rows(to_wide)
        to_h = add_product(to_narrowed, to_wide, widen.mT)
        to_crossed, to_scale2 = standardize_backward(to_h, *norms[5:10])
        to_x, to_scale1 = standardize_backward(to_crossed, *norms[:5])
        of_norms = to_scale1, to_crossed, to_scale2, over_rows(to_h)
        return to_x, *of_norms, *of_widen, *of_narrow, to_scale3, over_rows(grad)


@traceable
def after_attention(
    x: Float[Tensor, "*stack batch hidden"], *weights: Float[Tensor, "*_stack _rows _columns"]
) -> Float[Tensor, "*stack batch hidden"]:
    """Return the output of a decoder layer from the state after self-attention; see _AfterAttention."""
    output: Tensor = apply(_AfterAttention, x, *weights)
    return output


class _Folded(NamedTuple):
    """Products of a decoder layer's weights, for inputs r with x = r @ table.

    Attributes:
        table: [width, E]; None if x = r.
        query: [width, width]; (r @ query + query_shift) . r' is the attention score of an earlier position r'.
        query_shift: [1, width].
        value: [width, E], a map from the mean of the r so far to the output of self-attention.
        shift: [1, E], added to that output.
        after: arguments of _AfterAttention.
    """

    table: Tensor | None
    query: Tensor
    query_shift: Tensor
    value: Tensor
    shift: Tensor
    after: tuple[Tensor, ...]


class DecoderLayer(nn.Module):
    """A post-norm decoder layer with one head and a memory of one vector e, like `nn.TransformerDecoderLayer`:

    h = norm1(x + SelfAttention(x)); h = norm2(h + CrossAttention(h, e)); y = norm3(h + W2 relu(W1 h + b1) + b2).

    Parameters without effect are left out, and `inert` counts them. With a single vector to attend to, cross-attention
    is O(V e) for any queries and keys. The bias of the keys adds the same number to all scores of a query, and the
    softmax removes it.

    One head is one bilinear form, q_t . k_s = x_t (Q^T K) x_s, and a mean of values is a linear map of a mean of x. So
    only the newest position is projected, by two matrices that are computed once per pass (see `fold`).
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.query, self.key = Linear(size, size), Linear(size, size, bias=False)
        self.value, self.out = Linear(size, size), Linear(size, size)
        self.crossed_value, self.crossed_out = Linear(size, size), Linear(size, size)
        self.widen, self.narrow = Linear(size, WIDENING * size), Linear(WIDENING * size, size)
        self.norm1, self.norm2, self.norm3 = LayerNorm(size), LayerNorm(size), LayerNorm(size)
        for projection in (self.query, self.key, self.value, self.crossed_value):
            library_projection_(projection)
        for projection in (self.out, self.crossed_out):
            nn.init.zeros_(projection.bias)

    @property
    def inert(self) -> int:
        """Size of the cross-attention's queries and keys, with biases, and of the bias of the self-attention's keys."""
        return 2 * self.size * (self.size + 1) + self.size

    def fold(
        self, memory: Float[Tensor, "*stack batch hidden"], table: Float[Tensor, "*stack width hidden"] | None = None
    ) -> _Folded:
        """Return products of this layer's weights, which every step uses.

        Args:
            memory: e.
            table: [..., width, E], if the layer's inputs are given as rows r with x = r @ table.
        """
        of_keys = self.key.weight / math.sqrt(self.size)
        of_values = rows_times(self.value.weight.mT, self.out.weight.mT)
        of_queries = self.query.weight.mT
        if table is not None:
            of_keys = rows_times(of_keys, table.mT)
            of_values = rows_times(table, of_values)
            of_queries = rows_times(table, of_queries)
        return _Folded(
            table,
            rows_times(of_queries, of_keys),
            rows_times(self.query.bias.unsqueeze(-2), of_keys),
            of_values,
            self.out(self.value.bias.unsqueeze(-2)),
            self._after(self.crossed_out(self.crossed_value(memory))),
        )

    def _after(self, crossed: Tensor) -> tuple[Tensor, ...]:
        return (
            *(as_row(self.norm1.weight), as_row(self.norm1.bias) + as_stack(crossed)),
            *(as_row(self.norm2.weight), as_row(self.norm2.bias)),
            *(as_stack(self.widen.weight.mT), as_row(self.widen.bias)),
            *(as_stack(self.narrow.weight.mT), as_row(self.narrow.bias)),
            *(as_row(self.norm3.weight), as_row(self.norm3.bias)),
        )

    def step(
        self, rows: Float[Tensor, "*stack batch width"], folded: _Folded, cache: Cache
    ) -> Float[Tensor, "*stack batch hidden"]:
        """Return the output at the newest position, [..., batch, hidden]."""
        query = rows_times(rows, folded.query, folded.query_shift)
        mean = cache.attend(query, rows)
        if folded.table is None:
            attended = rows_times(mean, folded.value, rows + folded.shift)
        else:
            attended = rows_times(mean, folded.value, rows_times(rows, folded.table, folded.shift))
        return after_attention(as_stack(attended), *folded.after).view(attended.shape)
