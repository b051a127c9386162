"""Tracing: what a model calls, in order, and what cannot be written down."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from icy.models.layers import Linear, linear
from icy.models.native.lower import NotTraceableError, trace
from tests.models.native.helpers import inputs_of, make


class Sum(nn.Module):
    """A linear layer after a function of two arguments."""

    def __init__(self, function: Callable[[Tensor, Tensor], object]) -> None:
        super().__init__()
        self.function, self.out = function, Linear(3, 2)

    def forward(self, x: Tensor) -> object:
        return self.function(self.out(x), x)


def traced(function: Callable[[Tensor, Tensor], object]) -> list[str]:
    model = Sum(function)
    found = trace(model, dict(model.named_parameters()), torch.randn(5, 3), training=True)
    assert found.batch == 5
    return [str(getattr(node.function, "__name__", node.name)) for node in found.nodes]


def test_a_trace_names_the_functions_in_order() -> None:
    assert traced(lambda y, x: y.tanh() + 1) == ["out.weight", "out.bias", "", "linear", "tanh", "add"]


def test_marked_functions_are_seen_as_one() -> None:
    model = make("sender", "RNNAutoReg:GRU")
    found = trace(model, dict(model.named_parameters()), inputs_of("sender"), training=True)
    names = [getattr(node.function, "__name__", "") for node in found.nodes]
    assert names.count("gru_step") == 6
    assert not {"sigmoid", "bmm", "addmm", "tanh"} & set(names)


def test_a_trace_computes_what_the_model_does() -> None:
    model, inputs = make("sender", "HierZero:LSTM"), inputs_of("sender")
    found = trace(model, dict(model.named_parameters()), inputs, training=False)
    with torch.no_grad():
        torch.testing.assert_close(found.result.tensor, model.eval()(inputs))
    assert not found.result.tensor.requires_grad


def test_tensors_that_a_function_is_given_in_lists_or_by_name_are_outputs() -> None:
    model = Sum(lambda y, x: torch.cat([y, linear(y, torch.ones(2, 2))], dim=-1))
    found = trace(model, dict(model.named_parameters()), torch.randn(5, 3), training=True)
    last = found.result.node
    assert [o.node.function for o in last.outputs()] == [linear, linear]
    assert last.kwargs == {"dim": -1}


def test_several_results_of_one_call() -> None:
    model = Sum(lambda y, x: y.unbind(-1)[1])
    found = trace(model, dict(model.named_parameters()), torch.randn(5, 3), training=True)
    assert found.result.item == 1
    assert len(found.result.node.results) == 2


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda y, x: y if y.sum() > 0 else -y, r"it reads numbers \(__bool__\)"),
        (lambda y, x: y * x[0, 0].item(), r"it reads numbers \(item\)"),
        (lambda y, x: y * float(y[0, 0]), r"it reads numbers \(__float__\)"),
        (lambda y, x: y + len(y.tolist()), r"it reads numbers \(tolist\)"),
        (lambda y, x: y if torch.equal(y, x) else x, r"it reads numbers \(equal\)"),
        (lambda y, x: (y, x), "several outputs"),
        (lambda y, x: [y], "several outputs"),
        (lambda y, x: torch.zeros(5, 2), "one that does not depend on its input"),
    ],
)
def test_data_dependent_code_is_refused(function: Callable[[Tensor, Tensor], object], why: str) -> None:
    with pytest.raises(NotTraceableError, match=why):
        traced(function)


@pytest.mark.parametrize("training", [True, False])
def test_a_model_is_left_as_it_was(training: bool) -> None:
    model = make("sender", "RNNAutoReg:GRU", representation="gumb").train(training)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    inputs, state = inputs_of("sender"), torch.get_rng_state()
    trace(model, dict(model.named_parameters()), inputs, training=not training)
    assert model.training is training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(p.requires_grad and p.grad is None for p in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)  # of an update's noise, nothing is drawn from PyTorch's generator


def _annealed(model: Sum, y: Tensor, x: Tensor) -> Tensor:
    model.calls = getattr(model, "calls", 0) + 1  # type: ignore[assignment]
    return y / model.calls  # type: ignore[operator]


def _clamped(model: Sum, y: Tensor, x: Tensor) -> Tensor:
    model.out.weight.clamp_(-5, 5)
    return y


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda m, y, x: y + torch.randn(2), "it draws its own random numbers"),
        (lambda m, y, x: y if torch.rand(()).item() < 0.5 else y.relu(), "it draws its own random numbers"),
        (lambda m, y, x: y * random.random(), "it draws its own random numbers"),
        (lambda m, y, x: y * np.random.rand(), "it draws its own random numbers"),
        (_annealed, "it keeps numbers from one call to the next"),
        (_clamped, "overwrites a tensor"),
    ],
)
def test_state_between_calls_is_refused(function: Callable[[Sum, Tensor, Tensor], Tensor], why: str) -> None:
    model = Sum(lambda y, x: function(model, y, x))
    with pytest.raises(NotTraceableError, match=why):
        trace(model, dict(model.named_parameters()), torch.randn(5, 3), training=True)


def test_a_layer_that_a_model_has_twice_is_left_as_it_was() -> None:
    layer = Linear(3, 3)
    model = nn.Sequential(layer, nn.Tanh(), layer)
    found = trace(model, dict(model.named_parameters()), torch.randn(5, 3), training=True)
    assert [node.name for node in found.nodes if node.function is None] == ["0.weight", "0.bias", ""]
    assert type(layer.weight) is nn.Parameter


def test_a_model_is_left_as_it_was_by_an_error() -> None:
    model = Sum(lambda y, x: y.tolist()).train()
    with pytest.raises(NotTraceableError):
        trace(model, dict(model.named_parameters()), torch.randn(5, 3), training=False)
    assert model.training
