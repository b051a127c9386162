"""Trace a model: run it once on a small batch and record the operations on its parameters and its input."""

import pickle
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from icy.core.fused import while_tracing
from icy.core.noise import Noise, drawing_from
from icy.core.types import AnyFunction
from icy.models.stock import TRACED

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
        return _outputs(self.args) + _outputs(tuple(self.kwargs.values()))


@dataclass(frozen=True)
class TracedOutput:
    """One of the tensors that a node returned."""

    node: Node
    item: int = 0

    @property
    def tensor(self) -> Shaped[Tensor, "..."]:
        """The plain tensor."""
        return self.node.results[self.item]


def _outputs(values: object) -> list["TracedOutput"]:
    if isinstance(values, TracedOutput):
        return [values]
    if isinstance(values, (tuple, list)):
        return [one for value in values for one in _outputs(value)]
    return []


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
        nodes = next(t.nodes for t in _traced((args, tuple(kwargs.values()))))
        before = _versions((args, tuple(kwargs.values())))
        with torch._C.DisableTorchFunctionSubclass():
            found = function(*_map(args, _plain), **{k: _map(v, _plain) for k, v in kwargs.items()})
        if _versions((args, tuple(kwargs.values()))) != before:
            raise NotTraceableError(f"it overwrites a tensor ({getattr(function, '__name__', function)})")
        if not (isinstance(found, Tensor) or (isinstance(found, (tuple, list)) and isinstance(found[0], Tensor))):
            if function in READS_NUMBERS:
                raise NotTraceableError(f"it reads numbers ({getattr(function, '__name__', function)})")
            return found
        node = Node(function, _map(args, _output), {k: _map(v, _output) for k, v in kwargs.items()})
        nodes.append(node)
        node.results = [found] if isinstance(found, Tensor) else list(found)
        wrapped = [Traced.of(TracedOutput(node, i), nodes) for i in range(len(node.results))]
        return wrapped[0] if isinstance(found, Tensor) else tuple(wrapped)


def _traced(values: object) -> list[Traced]:
    if isinstance(values, Traced):
        return [values]
    return [one for value in values for one in _traced(value)] if isinstance(values, (tuple, list)) else []


def _versions(values: object) -> list[int]:
    """Return how often each tensor was overwritten."""
    if isinstance(values, (tuple, list)):
        return [n for value in values for n in _versions(value)]
    return [_plain(values)._version] if isinstance(values, Tensor) else []


def _map(value: object, function: Callable[[object], object]) -> Any:
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)(_map(v, function) for v in value)
    return function(value)


def _plain(value: object) -> Any:
    return value.output.tensor if isinstance(value, Traced) else value


def _output(value: object) -> object:
    return value.output if isinstance(value, Traced) else value


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
