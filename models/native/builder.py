"""Write the operations of a program and of its gradient."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from icy.core.errors import IncompatibleError

from .slabs import (
    BLOCK,
    At,
    Code,
    Field,
    MatrixView,
    Operation,
    RowPanel,
    Slab,
    Space,
    Steps,
    Stops,
    Tokens,
    Turned,
    Value,
    Weights,
    Zero,
    padded,
)

FACTORS = 6  # factors of one LINEAR
GAP = 32  # numbers between slabs, so that equal columns of panels do not share lines of the cache


class _Product(NamedTuple):
    """One LINEAR: the operation, its factors, its first row, and whether it adds to its target."""

    operation: Operation
    named: list[tuple[Slab, int, Slab]]
    row: Slab | None
    add: bool


class NotNativeError(IncompatibleError):
    """A model calls something that no operation implements; the message names it."""


@dataclass
class Builder:
    """A program under construction: operations that run once per update, and operations for each chunk of a batch.

    Args:
        chunk: rows of a chunk.
        trained: whether to compute gradients.
        whole: whether a chunk is always a whole batch.
    """

    chunk: int
    trained: bool
    whole: bool = False
    before: list[Operation] = field(default_factory=list)
    forward: list[Operation] = field(default_factory=list)
    backward: list[Operation] = field(default_factory=list)
    after: list[Operation] = field(default_factory=list)
    fixed: list[Slab] = field(default_factory=list)  # in the memory of the weights
    gradients: list[Slab] = field(default_factory=list)  # part of `fixed` that is cleared before an update
    tape: list[Slab] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._backward: list[Callable[[], None]] = []  # for chunks
        self._backward_fixed: list[Callable[[], None]] = []
        self._panels: dict[object, RowPanel] = {}
        self._packs: dict[object, Slab] = {}
        self._products: dict[RowPanel, list[_Product]] = {}  # products that wrote a panel

    # -- memory --------------------------------------------------------------------------------------------------------

    def slab(self, rows: int | None, columns: int, gradient: bool = False) -> Slab:
        """Create a slab for rows of a panel."""
        size = (self.chunk if rows is None else rows) * padded(columns)
        return self._slab(rows is None, size, gradient)

    def vector(self) -> Slab:
        """Create a slab for one number per row of a chunk."""
        return self.lines(1)

    def lines(self, count: int) -> Slab:
        """Create a slab for `count` numbers per row of a chunk, in lines of one number per row."""
        return self._slab(True, count * padded(self.chunk), False)

    def _slab(self, of_chunk: bool, size: int, gradient: bool) -> Slab:
        slab = Slab(Space.TAPE if of_chunk else Space.WEIGHTS, padded(size) + GAP)
        (self.tape if of_chunk else self.gradients if gradient else self.fixed).append(slab)
        return slab

    def panel(self, rows: int | None, columns: Sequence[int], trained: bool) -> RowPanel:
        """Create a panel."""
        return RowPanel(rows, [self.slab(rows, c) for c in columns], list(columns), trained and self.trained)

    def emit(self, code: Code, rows: int | None, *fields: Field, back: bool = False, lists: object = None) -> Operation:
        """Add an operation: for each chunk, or once per update if `rows` is a number."""
        operation = Operation(code, rows, list(fields), lists or [])  # type: ignore[arg-type]
        if rows is None:
            (self.backward if back else self.forward).append(operation)
        else:
            (self.after if back else self.before).append(operation)
        return operation

    def add_backward(self, rows: int | None, function: Callable[[], None]) -> None:
        """Register a function that emits gradient operations. Functions run in reverse order of registration."""
        (self._backward if rows is None else self._backward_fixed).append(function)

    def gradient_of(self, out: RowPanel) -> Callable[[Callable[[list[Slab]], None]], None]:
        """Register a function that emits the gradient operations of a panel; its argument is the gradient's slabs."""

        def register(function: Callable[[list[Slab]], None]) -> None:
            if out.trained:
                self.add_backward(out.rows, lambda: None if out.grads is None else function(out.grads))

        return register

    def emit_backward(self) -> None:
        """Emit the operations of the gradient."""
        for function in reversed(self._backward):
            function()
        for function in reversed(self._backward_fixed):
            function()

    # -- gradients -----------------------------------------------------------------------------------------------------

    def gradient_target(self, panel: RowPanel) -> tuple[list[Slab], bool]:
        """Return the target of a panel's gradient, and whether to add to the target."""
        if panel.grads is None:
            panel.grads = [self.slab(panel.rows, c, gradient=True) for c in panel.columns]
            return panel.grads, panel.rows is not None
        return panel.grads, True

    def scratch(self, panel: RowPanel) -> tuple[list[Slab], bool]:
        """Return the target of a gradient; an untrained panel gets temporary slabs."""
        return (
            self.gradient_target(panel) if panel.trained else ([self.slab(panel.rows, c) for c in panel.columns], False)
        )

    def stop_gradient_target(self, stops: Stops) -> tuple[Slab, bool]:
        """Return the target of the gradient of stop gates, and whether to add to the target."""
        if stops.grad is None:
            stops.grad = self.vector()
            return stops.grad, False
        return stops.grad, True

    def pass_gradient(self, panel: RowPanel, grads: list[Slab], gradient_rows: int | None) -> None:
        """Pass a finished gradient to a panel: without a copy from the panel's only user, otherwise by addition."""
        if not panel.trained:
            return
        if panel.grads is None and panel.users == 1 and panel.rows is None:
            panel.grads = grads
            return
        to, add = self.gradient_target(panel)
        for slab, target, columns in zip(grads, to, panel.columns, strict=True):
            self.emit(Code.COPY, gradient_rows, columns, slab, target, 1.0, add, back=True)

    # -- views as panels -----------------------------------------------------------------------------------------------

    def as_panel(self, value: Value, parts: int = 1) -> RowPanel:
        """Return a value as a panel with `parts` parts of equal size."""
        if isinstance(value, RowPanel):
            if parts != 1 and len(value.slabs) != parts:
                raise NotNativeError(f"a panel has {len(value.slabs)} parts, but {parts} are needed")
            return value
        if isinstance(value, Zero):
            return self._zeros(value, parts)
        if isinstance(value, (Weights, Tokens)):
            return self._input(value)
        if not isinstance(value, MatrixView):
            raise NotNativeError(f"{type(value).__name__.lower()} where rows are needed")
        key = (value, parts)
        if key not in self._panels:
            self._panels[key] = self._copied(value, parts)
        return self._panels[key]

    def examples(self, value: Value) -> RowPanel:
        """Return a value as a panel of one part with one row per example, for operations that read only this form.

        Several parts are joined by a product with ones on the diagonal.
        """
        panel = self.as_panel(value)
        if panel.rows is not None:
            raise NotNativeError("one row for all examples instead of one row per example")
        if len(panel.slabs) == 1:
            return panel
        size, offset = panel.width, len(self.constants)
        self.constants += [float(place % (size + 1) == 0) for place in range(size * size)]
        return self.product([(panel, MatrixView(Space.CONSTANTS, offset, size, size, size, 1, False))], None, 1)

    def _copied(self, view: MatrixView, parts: int) -> RowPanel:
        size = view.columns // parts
        panel = self.panel(view.rows, [size] * parts, view.trained)
        panel.users = 1 << 20
        for p, slab in enumerate(panel.slabs):
            self.emit(
                *(Code.COPY_IN, view.rows, view.at(0, p * size), view.by_row, view.by_column),
                *(slab, view.rows, size, 1.0),
            )

        @self.gradient_of(panel)
        def back(grads: list[Slab]) -> None:
            for p, slab in enumerate(grads):
                to = view.at(0, p * size, Space.GRADIENTS)
                self.emit(
                    *(Code.COPY_OUT, view.rows, to, view.by_row, view.by_column, slab, view.rows, size, 1.0), back=True
                )

        return panel

    def _zeros(self, value: Zero, parts: int) -> RowPanel:
        panel = self.panel(value.rows, [value.columns // parts] * parts, False)
        for slab, columns in zip(panel.slabs, panel.columns, strict=True):
            self.emit(Code.FILL, value.rows, columns, slab, 0.0)
        return panel

    def _input(self, value: Weights | Tokens) -> RowPanel:
        """Return the weights over symbols at one place of the input."""
        if value in self._panels:
            return self._panels[value]
        place = value.place if isinstance(value, Weights) else value.first
        panel = self.panel(None, [value.values], isinstance(value, Weights))
        panel.users = 1 << 20
        self.emit(Code.INPUT, None, value.values, place, panel.slabs[0])

        @self.gradient_of(panel)
        def back(grads: list[Slab]) -> None:
            self.emit(Code.INPUT_BACK, None, value.values, place, grads[0], back=True)

        self._panels[value] = panel
        return panel

    def scaled(self, x: RowPanel, factor: float) -> RowPanel:
        """Return a panel times a number."""
        out = self.panel(x.rows, x.columns, x.trained)
        for p, columns in enumerate(x.columns):
            self.emit(Code.COPY, x.rows, columns, x.slabs[p], out.slabs[p], factor, False)

        @self.gradient_of(out)
        def back(grads: list[Slab]) -> None:
            to, add = self.gradient_target(x)
            for p, columns in enumerate(x.columns):
                self.emit(Code.COPY, x.rows, columns, grads[p], to[p], factor, add, back=True)

        return out

    # -- products ------------------------------------------------------------------------------------------------------

    def pack(self, matrix: Value, first: int, depth: int, part: int, columns: int, turned: bool) -> Slab:
        """Pack `depth` rows of a matrix from row `first`, in one part of its columns; if `turned`, the transpose."""
        key = (
            matrix.panel if isinstance(matrix, Turned) else matrix,
            type(matrix),
            first,
            depth,
            part,
            columns,
            turned,
        )
        if key not in self._packs:
            inner, outer = (columns, depth) if turned else (depth, columns)
            to = self._slab(False, inner * padded(outer), False)
            if isinstance(matrix, MatrixView):
                at = matrix.at(first, part * columns)
                by_row, by_column = matrix.by_row, matrix.by_column
                if turned:
                    by_row, by_column = by_column, by_row
                fields: list[Field] = [at, by_row, by_column, 0, False]
            else:
                panel, flipped = (matrix.panel, True) if isinstance(matrix, Turned) else (matrix, False)
                assert isinstance(panel, RowPanel)
                assert panel.rows is not None
                if flipped and (first or part):
                    raise NotNativeError("a part of a transposed product")
                at = At(panel.slabs[0 if flipped else part], first * BLOCK)
                fields = [at, 0, 0, panel.rows * BLOCK, turned != flipped]
            self.emit(Code.PACK, 1, *fields, inner, outer, to)
            self._packs[key] = to
        return self._packs[key]

    def linear(self, x: Value, matrix: Value, addend: Value | None, parts: int) -> Value:
        """Return x @ matrix + addend, for one value or one per position."""
        if isinstance(x, Steps):
            addends = addend.steps if isinstance(addend, Steps) else [addend] * len(x.steps)
            return Steps([self.linear(s, matrix, a, parts) for s, a in zip(x.steps, addends, strict=True)])
        if isinstance(x, Tokens):
            return self.embedded(x, matrix, addend, parts)
        return self.product([(x, matrix)], addend, parts)

    def product(self, factors: list[tuple[Value, Value]], addend: Value | None, parts: int) -> RowPanel:
        """Return the sum of products x @ matrix, plus a row or a panel."""
        width = columns_of(factors[0][1])
        size = width // parts
        live = [(self.as_panel(x), matrix) for x, matrix in factors if not isinstance(x, Zero)]
        rows = live[0][0].rows if live else _rows(factors[0][0])
        trained = self.trained and (
            any(x.trained or _trained(m) for x, m in live) or (addend is not None and _trained(addend))
        )
        bias = None if addend is None or _rows(addend) != 1 else addend
        under = addend if addend is not None and bias is None else None
        out, first = self._target(rows, size, parts, under, trained)
        shift = None if bias is None or isinstance(bias, Zero) else self.as_panel(bias, parts)
        earlier = self._products.get(under, []) if isinstance(under, RowPanel) and out.slabs is under.slabs else []
        written = self._products[out] = []
        for part in range(parts):
            named = [
                (slab, columns, self.pack(matrix, start, columns, part, size, False))
                for x, matrix in live
                for slab, columns, start in _parts(x)
            ]
            row, add = None if shift is None else shift.slabs[part], first
            if len(earlier) == parts and len(named) + len(earlier[part].named) <= FACTORS:
                # The addend is a product too: compute both at once.
                (self.forward if rows is None else self.before).remove(earlier[part].operation)
                named, row, add = [*earlier[part].named, *named], earlier[part].row, earlier[part].add
            for i in range(0, max(1, len(named)), FACTORS):
                some = named[i : i + FACTORS]
                if add and row is not None:
                    self.emit(Code.COPY_ROW, rows, size, row, out.slabs[part], True)
                    row = None
                operation = self.emit(
                    *(Code.LINEAR, rows, out.slabs[part], size, row, add, len(some)), *(f for one in some for f in one)
                )
                written.append(_Product(operation, some, row, add))
                row, add = None, True
        if trained:
            self.add_backward(rows, lambda: self._product_backward(out, live, shift, under, size))
        return out

    def _target(
        self, rows: int | None, size: int, parts: int, under: Value | None, trained: bool
    ) -> tuple[RowPanel, bool]:
        """Return the target panel of a product, and whether to add to it."""
        if under is None or isinstance(under, Zero):
            return self.panel(rows, [size] * parts, trained), False
        below = self.as_panel(under, parts)
        if below.users == 1 and below.rows == rows and not below.kept:
            return RowPanel(rows, below.slabs, below.columns, trained), True
        out = self.panel(rows, [size] * parts, trained)
        for slab, to, columns in zip(below.slabs, out.slabs, below.columns, strict=True):
            self.emit(Code.COPY, rows, columns, slab, to, 1.0, False)
        return out, True

    def _product_backward(
        self, out: RowPanel, live: list[tuple[RowPanel, Value]], shift: RowPanel | None, under: Value | None, size: int
    ) -> None:
        if out.grads is None:
            return
        rows = out.rows
        for x, matrix in live:
            for slab, columns, start in _parts(x):
                for part, grad in enumerate(out.grads):
                    self._outer(rows, slab, columns, start, grad, size, part, matrix)
        for x, matrix in live:
            if not x.trained:
                continue
            to, add = self.gradient_target(x)
            for target, (_, columns, start) in zip(to, _parts(x), strict=True):
                named = [
                    (grad, size, self.pack(matrix, start, columns, part, size, True))
                    for part, grad in enumerate(out.grads)
                ]
                more = add
                for i in range(0, len(named), FACTORS):
                    some = named[i : i + FACTORS]
                    self.emit(
                        *(Code.LINEAR, rows, target, columns, None, more, len(some)),
                        *(f for one in some for f in one),
                        back=True,
                    )
                    more = True
        if shift is not None and shift.trained:
            to, _ = self.gradient_target(shift)
            for grad, total in zip(out.grads, to, strict=True):
                self.emit(Code.ADD_ROWS, rows, grad, size, total, back=True)
        if isinstance(under, RowPanel):
            self.pass_gradient(under, out.grads, rows)

    def _outer(
        self, rows: int | None, x: Slab, columns: int, start: int, grad: Slab, size: int, part: int, matrix: Value
    ) -> None:
        """Add x^T grad to the gradient of a matrix."""
        if not _trained(matrix):
            return
        left, right = (x, columns), (grad, size)
        if isinstance(matrix, MatrixView):
            at = matrix.at(start, part * size, Space.GRADIENTS)
            if matrix.by_column == 1:
                target: list[Field] = [at, matrix.by_row, 0]
            elif matrix.by_row == 1:
                left, right = right, left
                target = [at, matrix.by_column, 0]
            else:
                raise NotNativeError("a matrix without contiguous rows or contiguous columns")
        else:
            panel = matrix.panel if isinstance(matrix, Turned) else matrix
            assert isinstance(panel, RowPanel)
            assert panel.rows is not None
            to, _ = self.gradient_target(panel)
            if isinstance(matrix, Turned):
                left, right = right, left
                target = [to[0], 0, panel.rows * BLOCK]
            else:
                target = [At(to[part], start * BLOCK), 0, panel.rows * BLOCK]
        self.emit(Code.OUTER, rows, left[1], right[1], *target, 1, left[0], right[0], back=True)

    def embedded(self, tokens: Tokens, table: Value, addend: Value | None, parts: int) -> RowPanel:
        """Look up tokens in a table; return the sum of their rows, plus the row `addend`."""
        panel = self.as_panel(table, parts) if not isinstance(table, Turned) else None
        if panel is None or panel.rows is None:
            raise NotNativeError("tokens times a transposed product")
        shift = None if addend is None or isinstance(addend, Zero) else self.as_panel(addend, parts)
        if shift is not None and shift.rows != 1:
            raise NotNativeError("rows added to embedded tokens")
        trained = panel.trained or (shift is not None and shift.trained)
        out = self.panel(None, panel.columns, trained)
        which = [tokens.first, tokens.places, tokens.values]
        for part, columns in enumerate(panel.columns):
            row = None if shift is None else shift.slabs[part]
            self.emit(Code.EMBED, None, panel.slabs[part], panel.rows, out.slabs[part], columns, row, *which)

        @self.gradient_of(out)
        def back(grads: list[Slab]) -> None:
            for part, columns in enumerate(panel.columns):
                if panel.trained:
                    to, _ = self.gradient_target(panel)
                    fields = [to[part], panel.rows, grads[part], columns, None, *which]
                    self.emit(Code.EMBED_BACK, None, *fields, back=True)
                if shift is not None and shift.trained:
                    to, _ = self.gradient_target(shift)
                    self.emit(Code.ADD_ROWS, None, grads[part], columns, to[part], back=True)

        return out


def _parts(panel: RowPanel) -> list[tuple[Slab, int, int]]:
    """Return slab, columns and first column of each part."""
    first, found = 0, []
    for slab, columns in zip(panel.slabs, panel.columns, strict=True):
        found.append((slab, columns, first))
        first += columns
    return found


def _trained(value: Value) -> bool:
    if isinstance(value, Turned):
        return value.panel.trained
    return bool(getattr(value, "trained", False))


def _rows(value: Value) -> int | None:
    return value.panel.width if isinstance(value, Turned) else getattr(value, "rows", None)


def columns_of(value: Value) -> int:
    if isinstance(value, RowPanel):
        return value.width
    if isinstance(value, Turned):
        return value.panel.rows or 0
    return int(getattr(value, "columns", 0))
