"""Attention between positions."""

from icy.models import attention
from icy.models.native.builder import NotNativeError
from icy.models.native.lower import Lowering, demands, lowers
from icy.models.native.slabs import At, Code, Field, Head, Reading, RowPanel, Slab, Steps, Value, padded
from icy.models.native.trace import Node

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
