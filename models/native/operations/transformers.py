"""Layer norms and feed-forward layers."""

import torch

from icy.models import attention, layers
from icy.models.native.builder import NotNativeError
from icy.models.native.lower import Lowering, lowers
from icy.models.native.slabs import Code, RowPanel, Slab, Steps, Value
from icy.models.native.trace import Node

from .cells import activated
from .shapes import transposed
from .sums import added


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
        if add:  # the earlier gradient stays, so products can still read it
            x.grads = [build.slab(None, size)]
        build.emit(
            *(Code.NORM_BACK, None, size, grads[0], normal, rate, scale.slabs[0], of_scale, of_shift),
            *((x.grads or to)[0], to[0] if add else None),
            back=True,
        )

    return out


@lowers(attention.after_attention)
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


@lowers(layers.normalise)
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
    # The slopes take the place of x if nothing else reads x.
    slopes = panel if panel.spare or not out.trained else build.panel(panel.rows, panel.columns, False)
    for p, columns in enumerate(panel.columns):
        slope = slopes.slabs[p] if out.trained else None
        build.emit(Code.GELU, panel.rows, columns, panel.slabs[p], out.slabs[p], slope)

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        to, add = build.gradient_target(panel)
        for p, columns in enumerate(panel.columns):
            build.emit(Code.GELU_BACK, panel.rows, columns, grads[p], slopes.slabs[p], to[p], add, back=True)

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
