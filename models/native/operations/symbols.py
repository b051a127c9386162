"""Symbols that a sender feeds back."""

import torch
from torch import Tensor
from torch.nn import functional as F

from icy.core import representations
from icy.core.representations.codes import attracted, emitted_code, emitted_digits
from icy.core.representations.symbols import emitted_gumbel
from icy.models.native.builder import NotNativeError
from icy.models.native.lower import MOST_CHOICES, Lowering, lowers
from icy.models.native.slabs import At, Code, MatrixView, RowPanel, Slab, Space, Steps, Value
from icy.models.native.trace import Node

from .sums import added


def _soft(low: Lowering, x: RowPanel, out: RowPanel, soft: Slab, temperature: float) -> None:
    """Add the backward pass of a softmax."""
    build = low.builder

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        to, add = build.gradient_target(x)
        build.emit(Code.SOFTMAX_BACK, None, x.width, grads[0], soft, temperature, to[0], add, back=True)


@lowers(Tensor.softmax, torch.softmax, F.softmax)
def _softmax(low: Lowering, node: Node, parts: int, scores: Value, dim: int, **_: object) -> Value:
    if isinstance(scores, Steps):
        return Steps([_softmax(low, node, parts, step, dim) for step in scores.steps])
    x, last = low.builder.as_panel(scores), node.results[0].dim() - 1
    if dim not in (-1, last) or x.rows is not None or len(x.slabs) != 1 or x.width > MOST_CHOICES:
        raise NotNativeError("a softmax that is not over the symbols of each example")
    out = low.builder.panel(None, [x.width], x.trained)
    out.kept = True
    low.builder.emit(Code.SOFTMAX, None, x.width, x.slabs[0], out.slabs[0])
    _soft(low, x, out, out.slabs[0], 1.0)
    return out


def _drawn(
    low: Lowering,
    scores: Value,
    step: int,
    noisy: bool,
    temperature: float | None,
    excluded: int = 0,
    hard: bool = True,
) -> RowPanel:
    """Return symbols, one-hot or relaxed; with a temperature, with the gradient of a softmax."""
    build = low.builder
    x = build.examples(scores)
    if x.width > MOST_CHOICES:
        raise NotNativeError(f"it draws from more than {MOST_CHOICES} symbols")
    out = build.panel(None, [x.width], x.trained and temperature is not None)
    out.kept = not hard  # the gradient reads it
    soft = None if temperature is None else build.slab(None, x.width) if hard else out.slabs[0]
    build.emit(
        *(Code.SAMPLE, None, x.width, x.slabs[0], out.slabs[0] if hard else None, soft, step, noisy),
        *(temperature or 1.0, excluded),
    )
    if soft is not None:
        assert temperature is not None
        _soft(low, x, out, soft, temperature)
    return out


@lowers(representations.largest)
def _largest(low: Lowering, node: Node, parts: int, scores: Value) -> Value:
    return _drawn(low, scores, 0, False, None)


@lowers(representations.without_start)
def _without_start(low: Lowering, node: Node, parts: int, scores: Value) -> Value:
    symbols = node.results[0].shape[-1]
    places = 1 if isinstance(scores, Steps) else low.builder.as_panel(scores, parts).width // symbols
    penalty = torch.zeros(places, symbols, dtype=torch.float32, device="cpu")
    penalty[:, -1] = -torch.inf
    found: Value = added(low, node, parts, scores, low.constant(penalty.reshape(1, -1)))
    return found


@lowers(representations.sampled)
def _sampled(low: Lowering, node: Node, parts: int, scores: Value, step: int, training: bool) -> Value:
    return _drawn(low, scores, step, training, None)


@lowers(emitted_gumbel)
def _emitted_gumbel(
    low: Lowering, node: Node, parts: int, scores: Value, step: int, training: bool, tau: float, hard: bool
) -> Value:
    return _drawn(low, scores, step, training, float(tau) if training else None, 1, hard or not training)


@lowers(emitted_digits)
def _emitted_digits(low: Lowering, node: Node, parts: int, scores: Value, levels: int, normalise: str) -> Value:
    if normalise != "sigmoid":
        raise NotNativeError(f"its words depend on the batch (normalise={normalise})")
    build = low.builder
    x = build.examples(scores)
    out = build.panel(None, [x.width], x.trained)
    unit = build.slab(None, x.width)
    build.emit(Code.DIGITS, None, x.width, x.slabs[0], out.slabs[0], unit, x.width - 1, float(levels - 1))

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        to, add = build.gradient_target(x)
        build.emit(Code.DIGITS_BACK, None, x.width, grads[0], unit, to[0], add, back=True)

    return out


def _nearest(low: Lowering, x: RowPanel, codes: Value) -> tuple[Slab, At]:
    """Return the index of each row's nearest code, and the address of the codes."""
    if not isinstance(codes, MatrixView) or (codes.by_row, codes.by_column) != (codes.columns, 1):
        raise NotNativeError("a codebook that is not stored row by row")
    if codes.columns != x.width - 1:
        raise NotNativeError("codes of another size than the scores")
    key, first = (x, codes), codes.at(0, 0)
    if key not in low.nearest:
        low.nearest[key] = low.builder.vector()
        low.builder.emit(Code.FIND_CODE, None, codes.columns, x.slabs[0], first, codes.rows, low.nearest[key])
    return low.nearest[key], first


@lowers(emitted_code)
def _emitted_code(low: Lowering, node: Node, parts: int, scores: Value, codes: Value, commitment: float) -> Value:
    build = low.builder
    x = build.examples(scores)
    chosen, first = _nearest(low, x, codes)
    out = build.panel(None, [x.width], x.trained)
    build.emit(Code.PUT_CODE, None, x.width - 1, first, chosen, out.slabs[0])

    @build.gradient_of(out)
    def back(grads: list[Slab]) -> None:
        to, add = build.gradient_target(x)
        build.emit(Code.PUT_CODE_BACK, None, x.width - 1, grads[0], to[0], add, x.width, back=True)

    return out


@lowers(attracted)
def _attracted(
    low: Lowering, node: Node, parts: int, scores: Value, codes: Value, commitment: float, positions: int
) -> Value:
    build = low.builder
    x = build.examples(scores)
    x.kept = True  # the gradient reads it
    chosen, first = _nearest(low, x, codes)
    fields = x.width - 1, x.slabs[0], first, chosen, float(commitment), positions
    build.emit(Code.ATTRACT, None, *fields)
    assert isinstance(codes, MatrixView)

    def back() -> None:
        to, add = build.gradient_target(x)
        of_codes = codes.at(0, 0, Space.GRADIENTS) if codes.trained else None
        build.emit(Code.ATTRACT_BACK, None, *fields, to[0], add, of_codes, x.width, back=True)

    if x.trained:
        build.add_backward(None, back)
    return x


@lowers(representations.relaxed)
def _relaxed(low: Lowering, node: Node, parts: int, scores: Value, step: int, temperature: float) -> Value:
    return _drawn(low, scores, step, True, float(temperature))
