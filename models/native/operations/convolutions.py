"""Convolutions and pooling."""

from icy.models import layers
from icy.models.native.builder import NotNativeError
from icy.models.native.lower import Lowering, lowers
from icy.models.native.slabs import Code, Field, Kernel, RowPanel, Slab, Steps, Value
from icy.models.native.trace import Node

from .transformers import once


@lowers(layers.fold_rows)
def _folded_kernel(low: Lowering, node: Node, parts: int, rows: Value, weight: Value) -> Value:
    assert isinstance(weight, Kernel)
    return Kernel([low.builder.linear(rows, matrix, None, 1) for matrix in weight.matrices])


@lowers(layers.convolve)
def _convolved(low: Lowering, node: Node, parts: int, x: Value, weight: Value, bias: Value, outputs: int) -> Value:
    if not (isinstance(x, Steps) and isinstance(weight, Kernel)):
        raise NotNativeError("a convolution over something other than positions")
    found: list[Value] = []
    for t in range(outputs):
        window = [(k, t + k - 1) for k in range(3) if 0 <= t + k - 1 < len(x.steps)]
        factors = [(low.builder.as_panel(x.steps[place]), weight.matrices[k]) for k, place in window]
        found.append(once(low.builder.product(list(factors), bias, 1), 1))
    return Steps(found)


@lowers(layers.pool_relu)
def _pooled(low: Lowering, node: Node, parts: int, x: Value) -> Value:
    if not isinstance(x, Steps):
        raise NotNativeError("it pools something other than positions")
    pairs = zip(x.steps[::2], x.steps[1::2], strict=False)
    return Steps([_larger(low, low.builder.examples(a), low.builder.examples(b)) for a, b in pairs])


def _larger(low: Lowering, even: RowPanel, odd: RowPanel) -> RowPanel:
    build = low.builder
    size = even.width
    out = build.panel(None, [size], even.trained or odd.trained)
    build.emit(Code.POOL, None, size, even.slabs[0], odd.slabs[0], out.slabs[0])

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        (a, add_a), (b, add_b) = build.scratch(even), build.scratch(odd)
        of_both: list[Field] = [a[0], add_a, b[0], add_b]
        build.emit(Code.POOL_BACK, None, size, grads[0], even.slabs[0], odd.slabs[0], *of_both, back=True)

    out.users = 3  # positions of the next convolution's window
    return out
