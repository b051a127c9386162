"""Lower attention, layer norms, feed-forward layers, convolutions, and symbols that a sender feeds back."""

import torch
from torch import Tensor
from torch.nn import functional as F

from icy.core import representations
from icy.core.representations import Discrete, Ending, Gumbel, GumbelSoftmax, LearnedCodebook, Quantized, Soft
from icy.core.representations.codes import attracted, emitted_code, emitted_digits
from icy.core.representations.samples import linked
from icy.core.representations.symbols import emitted_gumbel
from icy.models import attention, layers
from icy.models.native.builder import NotNativeError
from icy.models.native.lower import MOST_CHOICES, Lowering, Node, demands, lowers
from icy.models.native.slabs import (
    At,
    Code,
    Field,
    Head,
    Kernel,
    LinkKind,
    MatrixView,
    Reading,
    RowPanel,
    Slab,
    Space,
    Steps,
    Value,
    padded,
)

from .lower_cells import activated
from .lower_shapes import added, transposed

# -- attention between positions ---------------------------------------------------------------------------------------


LONGEST = 512  # largest number of positions of an attention, and of operands of one SUM_TURNED


@lowers(attention.attend_over)
def _attend(low: Lowering, node: Node, parts: int, query: Value, rows: list[Value]) -> Value:
    build = low.builder
    q, seen = build.examples(query), [build.examples(r) for r in rows]
    if any(p.width != q.width for p in seen):
        raise NotNativeError("its attention has several heads, or values that differ from its keys")
    return _attended(low, [q], seen, [(0, 0, 0)], 1.0)[0]


@demands(attention.attend_by_head)
def _parts_of_heads(node: Node, parts: int) -> list[tuple[object, int]]:
    return [(node.args[0], 3 * node.args[1])]


@lowers(attention.attend_by_head)
def _attend_by_head(low: Lowering, node: Node, parts: int, projected: Value, heads: int, causal: bool) -> Value:
    if causal or not isinstance(projected, Steps):
        raise NotNativeError("an attention over all positions at once that does not cover all positions of a message")
    seen = [low.builder.as_panel(step, 3 * heads) for step in projected.steps]
    return Steps(list(_attended(low, seen, seen, *_by_head(seen, heads))))


@demands(attention.attend_newest)
def _parts_of_all_heads(node: Node, parts: int) -> list[tuple[object, int]]:
    return [(one, 3 * node.args[1]) for one in node.args[0]]


@lowers(attention.attend_newest)
def _attend_newest(low: Lowering, node: Node, parts: int, projected: list[Value], heads: int) -> Value:
    seen = [low.builder.as_panel(one, 3 * heads) for one in projected]
    return _attended(low, seen[-1:], seen, *_by_head(seen, heads))[0]


def _by_head(seen: list[RowPanel], heads: int) -> tuple[list[tuple[int, int, int]], float]:
    """Return the parts of each head, and the factor of the scores."""
    return [(3 * h, 3 * h + 1, 3 * h + 2) for h in range(heads)], float(seen[0].columns[0] ** -0.5)


def _attended(
    low: Lowering, asking: list[RowPanel], seen: list[RowPanel], parts: list[tuple[int, int, int]], factor: float
) -> list[RowPanel]:
    """Return the attention output of each position, one part per head.

    Args:
        low: the lowering.
        asking, seen: positions with the queries, and positions to attend to.
        parts: parts of each head.
        factor: factor of the scores.
    """
    if len(seen) > LONGEST:
        raise NotNativeError(f"an attention over more than {LONGEST} positions")
    if len(set(seen)) < len(seen):
        raise NotNativeError("an attention that reads the same rows twice")
    build = low.builder
    width, trained = seen[0].columns[0], any(p.trained for p in (*asking, *seen))
    outs = [build.panel(None, [width] * len(parts), trained) for _ in asking]
    heads = []
    for number, which in enumerate(parts):
        heads.append(_head(low, asking, seen, which, [out.slabs[number] for out in outs], factor))
        for place, panel in enumerate(seen):
            low.readings.setdefault(panel, []).append(Reading(heads[-1], place))
    low.attended.update(seen)

    def back() -> None:
        if any(out.grads for out in outs):
            for out in outs:
                if out.grads is None:  # nothing reads this position
                    _clear(low, build.gradient_target(out)[0], width)
            for number, head in enumerate(heads):
                _queries_back(low, asking, head, [out.grads[number] for out in outs if out.grads], factor)
        _rows_back(low, [p for p in seen if p.trained and low.readings[p][0].head is heads[0]])

    if outs[0].trained:
        build.add_backward(None, back)
    return outs


def _head(
    low: Lowering,
    asking: list[RowPanel],
    seen: list[RowPanel],
    parts: tuple[int, int, int],
    means: list[Slab],
    factor: float,
) -> Head:
    """Emit the operation of a head, and return the head."""
    queries, keys, values = (
        [_turned(low, panel, part) for panel in panels]
        for panels, part in zip((asking, seen, seen), parts, strict=True)
    )
    weights = low.builder.lines(len(asking) * len(seen))
    width = asking[0].columns[parts[0]]
    operation = low.builder.emit(Code.ATTEND, None, width, len(asking), len(seen), weights, factor, 0)
    operation.lists.append((5, [*queries, *keys, *values, *means]))
    return Head(parts, queries, keys, values, weights)


def _turned(low: Lowering, panel: RowPanel, part: int) -> Slab:
    """Return a turned part of a panel."""
    if (panel, part) not in low.turned:
        width = panel.columns[part]
        low.turned[panel, part] = to = low.builder.lines(padded(width))
        low.builder.emit(Code.TURN, None, width, panel.slabs[part], to)
    return low.turned[panel, part]


def _queries_back(low: Lowering, asking: list[RowPanel], head: Head, grads: list[Slab], factor: float) -> None:
    """Emit the gradients of a head's scores and queries."""
    build, count = low.builder, len(head.keys)
    width = asking[0].columns[head.parts[0]]
    head.of_scores = build.lines(len(grads) * count)
    head.of_means = [build.lines(padded(width)) for _ in grads]
    to, add = _targets(low, asking, head.parts[0]) if any(p.trained for p in asking) else ([None] * len(asking), False)
    fields: list[Field] = [width, len(grads), count, head.weights, factor, head.of_scores, add]
    operation = build.emit(Code.ATTEND_BACK, None, *fields, 0, back=True)
    operation.lists.append((len(fields), [*grads, *head.of_means, *head.values, *head.keys, *to]))


def _rows_back(low: Lowering, panels: list[RowPanel]) -> None:
    """Emit the gradients of keys and values, after the gradients of the scores of all attentions that read them."""
    while panels:
        # Operations compute the gradients of several panels at once if the same heads read these at successive places.
        some = [panels.pop(0)]
        while panels and low.readings[panels[0]] == [Reading(h, n + 1) for h, n in low.readings[some[-1]]]:
            some.append(panels.pop(0))
        terms: dict[int, list[tuple[Slab, At]]] = {}  # by part
        for head, place in low.readings[some[0]]:
            if head.of_scores is not None:
                for part, slabs, lines in ((1, head.queries, head.of_scores), (2, head.of_means, head.weights)):
                    found = terms.setdefault(head.parts[part], [])
                    line = padded(low.builder.chunk)
                    found += [(s, At(lines, (i * len(head.keys) + place) * line)) for i, s in enumerate(slabs)]
        for part, found in terms.items():
            _sum_back(low, some, part, found)
        for panel in some:
            _clear(low, [(panel.grads or [])[part] for part in low.unwritten.pop(panel, ())], panel.columns[0])


def _sum_back(low: Lowering, panels: list[RowPanel], part: int, terms: list[tuple[Slab, At]]) -> None:
    """Emit the gradients of a part of panels: sums of turned slabs times lines of weights."""
    to, add = _targets(low, panels, part)
    for first in range(0, len(terms), LONGEST):
        some = terms[first : first + LONGEST]
        line = padded(low.builder.chunk)
        fields: list[Field] = [panels[0].columns[part], len(some), len(panels), line, add or first > 0]
        operation = low.builder.emit(Code.SUM_TURNED, None, *fields, 0, back=True)
        operation.lists.append((len(fields), [*(slab for slab, _ in some), *(at for _, at in some), *to]))


def _targets(low: Lowering, panels: list[RowPanel], part: int) -> tuple[list[Slab], bool]:
    """Return the targets of the gradients of a part of panels, and whether to add to them."""
    to: list[Slab] = []
    fresh: list[Slab] = []
    for panel in panels:
        if panel.grads is None:
            grads, _ = low.builder.scratch(panel)
            low.unwritten[panel] = set(range(len(grads)))
            if len(grads) > 1 and panel.users != low.attended[panel]:  # others add to all parts
                _clear(low, [grads[k] for k in low.unwritten.pop(panel)], panel.columns[0])
        else:
            grads = panel.grads
        to.append(grads[part])
        if part in low.unwritten.get(panel, ()):
            low.unwritten[panel].remove(part)
            fresh.append(grads[part])
    if len(fresh) < len(to):
        _clear(low, fresh, panels[0].columns[part])
    return to, len(fresh) < len(to)


def _clear(low: Lowering, slabs: list[Slab], width: int) -> None:
    for slab in slabs:
        low.builder.emit(Code.FILL, None, width, slab, 0.0, back=True)


# -- layer norms and feed-forward layers -------------------------------------------------------------------------------


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
    return added(low, node, 1, before, fed)


# -- convolutions and pooling ------------------------------------------------------------------------------------------


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


# -- symbols that a sender feeds back ----------------------------------------------------------------------------------


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
    return added(low, node, parts, scores, low.constant(penalty.reshape(1, -1)))


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
    build = low.builder
    if normalise != "sigmoid" and not build.whole:
        raise NotNativeError(f"its words depend on the batch (normalise={normalise})")
    x = build.examples(scores)
    out = build.panel(None, [x.width], x.trained)
    unit = build.slab(None, x.width)
    if normalise != "sigmoid":
        size = build.vector()
        build.emit(Code.SPREAD, None, x.width - 1, x.slabs[0], out.slabs[0], unit, size, float(levels - 1))

        @build.gradient_of(out)
        def spread_back(grads: list[Slab]) -> None:
            to, add = build.gradient_target(x)
            build.emit(Code.SPREAD_BACK, None, x.width - 1, grads[0], unit, size, to[0], add, back=True)

        return out
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


# -- the link of a pair ------------------------------------------------------------------------------------------------


@lowers(linked)
def _linked(low: Lowering, node: Node, parts: int, scores: Value, link: object, codes: Value | None) -> Value:
    build, shape = low.builder, node.results[0].shape
    places, choices = shape[-2:]
    kind, *numbers = _numbers_of_link(link, choices)
    if places > LONGEST:
        raise NotNativeError(f"a message of more than {LONGEST} symbols")
    low.sent, low.sent_choices = low.score_places(scores, shape), choices
    trained = kind != LinkKind.DRAWN and any(score.panel.trained for score in low.sent)
    messages = [build.panel(None, [choices], trained) for _ in low.sent]
    kept = [build.lines(choices) if messages[0].trained else None for _ in low.sent]
    fields: list[Field] = [choices, int(kind), places, *numbers]
    fields += [codes.at(0, 0), codes.at(0, 0, Space.GRADIENTS)] if isinstance(codes, MatrixView) else [None, None]

    def emit(code: Code, to: list[Slab | None], rows: list[Slab], back: bool) -> None:
        operation = build.emit(code, None, *fields, 0, back=back)
        each = zip(low.sent, to, rows, kept, strict=True)
        of_places: list[Field] = [f for s, grad, row, own in each for f in (s.panel.slabs[0], grad, s.first, row, own)]
        operation.lists.append((len(fields), of_places))

    def back() -> None:
        for message in messages:
            if message.grads is None:  # nothing reads this place
                _clear(low, build.gradient_target(message)[0], choices)
        to: list[Slab | None] = [build.gradient_target(score.panel)[0][0] for score in low.sent]
        emit(Code.LINK_BACK, to, [build.gradient_target(message)[0][0] for message in messages], True)

    emit(Code.LINK, [None] * places, [message.slabs[0] for message in messages], False)
    if messages[0].trained:
        build.add_backward(None, back)
    return Steps(list(messages))


def _numbers_of_link(link: object, choices: int) -> tuple[LinkKind, int, bool, float, float, float, int]:
    """Return the kind of a link, the choices that can be emitted, whether there is noise, and its other numbers.

    These are temperature, levels of a digit, commitment and number of codes.
    """
    kind, symbols = type(link), choices - 1
    if isinstance(link, Ending):
        raise NotNativeError("compiled code does not run messages that end early")
    if kind is Soft:
        return LinkKind.RELAXED, choices, False, 1.0, 0.0, 0.0, 0
    if kind is Discrete:
        return LinkKind.DRAWN, choices, True, 1.0, 0.0, 0.0, 0
    if isinstance(link, Gumbel) and kind is Gumbel:
        return LinkKind.ONE_HOT, choices, True, float(link.temperature), 0.0, 0.0, 0
    if isinstance(link, GumbelSoftmax) and kind is GumbelSoftmax:
        code = LinkKind.ONE_HOT if link.straight_through else LinkKind.RELAXED
        return code, symbols, True, float(link.tau), 0.0, 0.0, 0
    if isinstance(link, Quantized) and kind is Quantized and link.normalise == "sigmoid":
        return LinkKind.ROUNDED, symbols, False, 1.0, float(link.levels), 0.0, 0
    if isinstance(link, LearnedCodebook) and kind is LearnedCodebook:
        return LinkKind.NEAREST, symbols, False, 1.0, 0.0, float(link.commitment), link.word_count(symbols)
    raise NotNativeError(f"compiled code does not support the representation {getattr(link, 'name', kind.__name__)}")
