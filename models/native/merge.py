"""Merge operations of a complete program: fewer operations then read and write the same memory."""

from collections import Counter
from itertools import pairwise

from .builder import Builder
from .slabs import BLOCK, At, Code, Field, Finish, Operation, Slab, number

PAIRS = 2  # products of one OUTER
FINISH = 23  # field of LINEAR with its last step
RELU = 2  # `enum Activation` of cells.h
NEAR = 4 * BLOCK  # distance between rows of a matrix, up to which it is fast to add to the matrix
OFTEN = 4  # products in each chunk, from which on a panel is faster than their matrix


def gather_sums(build: Builder) -> None:
    """Let products that add to one matrix of gradients many times add to a panel instead, which has no gaps."""
    for operations in _sums_of_products(build):
        rows, columns, to, by_row, distance = operations[0].fields[:5]
        if len(operations) < OFTEN or distance or number(by_row) <= NEAR:
            continue
        panel = build.slab(number(rows), number(columns), gradient=True)
        build.emit(Code.COPY_OUT, number(rows), to, by_row, 1, panel, rows, columns, 1.0, back=True)
        for operation in operations:
            operation.fields[2:5] = [panel, 0, number(rows) * BLOCK]


def join_products(build: Builder) -> None:
    """Let one operation compute several products that add to one matrix, if nothing writes their rows in between."""
    times = {id(operation): time for time, operation in enumerate(build.backward)}
    written: dict[Slab, list[int]] = {}
    for time, operation in enumerate(build.backward):
        for slab in operation.written():
            written.setdefault(slab, []).append(time)

    def changed(earlier: Operation, now: int) -> bool:
        rows = [f for f in earlier.fields[6:] if isinstance(f, Slab)]
        return any(times[id(earlier)] < time < now for slab in rows for time in written.get(slab, ()))

    gone = set()
    for operations in _sums_of_products(build):
        for earlier, operation in pairwise(operations):
            count = number(earlier.fields[5])
            if count < PAIRS and not changed(earlier, times[id(operation)]):
                gone.add(id(earlier))
                operation.fields[5:] = [count + 1, *earlier.fields[6:], *operation.fields[6:]]
    build.backward = [operation for operation in build.backward if id(operation) not in gone]


def finish_products(build: Builder, scores: set[Slab]) -> None:
    """Let products apply ReLU to their result, or multiply it with a slope, if nothing else reads the result.

    Args:
        build: the builder of the program.
        scores: slabs that the loss reads or writes.
    """
    used = Counter(slab for operation in [*build.forward, *build.backward] for slab in operation.slabs())
    for phase in (build.forward, build.backward):
        products = {id(o.fields[0]): o for o in phase if o.code == Code.LINEAR and len(o.fields) <= FINISH}
        gone = set()
        for operation in phase:
            kind, source, other, to = _last_step(operation)
            product = products.get(id(source))
            if not kind or product is None or not isinstance(source, Slab):
                continue
            if used[source] == 2 and source not in scores:
                product.fields[0] = to
                product.fields += [*[0] * (FINISH - len(product.fields)), kind, other]
                gone.add(id(operation))
        phase[:] = [operation for operation in phase if id(operation) not in gone]


def _sums_of_products(build: Builder) -> list[list[Operation]]:
    """Return the products of a chunk's backward pass that add to one matrix, for each matrix."""
    found: dict[tuple[object, ...], list[Operation]] = {}
    for operation in build.backward:
        if operation.code == Code.OUTER:  # columns, columns, to, by row, distance, count, (left, right) ...
            rows, columns, to, by_row, distance = operation.fields[:5]
            place = At(to) if isinstance(to, Slab) else to
            assert isinstance(place, At)
            # Each view of a parameter has its own slab, with an offset.
            memory = number(place) if place.slab.offset >= 0 else place
            found.setdefault((memory, rows, columns, by_row, distance), []).append(operation)
    return list(found.values())


def _last_step(operation: Operation) -> tuple[Finish, Field, Field, Field]:
    """Return the last step of a product that does the same as an operation, with its input, other input and output."""
    fields = operation.fields
    if operation.code == Code.APPLY and fields[1] == RELU:  # columns, kind, x, out
        return Finish.RELU, fields[2], None, fields[3]
    if operation.code == Code.APPLY_BACK and fields[1] == RELU and not fields[5]:  # columns, kind, grad, y, to, add
        return Finish.RELU_BACK, fields[2], fields[3], fields[4]
    if operation.code == Code.GELU_BACK and not fields[4]:  # columns, grad, slope, to, add
        return Finish.TIMES, fields[1], fields[2], fields[3]
    return Finish.NONE, None, None, None
