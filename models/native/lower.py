"""Trace a model, and lower the trace to operations. The modules `lower_*` hold a handler for each function."""

import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from icy.core.fused import while_tracing
from icy.core.noise import Noise, drawing_from
from icy.core.representations import without_start
from icy.core.representations.samples import linked
from icy.core.types import AnyFunction
from icy.models.base import without_missing
from icy.models.stock import TRACED

from .builder import Builder, NotNativeError, columns_of
from .slabs import (
    BLOCK,
    At,
    Code,
    Field,
    Finish,
    Kernel,
    MatrixView,
    Operation,
    Reading,
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
    number,
)

# -- trace a model -----------------------------------------------------------------------------------------------------


# Functions that turn numbers into decisions. A trace would fix the decisions of the traced batch.
READS_NUMBERS = {
    Tensor.__bool__, Tensor.item, Tensor.tolist, Tensor.numpy, Tensor.__int__, Tensor.__float__, Tensor.__index__,
    Tensor.equal, torch.equal, torch.allclose, Tensor.allclose, Tensor.__contains__,
}  # fmt: skip


class NotTraceableError(Exception):
    """A model cannot be traced, because it uses numbers in tensors for decisions, keeps numbers, or draws its own."""


@dataclass(eq=False)
class Node:
    """One call of a function. Leaves (parameters and the input) have a name and no function.

    Attributes:
        function: the called function; None for a leaf.
        args: arguments of the call; traced tensors appear as TracedOutput.
        kwargs: keyword arguments, in the same form.
        results: the returned tensors, as plain tensors.
        name: name of a leaf.
    """

    function: AnyFunction | None
    args: tuple[Any, ...]
    kwargs: dict[str, object]
    results: list[Shaped[Tensor, "..."]] = field(default_factory=list)
    name: str = ""

    def outputs(self) -> list["TracedOutput"]:
        """Return the traced arguments."""
        return [one for one in tree_leaves((self.args, self.kwargs)) if isinstance(one, TracedOutput)]


@dataclass(frozen=True)
class TracedOutput:
    """One of the tensors that a node returned."""

    node: Node
    item: int = 0

    @property
    def tensor(self) -> Shaped[Tensor, "..."]:
        """The plain tensor."""
        return self.node.results[self.item]


class Traced(Tensor):
    """A tensor that records every function called with it in the list of nodes, which all traced tensors share."""

    output: TracedOutput
    nodes: list[Node]

    @staticmethod
    def of(output: "TracedOutput", nodes: list[Node]) -> "Traced":
        """Return a traced tensor for the result of a node."""
        found: Traced = output.tensor.detach().as_subclass(Traced)
        found.output, found.nodes = output, nodes
        return found

    @classmethod
    def __torch_function__(
        cls, function: AnyFunction, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in TRACED:
            return TRACED[function](*args, **kwargs)
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        nodes = next(one.nodes for one in tensors if isinstance(one, Traced))
        before = _versions(tensors)
        with torch._C.DisableTorchFunctionSubclass():
            found = function(*tree_map(_plain, args), **tree_map(_plain, kwargs))
        if _versions(tensors) != before:
            raise NotTraceableError(f"it overwrites a tensor ({getattr(function, '__name__', function)})")
        if not (isinstance(found, Tensor) or (isinstance(found, (tuple, list)) and isinstance(found[0], Tensor))):
            if function in READS_NUMBERS:
                raise NotTraceableError(f"it reads numbers ({getattr(function, '__name__', function)})")
            return found
        node = Node(function, *tree_map(lambda one: one.output if isinstance(one, Traced) else one, (args, kwargs)))
        nodes.append(node)
        node.results = [found] if isinstance(found, Tensor) else list(found)
        wrapped = [Traced.of(TracedOutput(node, i), nodes) for i in range(len(node.results))]
        return wrapped[0] if isinstance(found, Tensor) else tuple(wrapped)


def _versions(tensors: list[Tensor]) -> list[int]:
    """Return how often each tensor was overwritten."""
    return [_plain(one)._version for one in tensors]


def _plain(value: object) -> Any:
    return value.output.tensor if isinstance(value, Traced) else value


@dataclass
class Trace:
    """The recorded forward pass of a model.

    Attributes:
        nodes: nodes in order.
        result: output that holds the scores.
        batch: number of examples in the small batch.
    """

    nodes: list[Node]
    result: TracedOutput
    batch: int


def trace(
    model: nn.Module,
    parameters: Mapping[str, Float[Tensor, "..."]],
    inputs: Shaped[Tensor, "batch ..."],
    training: bool,
) -> Trace:
    """Trace a model's forward pass.

    Args:
        model: the model.
        parameters: parameters of one model, by name.
        inputs: a small batch.
        training: whether the model samples as in training.

    Raises:
        NotTraceableError: the computation depends on more than the parameters, the input and the noise of an update.
    """
    nodes: list[Node] = []

    def leaf(name: str, value: Tensor) -> Traced:
        node = Node(None, (), {}, [value.detach()], name)
        nodes.append(node)
        return Traced.of(TracedOutput(node), nodes)

    mode, kept, drawn = model.training, _mutable_state(model), _random_states()
    model.train(training)
    noise = Noise(torch.zeros((), dtype=torch.long, device="cpu")) if training else None
    try:
        with torch.no_grad(), while_tracing(), drawing_from(noise):
            leaves: dict[str, Tensor] = {name: leaf(name, value) for name, value in parameters.items()}
            with _instead(model, leaves):
                found = model(leaf("", inputs))
    finally:
        model.train(mode)
    if _random_states() != drawn:
        raise NotTraceableError("it draws its own random numbers")
    if _mutable_state(model) != kept:
        raise NotTraceableError("it keeps numbers from one call to the next, or overwrites its parameters")
    if not isinstance(found, Traced):
        raise NotTraceableError("it has several outputs, or one that does not depend on its input")
    return Trace(nodes, found.output, len(inputs))


@contextmanager
def _instead(model: nn.Module, values: Mapping[str, Tensor]) -> Iterator[None]:
    """Replace a model's parameters by other tensors in the block.

    torch.func.functional_call would leave the replacements in a layer that a model has under two names.
    """
    mine = {id(parameter): values[name] for name, parameter in model.named_parameters()}
    places: list[tuple[dict[str, Any], str, nn.Parameter]] = [
        (module._parameters, name, parameter)
        for module in model.modules()
        for name, parameter in module._parameters.items()
        if parameter is not None
    ]
    try:
        for parameters, name, parameter in places:
            parameters[name] = mine[id(parameter)]
        yield
    finally:
        for parameters, name, parameter in places:
            parameters[name] = parameter


def _mutable_state(model: nn.Module) -> tuple[list[int], list[dict[str, float]]]:
    """Return how often each parameter was overwritten, and the plain numbers in modules, such as counts of calls."""
    numbers = [
        {name: value for name, value in vars(module).items() if isinstance(value, (int, float)) and name != "training"}
        for module in model.modules()
    ]
    return [parameter._version for parameter in model.parameters()], numbers


def _random_states() -> bytes:
    """Return the states of the generators that a model may draw from."""
    return pickle.dumps((torch.get_rng_state().numpy(), random.getstate(), np.random.get_state()))


# -- merge operations of a complete program ----------------------------------------------------------------------------


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


MOST_CHOICES = 1024

HANDLERS: dict[object, AnyFunction] = {}
Handler = TypeVar("Handler", bound=AnyFunction)
TURN = Tensor.mT.__get__  # type: ignore[attr-defined]
# Number of parts that a function needs of each argument, from the number of parts of its result.
Rule = Callable[[Node, int], list[tuple[object, int]]]
DEMANDS: dict[object, Rule] = {}


def lowers(*functions: object) -> Callable[[Handler], Handler]:
    """Return a decorator that registers how calls of these PyTorch functions become operations of the program."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(functions, handler))
        return handler

    return register


def demands(*functions: object) -> Callable[[Rule], Rule]:
    """Return a decorator that registers how many parts these functions need of each argument."""

    def register(rule: Rule) -> Rule:
        DEMANDS.update(dict.fromkeys(functions, rule))
        return rule

    return register


@dataclass
class ScorePlace:
    """Location of the scores of one place: a panel, and the first column in it."""

    panel: RowPanel
    first: int


class Lowering:
    """Lowers one trace.

    Args:
        traced: the trace of a model.
        builder: builder that gets the operations.
        offsets: offset of each parameter in the vector of a replicate.
        frozen: names of untrained parameters.
    """

    def __init__(self, traced: Trace, builder: Builder, offsets: dict[str, int], frozen: set[str]) -> None:
        self.builder, self.trace = builder, traced
        self._offsets, self._frozen = offsets, frozen
        self._nodes = _unique(traced)
        self._live = _reached(traced.result.node, self._nodes)
        self._users = Counter(self._same(o) for n in self._live for o in n.outputs())
        self._parts = self._demanded()
        self._values: dict[TracedOutput, Value] = {}
        self._known: set[int] = set()
        self.attended: Counter[RowPanel] = Counter()  # number of attentions that read a panel
        self.readings: dict[RowPanel, list[Reading]] = {}  # by heads of attentions, in their order
        self.turned: dict[tuple[RowPanel, int], Slab] = {}  # turned parts of panels; see attention.h
        self.unwritten: dict[RowPanel, set[int]] = {}  # parts of a panel's gradient that no operation wrote yet
        self.nearest: dict[tuple[RowPanel, MatrixView], Slab] = {}  # index of the nearest code of each row
        self.sent: list[ScorePlace] = []  # places of the scores that a link converts to messages
        self.sent_choices = 0  # number of scores of such a place

    def _same(self, output: TracedOutput) -> TracedOutput:
        return TracedOutput(self._nodes[output.node], output.item)

    def _demanded(self) -> dict[TracedOutput, int]:
        parts: dict[TracedOutput, int] = {}
        for node in reversed(self._live):
            wanted = max((parts.get(TracedOutput(node, i), 1) for i in range(len(node.results))), default=1)
            rule = DEMANDS.get(node.function)
            for argument, needed in rule(node, wanted) if rule else ():
                if isinstance(argument, TracedOutput):
                    key = self._same(argument)
                    parts[key] = max(parts.get(key, 1), needed)
        return parts

    def run(self) -> list[ScorePlace]:
        """Lower the whole trace, and return the places of the scores."""
        for node in self._live:
            self._lower(node)
        found = self._values[self._same(self.trace.result)]
        return self.score_places(found, self.trace.result.tensor.shape)

    def _lower(self, node: Node) -> None:
        if node.function is None:
            self._values[TracedOutput(node)] = self._leaf(node)
            return
        handler = HANDLERS.get(node.function)
        if handler is None:
            raise NotNativeError(f"it calls {_name(node)}")
        if node.function not in SEEN_OTHERWISE:
            self._check_widths(node)
        parts = self._parts.get(TracedOutput(node), 1)
        arguments = [self._argument(a) for a in node.args]
        named = {name: self._argument(value) for name, value in node.kwargs.items()}
        try:
            found = handler(self, node, parts, *arguments, **named)
        except NotNativeError:
            raise
        except (AssertionError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise NotNativeError(f"it calls {_name(node)} differently from icy's models") from error
        for i, value in enumerate(found if isinstance(found, tuple) else (found,)):
            output = TracedOutput(node, i)
            for one in value.steps if isinstance(value, Steps) else [value]:
                if isinstance(one, (RowPanel, Stops)):  # update the number of operations that read it
                    users, known = self._users[output], id(one) in self._known
                    one.users = one.users + users - 1 if known else one.users * users
                    self._known.add(id(one))
            self._values[output] = value

    def _check_widths(self, node: Node) -> None:
        """Raise if an argument of a function has other columns here: the cut of rows into places is not tracked."""
        for output in node.outputs():
            value = self._values[self._same(output)]
            widths = {_width_of(one) for one in (value.steps if isinstance(value, Steps) else [value])} - {None}
            if widths - {output.tensor.shape[-1] if output.tensor.dim() else 1}:
                raise NotNativeError(f"it calls {_name(node)} with rows that it has cut differently")

    def _argument(self, value: object) -> object:
        if isinstance(value, TracedOutput):
            return self._values[self._same(value)]
        if isinstance(value, (list, tuple)):
            return [self._argument(v) for v in value]
        return self.constant(value) if isinstance(value, Tensor) else value

    def _leaf(self, node: Node) -> Value:
        (tensor,) = node.results
        if node.name:
            return matrix_of(Space.PARAMETERS, self._offsets[node.name], tensor, node.name not in self._frozen)
        if tensor.is_floating_point():
            return Steps([Weights(place, tensor.shape[-1]) for place in range(tensor.shape[-2])])
        return Tokens(0, tensor.shape[-1], 0)

    def constant(self, tensor: Shaped[Tensor, "*shape"]) -> MatrixView | Kernel:
        """Return a plain tensor as a matrix of constants; if it has equal rows, one per example, as a single row."""
        if not tensor.is_floating_point():
            raise NotNativeError("it uses its own whole numbers")
        if tensor.dim() > 1 and tensor.shape[-2] == self.trace.batch:
            if not (tensor == tensor[..., :1, :]).all():
                raise NotNativeError("it uses constants that differ between examples")
            tensor = tensor[..., :1, :]
        offset = len(self.builder.constants)
        self.builder.constants += tensor.flatten().tolist()
        return matrix_of(Space.CONSTANTS, offset, tensor.contiguous(), False)

    def score_places(self, found: Value, shape: torch.Size) -> list[ScorePlace]:
        """Return the places of scores [batch, place, choice]."""
        places, choices = shape[-2:]
        if choices > MOST_CHOICES:
            raise NotNativeError(f"it has more than {MOST_CHOICES} choices")
        if isinstance(found, Steps):
            panels = [self.builder.as_panel(step) for step in found.steps]
            if len(panels) != places or any(_unlike_scores(p, choices) for p in panels):
                raise NotNativeError("it does not give one row of scores per place")
            # A loss writes the gradient of each place, so two places must not share memory.
            alone = [p if n == panels.index(p) else self.builder.scaled(p, 1.0) for n, p in enumerate(panels)]
            return [ScorePlace(panel, 0) for panel in alone]
        panel = self.builder.as_panel(found)
        if _unlike_scores(panel, places * choices):
            raise NotNativeError("its scores are not a product")
        return [ScorePlace(panel, place * choices) for place in range(places)]


def _name(node: Node) -> str:
    return str(getattr(node.function, "__qualname__", node.function))


def _width_of(value: Value) -> int | None:
    """Return the number of columns of a value, or None if it is not fixed."""
    if isinstance(value, (RowPanel, Zero, MatrixView, Turned)):
        return value.width if isinstance(value, RowPanel) else columns_of(value)
    if isinstance(value, Tokens):
        return value.places * (value.values or 1)
    return value.values if isinstance(value, Weights) else None


def _unlike_scores(panel: RowPanel, columns: int) -> bool:
    return panel.rows is not None or len(panel.slabs) != 1 or panel.width != columns


def _unique(traced: Trace) -> dict[Node, Node]:
    """Map each node to the first node that computes the same, for functions that only change a tensor's shape."""
    seen: dict[object, Node] = {}
    found: dict[Node, Node] = {}

    def key(value: object) -> object:
        if isinstance(value, TracedOutput):
            return (id(found[value.node]), value.item)
        if isinstance(value, (list, tuple)):
            return tuple(map(key, value))
        return (type(value), value) if isinstance(value, (int, float, str, bool, type(None))) else id(value)

    for node in traced.nodes:
        found[node] = node
        if node.function in SHAPED:
            known = (node.function, key(node.args), key(tuple(node.kwargs.items())))
            found[node] = seen.setdefault(known, node)
    return found


def _reached(last: Node, nodes: dict[Node, Node]) -> list[Node]:
    """Return the nodes that a node depends on, in order, and the node."""
    wanted, order = {nodes[last]}, []
    for node in reversed(nodes):
        if node in wanted:
            order.append(node)
            wanted.update(nodes[o.node] for o in node.outputs())
    return order[::-1]


def matrix_of(space: Space, offset: int, tensor: Shaped[Tensor, "..."], trained: bool) -> MatrixView | Kernel:
    """Return a stored tensor as a matrix, or as the matrices of a convolution."""
    shape = tensor.shape
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) == 3:  # weights of a convolution
        size = shape[1] * shape[2]
        return Kernel(
            [MatrixView(space, offset + k * size, shape[1], shape[2], shape[2], 1, trained) for k in range(shape[0])]
        )
    if len(shape) > 2:
        raise NotNativeError("a tensor of more than three axes")
    rows, columns = (1, *shape)[-2:] if len(shape) else (1, 1)
    return MatrixView(space, offset, rows, columns, columns, 1, trained)


SHAPED = {
    Tensor.unsqueeze, TURN, Tensor.flatten, Tensor.reshape, Tensor.view, Tensor.expand, Tensor.add,
    Tensor.new_zeros, torch.cat, Tensor.div,
}  # fmt: skip


SEEN_OTHERWISE = {
    Tensor.unsqueeze, Tensor.reshape, Tensor.view, Tensor.expand, Tensor.contiguous, Tensor.unflatten, Tensor.flatten,
    Tensor.unbind, Tensor.transpose, Tensor.squeeze, Tensor.repeat, TURN, without_start, without_missing, linked,
}  # fmt: skip
