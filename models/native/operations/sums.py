"""Products and sums."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from icy.models import base, layers
from icy.models.native.builder import NotNativeError
from icy.models.native.lower import Lowering, demands, lowers
from icy.models.native.slabs import Code, MatrixView, RowPanel, Slab, Steps, Tokens, Value, Zero
from icy.models.native.trace import Node

from .shapes import transposed


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
    found: Value = added(low, node, parts, scores, penalty)
    return found


def _over_positions(a: Value, b: Value) -> tuple[list[Value], list[Value]]:
    """Return the two addends at each position; a matrix of constants has one row per position."""
    count = len(a.steps if isinstance(a, Steps) else b.steps if isinstance(b, Steps) else [])

    def steps(value: Value) -> list[Value]:
        if isinstance(value, Steps):
            return value.steps
        if not isinstance(value, MatrixView) or value.rows not in (1, count):
            raise NotNativeError("it adds something other than positions to positions")
        return [_row_of(value, t if value.rows > 1 else 0) for t in range(count)]

    return steps(a), steps(b)


def _row_of(view: MatrixView, place: int) -> MatrixView:
    """Return a row of a matrix as a matrix."""
    offset = view.offset + place * view.by_row
    return MatrixView(view.space, offset, 1, view.columns, view.by_row, view.by_column, view.trained)


@lowers(Tensor.div)
def _scaled(low: Lowering, node: Node, parts: int, a: Value, divisor: float) -> Value:
    return low.builder.scaled(low.builder.as_panel(a, parts), 1 / divisor)
