"""Lower functions that change the shape of numbers or read the input, products and sums."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from icy.models import base, cells, layers
from icy.models.native.builder import NotNativeError, columns_of
from icy.models.native.lower import TURN, Lowering, Node, TracedOutput, demands, lowers, matrix_of
from icy.models.native.slabs import (
    BLOCK,
    At,
    Code,
    MatrixView,
    RowPanel,
    Slab,
    Space,
    Steps,
    Tokens,
    Turned,
    Value,
    Weights,
    Zero,
)

# -- functions that change the shape of numbers, or read the input -----------------------------------------------------


@demands(
    Tensor.unsqueeze, Tensor.reshape, Tensor.view, Tensor.expand, Tensor.flatten, Tensor.unbind, Tensor.contiguous,
    Tensor.transpose, Tensor.squeeze, Tensor.repeat,
)  # fmt: skip
def _same_parts(node: Node, parts: int) -> list[tuple[object, int]]:
    return [(node.args[0], parts)]


@lowers(Tensor.unsqueeze, Tensor.reshape, Tensor.view, Tensor.expand, Tensor.contiguous, Tensor.unflatten)
def _seen_otherwise(low: Lowering, node: Node, parts: int, x: Value, *_: object, **__: object) -> Value:
    """Return the same numbers. Leading axes of size 1, examples and places are not distinguished here."""
    before, after = _stripped(node.args[0].tensor), _stripped(node.results[0])
    if isinstance(x, MatrixView) and x.rows * x.columns == node.results[0].numel():
        return x if before[-1:] == after[-1:] else _reshaped(x, node.results[0])
    if isinstance(x, Steps) and before != after:
        if len(after) == 2 and after[0] == low.trace.batch:
            return _flattened(low, node, parts, x)
        raise NotNativeError("it reshapes a sequence into another")
    return x


@lowers(Tensor.repeat)
def _repeated(low: Lowering, node: Node, parts: int, x: Value, *sizes: object) -> Value:
    times, shape = sizes[0] if isinstance(sizes[0], list) else sizes, node.args[0].tensor.shape
    if any(number != 1 and size != 1 for number, size in zip(times[::-1], shape[::-1], strict=False)):
        raise NotNativeError("it repeats examples or columns")
    return _seen_otherwise(low, node, parts, x)


def _stripped(tensor: Tensor) -> tuple[int, ...]:
    return tuple(n for n in tensor.shape if n != 1)


def _reshaped(x: MatrixView, tensor: Tensor) -> MatrixView:
    if x.by_column != 1 or (x.rows > 1 and x.by_row != x.columns):
        raise NotNativeError("it reshapes a transposed matrix")
    found = matrix_of(x.space, x.offset, tensor, x.trained)
    assert isinstance(found, MatrixView)
    return found


@lowers(TURN)
def transposed(low: Lowering, node: Node, parts: int, x: Value) -> Value:
    if isinstance(x, MatrixView):
        return x.transposed
    if isinstance(x, Turned):
        return x.panel
    if isinstance(x, RowPanel) and x.rows is not None:
        return Turned(x)
    raise NotNativeError("it transposes examples")


@lowers(Tensor.flatten)
def _flattened(low: Lowering, node: Node, parts: int, x: Value, *_: object) -> Value:
    if isinstance(x, Tokens):
        return x
    if isinstance(x, MatrixView):
        return _reshaped(x, node.results[0])
    if isinstance(x, Steps) and all(isinstance(s, RowPanel) for s in x.steps):
        return _joined(low, [s for s in x.steps if isinstance(s, RowPanel)])
    if isinstance(x, Steps) and all(isinstance(s, Tokens) for s in x.steps):
        first = x.steps[0]
        assert isinstance(first, Tokens)
        return Tokens(first.first, len(x.steps), first.values)
    if isinstance(x, Steps) and all(isinstance(s, Weights) for s in x.steps):
        return _joined(low, [low.builder.as_panel(s) for s in x.steps])
    raise NotNativeError("it flattens something other than a sequence")


def _joined(low: Lowering, panels: list[RowPanel]) -> RowPanel:
    """Return panels side by side, without copying them."""
    out = RowPanel(
        panels[0].rows, [s for p in panels for s in p.slabs], [c for p in panels for c in p.columns],
        low.builder.trained and any(p.trained for p in panels), kept=not all(p.spare for p in panels),
    )  # fmt: skip

    @low.builder.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        left = iter(grads)
        for panel in panels:
            low.builder.pass_gradient(panel, [next(left) for _ in panel.slabs], panel.rows)

    return out


@lowers(Tensor.squeeze)
def _without_axes(low: Lowering, node: Node, parts: int, x: Value, *_: object) -> Value:
    if isinstance(x, Steps) and len(x.steps) == 1:
        return x.steps[0]
    return _seen_otherwise(low, node, parts, x)


@lowers(Tensor.unbind)
def _unbound(low: Lowering, node: Node, parts: int, x: Value, dim: int = 0) -> tuple[Value, ...]:
    if isinstance(x, Steps):
        return tuple(x.steps)
    if not _repeats(low, node, x, dim):
        raise NotNativeError("it splits something other than a sequence")
    if isinstance(x, RowPanel):
        x.users += len(node.results) - 1
    return (x,) * len(node.results)


def _repeats(low: Lowering, node: Node, x: Value, axis: int) -> bool:
    """Return whether rows are equal along an axis, as after `expand`: one row per example, or one for all."""
    shape = node.args[0].tensor.shape
    if not isinstance(x, (RowPanel, Zero, MatrixView)) or x.rows not in (None, 1) or columns_of(x) != shape[-1]:
        return False
    return axis % len(shape) < len(shape) - 1 and shape[axis] != low.trace.batch


@lowers(Tensor.transpose)
def _axes_swapped(low: Lowering, node: Node, parts: int, x: Value, *axes: int) -> Value:
    if isinstance(x, Steps):
        return x  # positions are a list on any axis
    if len(axes) == 2 and any(_repeats(low, node, x, axis) for axis in axes) and -1 not in axes:
        return x
    return transposed(low, node, parts, x)


@lowers(Tensor.new_zeros, torch.zeros_like)
def _zeros(low: Lowering, node: Node, parts: int, *_: object) -> Value:
    shape = node.results[0].shape
    rows = shape[-2] if len(shape) > 1 else 1
    return Zero(None if rows == low.trace.batch else rows, shape[-1])


@demands(torch.cat)
def _shares(node: Node, parts: int) -> list[tuple[object, int]]:
    tensors, axis = node.args[0], node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
    if axis != -1:
        return [(t, parts) for t in tensors]
    whole = node.results[0].shape[-1]
    columns = [(t, (t.tensor if isinstance(t, TracedOutput) else t).shape[-1]) for t in tensors]
    return [(t, parts * c // whole if parts * c % whole == 0 and parts * c else 1) for t, c in columns]


@lowers(torch.cat)
def _concatenated(low: Lowering, node: Node, parts: int, values: list[Value], dim: int = 0) -> Value:
    values = [v for v in values if not (isinstance(v, Zero) and not v.columns)]
    if len(values) == 1:
        return values[0]
    shape = node.results[0].shape
    if len(shape) == 3 and dim % 3 < 2 and low.trace.batch in shape[:2] and all(isinstance(v, Steps) for v in values):
        return Steps([step for v in values if isinstance(v, Steps) for step in v.steps])
    if dim == -1 and any(isinstance(v, Steps) for v in values):
        return Steps([_concatenated(low, node, parts, list(some), dim) for some in zip(*_by_step(values), strict=True)])
    rows = [getattr(v, "rows", 0) for v in values]
    if dim == -2:
        return _stacked(low, node, values, parts)
    if None in rows and 1 in rows and isinstance(values[0], RowPanel):
        return _extended(low, node, values)
    shares = [n for _, n in _shares(node, parts)]
    return _joined(low, [low.builder.as_panel(v, n) for v, n in zip(values, shares, strict=True)])


def _by_step(values: list[Value]) -> list[list[Value]]:
    """Return the steps of sequences of one length; examples without steps repeat at each step."""
    count = max(len(v.steps) for v in values if isinstance(v, Steps))
    for value in values:
        if isinstance(value, RowPanel):
            value.users += count - 1
    return [v.steps if isinstance(v, Steps) else [v] * count for v in values]


def _extended(low: Lowering, node: Node, values: list[Value]) -> RowPanel:
    """Return examples, each followed by the same constant columns."""
    x, row = values
    if not (
        isinstance(x, RowPanel) and len(x.slabs) == 1 and isinstance(row, MatrixView) and row.space == Space.CONSTANTS
    ):
        raise NotNativeError("it concatenates values that cannot be joined")
    build = low.builder
    out = build.panel(None, [x.width + row.columns], x.trained)
    build.emit(Code.COPY, None, x.width, x.slabs[0], out.slabs[0], 1.0, False)
    build.emit(Code.PUT_ROW, None, row.columns, out.slabs[0], x.width, row.at(0, 0))

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        to, add = build.gradient_target(x)
        build.emit(Code.COPY, None, x.width, grads[0], to[0], 1.0, add, back=True)

    return out


def _stacked(low: Lowering, node: Node, values: list[Value], parts: int) -> RowPanel:
    """Return matrices one below the other; all are computed once per update."""
    build = low.builder
    panels = [build.as_panel(v) for v in values]
    rows = [p.rows or 0 for p in panels]
    if parts != 1 or not all(rows):
        raise NotNativeError("it stacks examples")
    out = build.panel(sum(rows), [panels[0].width], any(p.trained for p in panels))
    starts = [sum(rows[:n]) * BLOCK for n in range(len(rows))]
    for panel, count, start in zip(panels, rows, starts, strict=True):
        to = At(out.slabs[0], start)
        build.emit(Code.COPY_ROWS, count, panel.width, panel.slabs[0], count, to, sum(rows), False)

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        for panel, count, start in zip(panels, rows, starts, strict=True):
            if panel.trained:
                to, _ = build.gradient_target(panel)
                at = At(grads[0], start)
                build.emit(Code.COPY_ROWS, count, panel.width, at, sum(rows), to[0], count, True, back=True)

    return out


@lowers(F.one_hot)
def _one_hot_places(low: Lowering, node: Node, parts: int, tokens: Value, num_classes: int) -> Value:
    if not isinstance(tokens, Tokens) or tokens.values:
        raise NotNativeError("it makes one-hot vectors of something other than its input")
    return _symbols(low, node, parts, tokens, num_classes)


@lowers(Tensor.float, Tensor.to)
def _as_numbers(low: Lowering, node: Node, parts: int, x: Value, *_: object, **__: object) -> Value:
    first = x.steps[0] if isinstance(x, Steps) else x
    if node.results[0].dtype != torch.float32 or (isinstance(first, Tokens) and not first.values):
        raise NotNativeError("it computes with whole numbers, or in another precision")
    return x


@lowers(layers.flat_one_hot)
def _one_hot(low: Lowering, node: Node, parts: int, tokens: Value, values: int, *_: object) -> Value:
    if isinstance(tokens, Steps):
        return _flattened(low, node, parts, tokens)
    assert isinstance(tokens, Tokens)
    return Tokens(tokens.first, tokens.places, values)


@lowers(layers.as_symbol_weights, cells.by_position)
def _symbols(low: Lowering, node: Node, parts: int, message: Value, values: int, *_: object) -> Value:
    if isinstance(message, Tokens):
        return Steps([Tokens(message.first + place, 1, values) for place in range(message.places)])
    return message


@lowers(cells.start_symbol)
def _start(low: Lowering, node: Node, parts: int, like: Value, values: int) -> Value:
    panel = low.builder.panel(None, [values], False)
    low.builder.emit(Code.START, None, values, panel.slabs[0], values - 1)
    return panel


# -- products and sums -------------------------------------------------------------------------------------------------


@demands(layers.linear, layers.rows_times, F.linear, Tensor.matmul, torch.matmul)
def _product_parts(node: Node, parts: int) -> list[tuple[object, int]]:
    addend = node.args[2] if len(node.args) > 2 else None
    return [(node.args[1], parts), (addend, parts)]


@lowers(layers.linear, F.linear)
def _linear(low: Lowering, node: Node, parts: int, x: Value, weight: Value, bias: Value | None = None) -> Value:
    return low.builder.linear(x, transposed(low, node, 1, weight), bias, parts)


@lowers(layers.rows_times, Tensor.matmul, torch.matmul)
def _rows_times(low: Lowering, node: Node, parts: int, x: Value, matrix: Value, addend: Value | None = None) -> Value:
    if isinstance(x, Zero) and addend is not None:
        return addend
    return low.builder.linear(x, matrix, addend, parts)


@lowers(layers.attribute_rows)
def _attribute_rows(low: Lowering, node: Node, parts: int, meanings: Value, weight: Value, values: int) -> Value:
    assert isinstance(meanings, Tokens)
    assert isinstance(weight, MatrixView)
    places = range(meanings.places)
    tables = [replace(weight, offset=weight.offset + a * values * weight.by_row, rows=values) for a in places]
    return Steps([low.builder.embedded(Tokens(meanings.first + a, 1, values), tables[a], None, parts) for a in places])


@demands(Tensor.add, Tensor.div, Tensor.mul)
def _sum_parts(node: Node, parts: int) -> list[tuple[object, int]]:
    return [(a, parts) for a in node.args]


@lowers(Tensor.add, Tensor.__radd__)
def added(low: Lowering, node: Node, parts: int, a: Value, b: Value | int) -> Value:
    if isinstance(b, int):
        if b:
            raise NotNativeError("it adds a number")
        return a  # sum() starts from 0
    if isinstance(a, Zero) or isinstance(b, Zero):
        return b if isinstance(a, Zero) else a
    if isinstance(a, Steps) or isinstance(b, Steps):
        pairs = zip(*_over_positions(a, b), strict=True)
        return Steps([added(low, node, parts, x, y) for x, y in pairs])
    build = low.builder
    x, y = (build.as_panel(v, parts) for v in (a, b))
    if (x.rows == 1 and y.rows != 1) or (y.spare and x.rows == y.rows):
        x, y = y, x
    if x.columns != y.columns:
        raise NotNativeError("it adds rows that are cut differently")
    row, spare = y.rows == 1 and x.rows != 1, x.spare
    out = RowPanel(x.rows, x.slabs, x.columns, False) if spare else build.panel(x.rows, x.columns, False)
    out.trained = build.trained and (x.trained or y.trained)
    for p, columns in enumerate(x.columns):
        if not spare:
            build.emit(Code.COPY, x.rows, columns, x.slabs[p], out.slabs[p], 1.0, False)
        if row:
            build.emit(Code.COPY_ROW, x.rows, columns, y.slabs[p], out.slabs[p], True)
        else:
            build.emit(Code.COPY, x.rows, columns, y.slabs[p], out.slabs[p], 1.0, True)

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        if row and y.trained:
            to, _ = build.gradient_target(y)
            for p, columns in enumerate(x.columns):
                build.emit(Code.ADD_ROWS, x.rows, grads[p], columns, to[p], back=True)
        for value in (y, x) if not row else (x,):
            if value.trained:
                if value is x and spare:
                    build.pass_gradient(x, grads, x.rows)
                    continue
                to, add = build.gradient_target(value)
                for p, columns in enumerate(x.columns):
                    build.emit(Code.COPY, x.rows, columns, grads[p], to[p], 1.0, add, back=True)

    return out


@lowers(base.without_missing)
def _without_missing(low: Lowering, node: Node, parts: int, scores: Value, penalty: Value) -> Value:
    if isinstance(scores, Steps):
        raise NotNativeError("a receiver that computes the scores of each attribute apart, in a space without a grid")
    return added(low, node, parts, scores, penalty)


def _over_positions(a: Value, b: Value) -> tuple[list[Value], list[Value]]:
    """Return the two addends at each position; a matrix of constants has one row per position."""
    count = len(a.steps if isinstance(a, Steps) else b.steps if isinstance(b, Steps) else [])

    def steps(value: Value) -> list[Value]:
        if isinstance(value, Steps):
            return value.steps
        if not isinstance(value, MatrixView) or value.rows not in (1, count):
            raise NotNativeError("it adds something other than positions to positions")
        rows = [t if value.rows > 1 else 0 for t in range(count)]
        return [replace(value, offset=value.offset + row * value.by_row, rows=1) for row in rows]

    return steps(a), steps(b)


@lowers(Tensor.div)
def _scaled(low: Lowering, node: Node, parts: int, a: Value, divisor: float) -> Value:
    return low.builder.scaled(low.builder.as_panel(a, parts), 1 / divisor)
