"""Layer norms, attention and feed-forward layers."""

import torch

from icy.models import attention, decoder, layer_norm
from icy.models.native.builder import NotNativeError
from icy.models.native.lower import Lowering, demands, lowers
from icy.models.native.slabs import Code, Field, Slab, padded
from icy.models.native.trace import Node
from icy.models.native.values import RowPanel, Steps, Value

from .cells import activated
from .shapes import transposed
from .sums import added

LONGEST = 512  # largest number of positions of an attention


def _norm(low: Lowering, x: RowPanel, scale: RowPanel, shift: RowPanel | None) -> RowPanel:
    build = low.builder
    size = x.width
    out = build.panel(None, [size], x.trained or scale.trained)
    normal, rate = build.slab(None, size), build.vector()
    below = None if shift is None else shift.slabs[0]
    build.emit(Code.NORM, None, size, x.slabs[0], scale.slabs[0], below, out.slabs[0], normal, rate)

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        of_scale = build.gradient_target(scale)[0][0] if scale.trained else None
        of_shift = build.gradient_target(shift)[0][0] if shift is not None and shift.trained else None
        to, add = build.scratch(x)
        build.emit(
            *(Code.NORM_BACK, None, size, grads[0], normal, rate, scale.slabs[0], of_scale, of_shift),
            *(to[0], add),
            back=True,
        )

    return out


@lowers(attention.attend_over)
def _attend(low: Lowering, node: Node, parts: int, query: Value, rows: list[Value]) -> Value:
    build = low.builder
    q, seen = build.examples(query), [build.examples(r) for r in rows]
    if any(p.width != q.width for p in seen) or len(seen) > LONGEST:
        raise NotNativeError("its attention has several heads, or values that differ from its keys")
    size = q.width
    out = build.panel(None, [size], q.trained or any(p.trained for p in seen))
    weights = build._slab(True, build.chunk * len(seen), False)
    slabs: list[Field] = [p.slabs[0] for p in seen]
    operation = build.emit(Code.ATTEND, None, size, q.slabs[0], weights, out.slabs[0], len(seen), 0)
    operation.lists.append((5, slabs * 2))

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        of_rows: list[Field] = []
        for panel in seen:
            to, add = build.scratch(panel)
            if not add:
                build.emit(Code.FILL, None, size, to[0], 0.0, back=True)
            of_rows.append(to[0])
        to_q, add_q = build.scratch(q)
        of_q: list[Field] = [q.slabs[0], weights, to_q[0], add_q]
        operation = build.emit(Code.ATTEND_BACK, None, size, grads[0], *of_q, len(seen), 0, back=True)
        operation.lists.append((7, slabs * 2 + of_rows * 2))

    return out


@lowers(decoder.after_attention)
def _after_attention(low: Lowering, node: Node, parts: int, x: Value, *weights: Value) -> Value:
    build = low.builder
    scale1, shift1, scale2, shift2, widen, widen_bias, narrow, narrow_bias, scale3, shift3 = weights
    scales = [build.as_panel(v) for v in (scale1, scale2, scale3)]
    first = once(_norm(low, build.examples(x), scales[0], None), 1)
    crossed = once(added(low, node, 1, first, shift1), 1)
    h = once(_norm(low, crossed, scales[1], build.as_panel(shift2)), 2)
    wide = once(activated(low, once(build.linear(h, widen, widen_bias, 1), 1), "relu"), 1)
    narrowed = once(build.linear(wide, narrow, once(added(low, node, 1, h, narrow_bias), 1), 1), 1)
    return _norm(low, narrowed, scales[2], build.as_panel(shift3))


def once(value: Value, users: int) -> RowPanel:
    assert isinstance(value, RowPanel)
    value.users = users
    return value


@lowers(layer_norm.normalise)
def _normalised(low: Lowering, node: Node, parts: int, x: Value, scale: Value, shift: Value) -> Value:
    if isinstance(x, Steps):
        return Steps([_normalised(low, node, parts, step, scale, shift) for step in x.steps])
    return _norm(low, low.builder.examples(x), *(low.builder.as_panel(v) for v in (scale, shift)))


@lowers(torch._C._nn.gelu)
def _gelu(low: Lowering, node: Node, parts: int, x: Value, approximate: str = "none") -> Value:
    if isinstance(x, Steps):
        return Steps([_gelu(low, node, parts, step, approximate) for step in x.steps])
    if approximate != "none":
        raise NotNativeError(f"it approximates GELU by {approximate}")
    build = low.builder
    panel = build.as_panel(x)
    out = build.panel(panel.rows, panel.columns, panel.trained)
    for p, columns in enumerate(panel.columns):
        build.emit(Code.GELU, panel.rows, columns, panel.slabs[p], out.slabs[p])

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        to, add = build.gradient_target(panel)
        for p, columns in enumerate(panel.columns):
            build.emit(Code.GELU_BACK, panel.rows, columns, grads[p], panel.slabs[p], to[p], add, back=True)

    return out


@lowers(attention.feed_forward)
def _fed_forward(low: Lowering, node: Node, parts: int, x: Value, *weights: Value) -> Value:
    if isinstance(x, Steps):  # all operations of one position, then of the next
        return Steps([_fed_forward(low, node, parts, step, *weights) for step in x.steps])
    build = low.builder
    scale, shift, widen, widen_bias, narrow, narrow_bias = weights
    before = build.examples(x)
    before.users += 1  # for the norm and the sum
    h = once(_norm(low, before, build.as_panel(scale), build.as_panel(shift)), 1)
    wide = once(build.linear(h, transposed(low, node, 1, widen), widen_bias, 1), 1)
    fed = build.linear(_gelu(low, node, 1, wide), transposed(low, node, 1, narrow), narrow_bias, 1)
    found: Value = added(low, node, 1, before, fed)
    return found


@demands(attention.attend_by_head)
def _parts_of_heads(node: Node, parts: int) -> list[tuple[object, int]]:
    return [(node.args[0], 3 * node.args[1])]


@lowers(attention.attend_by_head)
def _attend_by_head(low: Lowering, node: Node, parts: int, projected: Value, heads: int, causal: bool) -> Value:
    if causal or not isinstance(projected, Steps):
        raise NotNativeError("an attention over all positions at once that does not cover all positions of a message")
    seen = [low.builder.as_panel(step, 3 * heads) for step in projected.steps]
    return Steps(list(_attended(low, seen, seen, heads)))


@demands(attention.attend_newest)
def _parts_of_all_heads(node: Node, parts: int) -> list[tuple[object, int]]:
    return [(one, 3 * node.args[1]) for one in node.args[0]]


@lowers(attention.attend_newest)
def _attend_newest(low: Lowering, node: Node, parts: int, projected: list[Value], heads: int) -> Value:
    seen = [low.builder.as_panel(one, 3 * heads) for one in projected]
    return _attended(low, seen[-1:], seen, heads)[0]


def _attended(low: Lowering, asking: list[RowPanel], seen: list[RowPanel], heads: int) -> list[RowPanel]:
    """Return the attention output of each position, one part per head.

    Args:
        low: the lowering.
        asking, seen: positions with the queries, and positions to attend to. Each has a part for the queries, keys and
            values of each head.
        heads: number of heads.
    """
    if len(seen) > LONGEST:
        raise NotNativeError(f"an attention over more than {LONGEST} positions")
    if len(set(seen)) < len(seen):
        raise NotNativeError("an attention that reads the same rows twice")
    build = low.builder
    width = seen[0].columns[0]
    outs = [build.panel(None, [width] * heads, any(p.trained for p in seen)) for _ in asking]
    size = build.chunk * len(asking) * padded(len(seen))
    weights = [build._slab(True, size, False) for _ in range(heads)]

    def emit(code: Code, head: int, lists: list[list[Field]], *add: bool) -> None:
        fields = [width, len(asking), len(seen), weights[head], width**-0.5, *add, 0]
        operation = build.emit(code, None, *fields, back=code == Code.ATTEND_ALL_BACK)
        operation.lists.append((len(fields) - 1, [f for some in lists for f in some]))

    def read(head: int) -> list[list[Field]]:
        some = ((asking, 3 * head), (seen, 3 * head + 1), (seen, 3 * head + 2), (outs, head))
        return [[p.slabs[part] for p in panels] for panels, part in some]

    for head in range(heads):
        emit(Code.ATTEND_ALL, head, read(head), False, False)
    low.attended.update(set(seen))
    low.asking.update(set(asking))

    def back() -> None:
        low.asking.subtract(set(asking))
        if all(out.grads is None for out in outs):
            return
        for out in outs:
            if out.grads is None:  # nothing reads this position
                _cleared(low, build.gradient_target(out)[0], width)
        grads, add, add_queries = _gradients_of_attention(low, asking, seen)
        for head in range(heads):
            some = ((asking, 3 * head), (seen, 3 * head + 1), (seen, 3 * head + 2))
            to: list[list[Field]] = [[grads[p][part] for p in panels] for panels, part in some]
            of_means: list[Field] = [out.grads[head] for out in outs if out.grads]
            emit(Code.ATTEND_ALL_BACK, head, [*read(head)[:3], of_means, *to], add, add_queries)

    if outs[0].trained:
        build.add_backward(None, back)
    return outs


def _cleared(low: Lowering, slabs: list[Slab], width: int) -> None:
    for slab in slabs:
        low.builder.emit(Code.FILL, None, width, slab, 0.0, back=True)


def _gradients_of_attention(
    low: Lowering, asking: list[RowPanel], seen: list[RowPanel]
) -> tuple[dict[RowPanel, list[Slab]], bool, bool]:
    """Return the targets of an attention's gradients, and whether to add to keys and values, and to queries.

    If only attentions read a panel, its queries have no gradient until the last attention with these queries runs its
    backward pass. This attention writes the gradient instead of adding, so the steps of a sender clear no memory.
    """
    fresh = {p for p in seen if p.grads is None}
    grads = {p: low.builder.scratch(p)[0] for p in dict.fromkeys(seen)}
    width = seen[0].columns[0]
    add = len(fresh) < len(seen)
    unwritten = set()
    for panel, slabs in grads.items():
        queries = slabs[::3]
        if panel in fresh and add:
            _cleared(low, [s for s in slabs if s not in queries], width)
        if panel in fresh and panel not in asking and (panel.users != low.attended[panel] or not low.asking[panel]):
            _cleared(low, queries, width)
        elif panel in fresh:
            low.queries_unwritten.add(panel)
        if panel in asking and panel in low.queries_unwritten:
            unwritten.add(panel)
    low.queries_unwritten -= unwritten
    add_queries = len(unwritten) < len(asking)
    for panel in grads:
        if add_queries and panel in unwritten:
            _cleared(low, grads[panel][::3], width)
    return grads, add, add_queries
