"""Cells, activations and stop gates."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from icy.models import base
from icy.models.kernels import cell_steps
from icy.models.native.builder import NotNativeError
from icy.models.native.lower import RELU, Lowering, Node, demands, lowers
from icy.models.native.slabs import Code, Field, MatrixView, RowPanel, Slab, Steps, Stops, Tokens, Value, Zero

ACTIVATIONS = {"identity": 0, "tanh": 1, "relu": RELU}  # as in cells.h


def _width(number: int, place: int = 0) -> Callable[[Node, int], list[tuple[object, int]]]:
    return lambda node, parts: [(node.args[place], number)]


demands(cell_steps.lstm_step, cell_steps.sru_step)(_width(4))
demands(cell_steps.highway_step, cell_steps.sru_state_step)(_width(2))


@demands(cell_steps.gru_step)
def _gru_parts(node: Node, parts: int) -> list[tuple[object, int]]:
    return [(node.args[0], 3), (node.args[1], 3)]


def _own(low: Lowering, panel: RowPanel) -> RowPanel:
    """Return a panel that may be overwritten: this panel if it has no other user, otherwise a copy."""
    if panel.spare:
        return panel
    copy = low.builder.scaled(panel, 1.0)
    copy.users = 1
    return copy


def _share(low: Lowering, panel: RowPanel, grads: list[Slab]) -> None:
    """Add the gradient of examples to a panel of examples, or its sum to a row."""
    build = low.builder
    if not panel.trained:
        return
    if panel.rows is None:
        build.pass_gradient(panel, grads, None)
        return
    to, _ = build.gradient_target(panel)
    for grad, total, columns in zip(grads, to, panel.columns, strict=True):
        build.emit(Code.ADD_ROWS, None, grad, columns, total, back=True)


@lowers(cell_steps.gru_step)
def _gru(low: Lowering, node: Node, parts: int, from_input: Value, from_state: Value, h: Value) -> Value:
    build = low.builder
    x, s, before = build.as_panel(from_input, 3), _own(low, build.as_panel(from_state, 3)), build.examples(h)
    row, size = x.rows == 1, before.width
    trained = x.trained or s.trained or before.trained
    n = x.slabs[2] if not row and x.spare else build.slab(None, size)
    out = build.panel(None, [size], trained)
    build.emit(Code.GRU, None, size, row, before.slabs[0], n, out.slabs[0], *x.slabs, *s.slabs)

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        to_h, add = build.scratch(before)
        totals = build.gradient_target(x)[0] if row and x.trained else [None] * 3
        build.emit(
            *(Code.GRU_BACK, None, size, add, grads[0], before.slabs[0], n, to_h[0]),
            *(*s.slabs, *totals, None),
            back=True,
        )
        build.pass_gradient(s, s.slabs, None)
        if not row:
            build.pass_gradient(x, [*s.slabs[:2], n], None)

    return out


@lowers(cell_steps.lstm_step)
def _lstm(low: Lowering, node: Node, parts: int, gates: Value, c: Value) -> tuple[RowPanel, RowPanel]:
    build = low.builder
    g, before = _own(low, build.as_panel(gates, 4)), build.examples(c)
    size, trained = before.width, g.trained or before.trained
    out, new, tanh = build.panel(None, [size], trained), build.panel(None, [size], trained), build.slab(None, size)
    build.emit(Code.LSTM, None, size, before.slabs[0], new.slabs[0], tanh, out.slabs[0], *g.slabs)

    def back() -> None:
        if out.grads is None and new.grads is None:
            return
        to_c, add = build.scratch(before)
        of_out, of_new = (p.grads[0] if p.grads else None for p in (out, new))
        build.emit(Code.LSTM_BACK, None, size, add, of_out, of_new, before.slabs[0], tanh, to_c[0], *g.slabs, back=True)
        build.pass_gradient(g, g.slabs, None)

    if trained and build.trained:
        build.add_backward(None, back)
    return out, new


@lowers(cell_steps.highway_step)
def _highway(low: Lowering, node: Node, parts: int, gates: Value, s: Value, kind: str) -> Value:
    build = low.builder
    x, before = build.as_panel(gates, 2), build.examples(s)
    row, size = x.rows == 1, before.width
    slabs = x.slabs if not row and x.spare else [build.slab(None, size) for _ in range(2)]
    trained = x.trained or before.trained
    out = build.panel(None, [size], trained)
    fields: list[Field] = [*x.slabs, *slabs]
    build.emit(Code.HIGHWAY, None, size, row, ACTIVATIONS[kind], before.slabs[0], out.slabs[0], *fields)

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        to, add = build.scratch(before)
        of_s = [grads[0], before.slabs[0], to[0]]
        build.emit(Code.HIGHWAY_BACK, None, size, add, ACTIVATIONS[kind], *of_s, *slabs, back=True)
        _share(low, x, slabs)

    return out


@lowers(cell_steps.sru_step)
def _sru(
    low: Lowering, node: Node, parts: int, gates: Value, weight: Value, c: Value, kind: str
) -> tuple[RowPanel, RowPanel]:
    build = low.builder
    x, w, before = build.as_panel(gates, 4), _rows_of(low, weight), build.examples(c)
    row, size = x.rows == 1, before.width
    trained = x.trained or before.trained or w[0].trained
    out, new = build.panel(None, [size], trained), build.panel(None, [size], trained)
    new.kept = True  # its gradient is computed from its values
    f, r = build.slab(None, size), build.slab(None, size)
    number = ACTIVATIONS[kind]
    weights = [p.slabs[0] for p in w]
    shown = build.slab(None, size) if build.trained and number else None  # the activated state
    build.emit(
        *(Code.SRU, None, size, row, number, before.slabs[0], f, r, new.slabs[0], shown, out.slabs[0]),
        *(*x.slabs, *weights),
    )

    def back() -> None:
        if out.grads is None and new.grads is None:
            return
        to_c, add = build.scratch(before)
        of_out, of_new = (p.grads[0] if p.grads else None for p in (out, new))
        grads: list[Slab | None] = [None] * 4 if row else [build.slab(None, size) for _ in range(4)]
        of_w: list[Field] = [build.gradient_target(p)[0][0] if p.trained else None for p in w]
        of_x: list[Field] = list(build.gradient_target(x)[0]) if row and x.trained else [None] * 4
        operation = build.emit(
            *(Code.SRU_BACK, None, size, row, number, add, of_out, of_new, before.slabs[0], f, r),
            *(shown or new.slabs[0], to_c[0], *x.slabs, *weights, *grads, 0),
            back=True,
        )
        operation.lists.append((len(operation.fields) - 1, of_w + of_x))
        if not row:
            build.pass_gradient(x, [g for g in grads if g is not None], None)

    if trained and build.trained:
        build.add_backward(None, back)
    return out, new


def _rows_of(low: Lowering, weight: Value) -> list[RowPanel]:
    if not isinstance(weight, MatrixView):
        raise NotNativeError("an SRU's state has computed weights")
    offsets = [weight.offset + i * weight.by_row for i in range(weight.rows)]
    return [low.builder.as_panel(replace(weight, offset=one, rows=1, by_column=1)) for one in offsets]


@lowers(cell_steps.sru_state_step)
def _sru_state(low: Lowering, node: Node, parts: int, gates: Value, weight: Value, c: Value) -> Value:
    build = low.builder
    x, (w,), before = build.as_panel(gates, 2), _rows_of(low, weight), build.examples(c)
    row, size = x.rows == 1, before.width
    trained = x.trained or before.trained or w.trained
    out, gate = build.panel(None, [size], trained), build.slab(None, size)
    build.emit(Code.SRU_STATE, None, size, row, before.slabs[0], gate, out.slabs[0], w.slabs[0], *x.slabs)

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        to, add = build.scratch(before)
        of_x: list[Field] = [None] * 2 if row else [build.slab(None, size) for _ in range(2)]
        totals: list[Field] = list(build.gradient_target(x)[0]) if row and x.trained else [None] * 2
        of_w = build.gradient_target(w)[0][0] if w.trained else None
        build.emit(
            *(Code.SRU_STATE_BACK, None, size, row, add, grads[0], before.slabs[0], gate, to[0], w.slabs[0]),
            *(*x.slabs, *of_x, of_w, *totals),
            back=True,
        )
        if not row:
            build.pass_gradient(x, [g for g in of_x if isinstance(g, Slab)], None)

    return out


@lowers(cell_steps.tanh, Tensor.tanh, torch.tanh)
def _tanh(low: Lowering, node: Node, parts: int, x: Value) -> Value:
    return activated(low, x, "tanh")


@lowers(Tensor.relu, torch.relu, F.relu)
def _relu(low: Lowering, node: Node, parts: int, x: Value, inplace: bool = False) -> Value:
    if inplace:
        raise NotNativeError("it overwrites values that it computed")
    return activated(low, x, "relu")


def activated(low: Lowering, x: Value, kind: str) -> Value:
    if isinstance(x, Steps):
        return Steps([activated(low, step, kind) for step in x.steps])
    build = low.builder
    panel = build.as_panel(x)
    out = build.panel(panel.rows, panel.columns, panel.trained)
    out.kept = True
    number = ACTIVATIONS[kind]
    for p, columns in enumerate(panel.columns):
        build.emit(Code.APPLY, panel.rows, columns, number, panel.slabs[p], out.slabs[p])

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        to, add = build.gradient_target(panel)
        for p, columns in enumerate(panel.columns):
            of_y = [grads[p], out.slabs[p], to[p]]
            build.emit(Code.APPLY_BACK, panel.rows, columns, number, *of_y, add, back=True)

    return out


@lowers(Tensor.mean)
def _mean(low: Lowering, node: Node, parts: int, x: Value, dim: int) -> Value:
    shape = node.args[0].tensor.shape
    if not isinstance(x, Steps) or dim % len(shape) == len(shape) - 1 or shape[dim] == low.trace.batch:
        raise NotNativeError("it takes a mean over examples or columns")
    build = low.builder
    places = [step for step in x.steps if isinstance(step, Tokens)]
    if places:
        out = build.panel(None, [places[0].values], False)
        build.emit(Code.COUNT, None, out.width, places[0].first, len(places), out.slabs[0], 1 / len(places))
        return out
    panels = [build.examples(s) for s in x.steps]
    out = build.panel(panels[0].rows, panels[0].columns, any(p.trained for p in panels))
    for i, panel in enumerate(panels):
        build.emit(Code.COPY, out.rows, out.width, panel.slabs[0], out.slabs[0], 1 / len(panels), i > 0)

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        for panel in panels:
            to, add = build.gradient_target(panel)
            build.emit(Code.COPY, out.rows, out.width, grads[0], to[0], 1 / len(panels), add, back=True)

    return out


@lowers(Tensor.__getitem__)
def _chosen(low: Lowering, node: Node, parts: int, x: Value, index: Any) -> Value:
    """Return a step of a sequence, rows of a matrix, or columns of examples, as a product with ones on the diagonal."""
    shape = node.args[0].tensor.shape
    chosen = _chosen_places(index if isinstance(index, list) else [index], shape)
    if not chosen:
        return x
    ((axis, places), *others) = chosen.items()
    if isinstance(x, Tokens) and not x.values and not others and axis == 1 and isinstance(places, int):
        return Tokens(x.first + places % x.places, 1, 0)
    if isinstance(x, Steps) and not others and shape[axis] == len(x.steps) and axis < len(shape) - 1:
        return Steps(x.steps[places]) if isinstance(places, slice) else x.steps[places]
    if isinstance(x, MatrixView) and not others and axis == len(shape) - 2 and x.rows == shape[axis]:
        rows = range(x.rows)[places] if isinstance(places, slice) else range(places % x.rows, places % x.rows + 1)
        if rows.step == 1 and rows:
            return replace(x, offset=x.offset + rows.start * x.by_row, rows=len(rows))
    if not (isinstance(x, RowPanel) and x.rows is None and isinstance(index, list) and index[:-1] == [...]):
        raise NotNativeError("it takes something other than columns of examples")
    return low.builder.linear(
        x, low.constant(torch.eye(x.width, dtype=torch.float32, device="cpu")[:, index[-1]]), None, parts
    )


def _chosen_places(index: list[Any], shape: torch.Size) -> dict[int, Any]:
    """Return the places that an index selects, by axis; axes that are selected completely are left out."""
    items = [one for one in index if one is not None]
    if ... in items:
        at = items.index(...)
        items[at : at + 1] = [slice(None)] * (len(shape) - len(items) + 1)
    return {
        axis: one
        for axis, one in enumerate(items)
        if not isinstance(one, slice) or range(shape[axis])[one] != range(shape[axis])
    }


@lowers(torch.stack, base.time_last)
def _sequence(low: Lowering, node: Node, parts: int, values: list[Value], dim: int = 0) -> Value:
    return Steps(values)


@lowers(cell_steps.mix)
def _mix(low: Lowering, node: Node, parts: int, a: Value, b: Value | None, s: Value) -> Value:
    build = low.builder
    x, y = build.examples(a), None if b is None else build.examples(b)
    if not isinstance(s, Stops):
        raise NotNativeError("it mixes by something other than a stop gate")
    size = x.width
    out = build.panel(None, [size], x.trained or s.trained or (y is not None and y.trained))
    other = None if y is None else y.slabs[0]
    build.emit(Code.MIX, None, size, x.slabs[0], other, s.slab, out.slabs[0])

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        to_x, add_x = build.scratch(x)
        to_y, add_y = build.gradient_target(y) if y is not None and y.trained else ([None], False)
        to_s, add_s = build.stop_gradient_target(s)
        build.emit(
            *(Code.MIX_BACK, None, size, grads[0], x.slabs[0], other, s.slab, to_x[0], add_x, to_y[0], add_y),
            *(to_s, add_s),
            back=True,
        )

    return out


@lowers(cell_steps.damp)
def _damp(low: Lowering, node: Node, parts: int, x: Value, s: Value) -> Value:
    return x if isinstance(x, Zero) else _mix(low, node, parts, x, None, s)


@lowers(cell_steps.of_first)
def _of_first(low: Lowering, node: Node, parts: int, s: Value) -> Value:
    build = low.builder
    if not isinstance(s, Stops):
        raise NotNativeError("it takes the first row of something other than stop gates")
    if build.trained and not build.whole:
        raise NotNativeError("its gates depend on the batch")
    shared = Stops(build.vector(), s.trained)
    build.emit(Code.OF_FIRST, None, s.slab, shared.slab, build.slab(1, 1))

    def back() -> None:
        if shared.grad is not None:
            build.emit(Code.OF_FIRST_BACK, None, shared.grad, *build.stop_gradient_target(s), back=True)

    if shared.trained:
        build.add_backward(None, back)
    return shared


@lowers(cell_steps.stop_gate)
def _stop(low: Lowering, node: Node, parts: int, h: Value, weight: Value, bias: Value) -> Value:
    build = low.builder
    x, w, b = build.examples(h), build.as_panel(weight), build.as_panel(bias)
    stops = Stops(build.vector(), build.trained and (x.trained or w.trained))
    build.emit(Code.STOP, None, x.width, x.slabs[0], w.slabs[0], b.slabs[0], stops.slab)

    def back() -> None:
        if stops.grad is not None:
            to, add = build.scratch(x)
            of_w, of_b = (build.gradient_target(p)[0][0] if p.trained else build.scratch(p)[0][0] for p in (w, b))
            build.emit(
                *(Code.STOP_BACK, None, x.width, stops.grad, stops.slab, x.slabs[0], w.slabs[0], to[0], add),
                *(of_w, of_b),
                back=True,
            )

    if stops.trained:
        build.add_backward(None, back)
    return stops
