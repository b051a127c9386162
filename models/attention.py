"""Attention with a cache, and pre-norm transformer layers; parameters may have leading axes.

A decoder that writes one symbol at a time computes only the newest position of every layer at each step. Attention only
needs cached rows of earlier positions. `Cache.attend` keeps these rows and passes gradients back through them.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.fused import Context, Fused, Gradients, apply, differentiated, gradients, traceable, tracing, usable

from .kernels.products import add_product, product
from .layers import (
    LayerNorm,
    Linear,
    Normalise,
    as_row,
    as_stack,
    linear,
    normalise,
    over_rows,
    rows_times,
    standardize,
    standardize_backward,
)

WIDENING = 4  # width of the feed-forward layers in units of E
SLOWEST = 10_000  # wavelength of the slowest sinusoid, divided by 2 pi
Hidden = Float[Tensor, "*stack batch hidden"]
Sequences = Float[Tensor, "*stack batch length hidden"]
Rows = Float[Tensor, "*lead hidden"]
Query = Float[Tensor, "*lead size"]
Projected = Float[Tensor, "*lead queries_keys_values"]


def sinusoids(length: int, like: Rows) -> Float[Tensor, "length hidden"]:
    """Return sinusoidal positions: p[t, 2i] = sin(t / 10000^(2i/E)), p[t, 2i+1] its cosine (Vaswani et al. 2017, 3.5).

    They are computed for each pass and not kept in a buffer, because vmap cannot stack modules with buffers.
    """
    size = like.shape[-1]
    rates = torch.exp(torch.arange(0, size, 2, dtype=like.dtype, device=like.device) * (-math.log(SLOWEST) / size))
    angles = torch.arange(length, dtype=like.dtype, device=like.device).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :size]


class Sinusoids(nn.Module):
    """Positions encoded by sinusoids."""

    def forward(self, length: int, like: Rows) -> Float[Tensor, "length hidden"]:
        """Return the codes of all positions; see `sinusoids`."""
        return sinusoids(length, like)


class LearnedPositions(nn.Module):
    """Positions encoded by one learned vector each, initialized N(0, 1) like an embedding.

    Args:
        length: L.
        size: E.
    """

    def __init__(self, length: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(length, size))

    def forward(self, length: int, like: Rows) -> Float[Tensor, "*stack length hidden"]:
        """Return the codes of all positions."""
        return self.weight


class NoPositions(nn.Module):
    """Codes of zeros: the model does not see positions."""

    def forward(self, length: int, like: Rows) -> Float[Tensor, "length hidden"]:
        """Return zeros for all positions."""
        return torch.zeros(length, like.shape[-1], dtype=like.dtype, device=like.device)


Positions = Sinusoids | LearnedPositions | NoPositions


def position_codes(positions: str, length: int, size: int) -> Positions:
    """Create the codes of positions.

    Args:
        positions: "sinusoid", "learned" or "none".
        length: L.
        size: E.
    """
    if positions == "learned":
        return LearnedPositions(length, size)
    return Sinusoids() if positions == "sinusoid" else NoPositions()


def at_positions(x: Sequences, codes: Float[Tensor, "*#stack length hidden"]) -> Sequences:
    """Return x plus the codes of its positions."""
    return x + (codes if codes.dim() == 2 else codes.unsqueeze(-3))


class _Attend(Fused):
    """One step of attention over a cache. The step first adds its own row to the cache.

    Each step takes the cache that the previous step returned. In the backward pass, the gradient of the cache is
    therefore a single buffer, to which the steps add their parts in reverse order. After step t has added its part, row
    t is complete. So a step only costs the rows that it reads. Stacking the rows at each step would instead copy all
    rows, forward and backward.
    """

    @staticmethod
    def forward(
        ctx: Context, query: Tensor, row: Tensor, cache: Tensor, step: int, rows: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        ctx.mark_dirty(cache)
        ctx.set_materialize_grads(False)
        cache[:, step] = row
        # Not by save_for_backward: autograd would report that the cache changes later, although these rows do not.
        ctx.seen, ctx.shape, ctx.step = cache.detach()[:, : step + 1], cache.shape, step
        keys, values = _keys_and_values(ctx.seen, query.shape[-1])
        weights = _products(keys, query).softmax(-1)
        # For second derivatives, also keep the rows with their graph; the cache does not hold it.
        ctx.save_for_backward(query, weights, *rows)
        return torch.bmm(weights.unsqueeze(1), values).squeeze(1), cache

    @staticmethod
    def backward(ctx: Context, grad: Tensor | None, to_cache: Tensor | None) -> Gradients:
        query, weights, *rows = ctx.saved_tensors
        if to_cache is None:  # this is the last step
            to_cache = query.new_zeros(ctx.shape)
        if differentiated():
            return *_attend_gradients(query, rows, grad, to_cache), None, None
        if grad is None:
            return None, to_cache[:, ctx.step].contiguous(), to_cache, None, None
        keys, values = _keys_and_values(ctx.seen, query.shape[-1])
        to_keys, to_values = _keys_and_values(to_cache[:, : ctx.step + 1], query.shape[-1])
        to_weights = _products(values, grad).mul_(weights)
        to_scores = to_weights.addcmul_(weights, to_weights.sum(-1, keepdim=True), value=-1)
        to_keys.addcmul_(to_scores.unsqueeze(-1), query.unsqueeze(1))
        to_values.addcmul_(weights.unsqueeze(-1), grad.unsqueeze(1))
        to_query = torch.bmm(to_scores.unsqueeze(1), keys).squeeze(1)
        return to_query, to_cache[:, ctx.step].contiguous(), to_cache, None, None


def _attend_gradients(
    query: Tensor, rows: Sequence[Tensor], grad: Tensor | None, to_cache: Tensor
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Return the gradients of query, row and cache, in operations that PyTorch can differentiate."""
    to_query = None
    if grad is not None:
        needed = [x.requires_grad for x in (query, *rows)]
        inputs = (query, *rows)
        to_query, *to_rows = gradients(lambda query, *rows: attend_over(query, list(rows)), inputs, [grad], needed)
        given = torch.stack([torch.zeros_like(x) if to is None else to for x, to in zip(rows, to_rows, strict=True)], 1)
        to_cache = to_cache + F.pad(given, (0, 0, 0, to_cache.shape[1] - len(rows)))
    return to_query, to_cache[:, len(rows) - 1], to_cache


def _keys_and_values(rows: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return the first and the last `width` columns; they are the same if there are only `width`."""
    return rows[..., :width], rows[..., -width:]


def _products(rows: Float[Tensor, "n seen width"], query: Float[Tensor, "n width"]) -> Float[Tensor, "n seen"]:
    """Return the product of each row with its query; a batched matrix-vector product is several times slower."""
    return (rows * query.unsqueeze(1)).sum(-1)


class Cache:
    """Cache of attention: for each position so far, one row with its keys and values, which may be equal.

    Args:
        length: number of positions to hold.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._step = 0
        self._is_plain = False
        self._rows: Tensor | None = None  # [stack * batch * heads, length, width]
        self._seen: list[Tensor] = []  # the same rows, each as passed to `attend`

    def attend(self, query: Query, row: Float[Tensor, "*lead width"]) -> Query:
        """Add a position, and return the mean of the values so far with weights softmax(keys . query)."""
        if tracing():
            self._seen.append(row)
            return attend_over(query, self._seen)
        rows = row.flatten(0, -2)
        self._seen.append(rows)
        # A plain cache stays plain: `torch.compile` may compile some steps and not others.
        self._is_plain = self._is_plain or not usable(_Attend)
        if self._is_plain:
            return attend_over(query.flatten(0, -2), self._seen).view(query.shape)
        if self._rows is None:
            self._rows = rows.new_zeros(len(rows), self._length, row.shape[-1])
        mean: Tensor
        mean, self._rows = apply(_Attend, query.flatten(0, -2), rows, self._rows, self._step, list(self._seen))
        self._step += 1
        return mean.view(query.shape)

    def attend_by_head(self, projected: Projected, heads: int) -> Rows:
        """Add a position with queries, keys and values of each head; return the heads' outputs, side by side."""
        if tracing():
            self._seen.append(projected)
            return attend_newest(self._seen, heads)
        return self.attend(*_query_and_row(projected, heads)).flatten(-2)


@traceable
def attend_over(query: Query, rows: list[Float[Tensor, "*lead width"]]) -> Query:
    """Return the mean of values with weights softmax(keys . query); see Cache.attend."""
    keys, values = _keys_and_values(torch.stack(rows, -2), query.shape[-1])
    weights = (keys * query.unsqueeze(-2)).sum(-1).softmax(-1)
    return (weights.unsqueeze(-1) * values).sum(-2)


@traceable
def attend_newest(projected: list[Projected], heads: int) -> Rows:
    """Return the attention output of the last position; see Cache.attend_by_head."""
    pairs = [_query_and_row(one, heads) for one in projected]
    return attend_over(pairs[-1][0], [row for _, row in pairs]).flatten(-2)


def _by_head(projected: Tensor, heads: int) -> Tensor:
    """Return queries, keys and values [..., heads, 3 * width]; each head has them in this order."""
    found: Tensor = projected.unflatten(-1, (heads, projected.shape[-1] // heads))
    return found


def _query_and_row(projected: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """Return the queries of each head, scaled, and its keys and values in one row."""
    by_head = _by_head(projected, heads)
    width = by_head.shape[-1] // 3
    return by_head[..., :width] / math.sqrt(width), by_head[..., width:]


def library_projection_(projection: nn.Linear, of: int = 3) -> None:
    """Initialize a projection like one of the `of` parts (queries, keys, values) of PyTorch's Xavier-uniform matrix."""
    bound = math.sqrt(6 / (projection.in_features + of * projection.out_features))
    nn.init.uniform_(projection.weight, -bound, bound)
    if projection.bias is not None:  # type: ignore[redundant-expr]
        nn.init.zeros_(projection.bias)


class SelfAttention(nn.Module):
    """Self-attention with several heads (Vaswani et al. 2017, 3.2).

    Only the output has a bias. A bias of the keys would have no effect (see DecoderLayer), and the layer norm before
    already has a bias.

    Args:
        size: E.
        heads: number of heads, of size E / heads each.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        # The outputs are query, key and value of the first head, then of the next, so a cache row is one slice.
        self.project = Linear(size, 3 * size, bias=False)
        self.out = Linear(size, size)
        library_projection_(self.project, 1)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Sequences, causal: bool = False) -> Sequences:
        """Attend from all positions at once; if `causal`, each position only sees positions up to its own."""
        return self.out(attend_by_head(self.project(x), self.heads, causal))

    def step(self, x: Hidden, cache: Cache) -> Hidden:
        """Attend from the newest position, which sees the cached positions and itself."""
        return self.out(cache.attend_by_head(self.project(x), self.heads))


@traceable
def attend_by_head(
    projected: Float[Tensor, "*stack batch length queries_keys_values"], heads: int, causal: bool
) -> Sequences:
    """Return the means of the values of each head, side by side; see SelfAttention."""
    by_head = _by_head(projected, heads).flatten(0, -4).transpose(1, 2)  # [batch, heads, length, 3 * width]
    query, key, value = by_head.chunk(3, -1)
    seen = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    if usable(_Attend) and seen.grad_fn is not None and seen.grad_fn.name().startswith("ScaledDotProduct"):
        seen.register_hook(_refuse_second_derivatives)
    return seen.transpose(1, 2).reshape(*projected.shape[:-1], projected.shape[-1] // 3)


def _refuse_second_derivatives(grad: Tensor) -> None:
    """Raise NotImplementedError if a backward pass through PyTorch's fused attention is differentiated."""
    if torch.is_grad_enabled():
        raise NotImplementedError(
            "PyTorch's fused attention has no second derivatives; run the forward pass within "
            "`with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):`."
        )


@traceable
def feed_forward(
    x: Rows,
    scale: Float[Tensor, "*stack hidden"],
    shift: Float[Tensor, "*stack hidden"],
    widen: Float[Tensor, "*stack wide hidden"],
    widen_bias: Float[Tensor, "*stack wide"],
    narrow: Float[Tensor, "*stack hidden wide"],
    narrow_bias: Float[Tensor, "*stack hidden"],
) -> Rows:
    """Return x + W2 gelu(W1 norm(x) + b1) + b2; see PreNormLayer."""
    wide = F.gelu(linear(normalise(x, scale, shift), widen, widen_bias))
    fed: Tensor = x + linear(wide, narrow, narrow_bias)
    return fed


class PreNormLayer(nn.Module):
    """x + attention(norm(x)), then x + W2 gelu(W1 norm(x) + b1) + b2 (Xiong et al. 2020).

    Args:
        size: E.
        heads: number of heads of the attention.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = LayerNorm(size), LayerNorm(size)
        self.attention = SelfAttention(size, heads)
        self.widen, self.narrow = Linear(size, WIDENING * size), Linear(WIDENING * size, size)

    def forward(self, x: Sequences, causal: bool = False) -> Sequences:
        """Return the outputs at all positions; if `causal`, each position only sees positions up to its own."""
        return self._fed_forward(x + self.attention(self.norm1(x), causal))

    def step(self, x: Hidden, cache: Cache) -> Hidden:
        """Return the output at the newest position."""
        return self._fed_forward(x + self.attention.step(self.norm1(x), cache))

    def _fed_forward(self, x: Tensor) -> Tensor:
        norm, widen, narrow = self.norm2, self.widen, self.narrow
        return feed_forward(x, norm.weight, norm.bias, widen.weight, widen.bias, narrow.weight, narrow.bias)


MOST_HEADS = 4  # default limit


def pre_norm_layers(size: int, layers: int, heads: int | None) -> list[PreNormLayer]:
    """Create the layers of a model. The number of heads defaults to the largest up to 4 that divides the hidden size.

    Raises:
        InvalidSettingError: `layers` or `heads` is not a whole number of at least 1.
        IncompatibleError: the heads do not divide the hidden size.
    """
    if heads is None:
        heads = next(n for n in range(MOST_HEADS, 0, -1) if size % n == 0)
    for what, value in (("layers", layers), ("heads", heads)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidSettingError(f"{what} must be a whole number of at least 1, not {value!r}.")
    if size % heads:
        raise IncompatibleError(f"{heads} heads do not divide a hidden size of {size}; use another number of heads.")
    return [PreNormLayer(size, heads) for _ in range(layers)]


# -- the decoder layer of Icy22's transformer senders: one head, and a memory of one vector ----------------------------


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
def after_attention(x: Hidden, *weights: Float[Tensor, "*_stack _rows _columns"]) -> Hidden:
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

    def fold(self, memory: Hidden, table: Float[Tensor, "*stack width hidden"] | None = None) -> _Folded:
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

    def step(self, rows: Float[Tensor, "*stack batch width"], folded: _Folded, cache: Cache) -> Hidden:
        """Return the output at the newest position, [..., batch, hidden]."""
        query = rows_times(rows, folded.query, folded.query_shift)
        mean = cache.attend(query, rows)
        if folded.table is None:
            attended = rows_times(mean, folded.value, rows + folded.shift)
        else:
            attended = rows_times(mean, folded.value, rows_times(rows, folded.table, folded.shift))
        return after_attention(as_stack(attended), *folded.after).view(attended.shape)
