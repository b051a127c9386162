"""Tracing and lowering: what a model calls, and its numbers against PyTorch's."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from icy.models.layers import Linear, linear
from icy.models.native.builder import NotNativeError
from icy.models.native.calls import Caller, NativeModule, require_same
from icy.models.native.lower import NotTraceableError, trace
from icy.models.native.program import Program
from tests.cores import needs_native
from tests.models.native.helpers import assert_same_pass, inputs_of, make
from tests.models.native.strange import ALL, Strange, tied

# -- tracing: what a model calls, in order, and what cannot be written down --------------------------------------------


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


# -- lowering models that are not icy's: each is computed correctly, or refused in a sentence --------------------------


REFUSED = {
    "stack_last": "it does not give one row of scores per place",
    "places_and_choices_swapped": "it transposes examples",
    "reversed_places": "it calls TensorBase.flip",
    "words": "it calls flat_one_hot with rows that it has cut differently",
    "reshaped_tokens": "it calls flat_one_hot with rows that it has cut differently",
    "column": "it calls TensorBase.add with rows that it has cut differently",
    "cat_by_name": "its scores are not a product",
    "cat_of_named": "its calls cannot be recorded (tuple index out of range)",
    "rows_cut": "with rows that it has cut differently",
    "rows_cut_for_a_layer": "it calls linear with rows that it has cut differently",
    "joined_places": "it calls linear with rows that it has cut differently",
    "places_mixed": "it reshapes a sequence into another",
    "examples_turned": "it takes something other than columns of examples",
    "first_example": "it takes something other than columns of examples",
    "softmax_over_examples": "a softmax that is not over the symbols of each example",
    "batch_norm": "it takes a mean over examples or columns",
    "mean_over_columns": "it calls TensorBase.mean differently from icy's models",
    "shifted_tokens": "it calls Tensor.__floordiv__",
    "constant_per_example": "it uses constants that differ between examples",
    "scaled_and_negated": "it calls TensorBase.neg",
    "alpha": "it calls _VariableFunctionsClass.add",
    "rounded_division": "it calls _VariableFunctionsClass.div",
    "in_place": "it overwrites a tensor (add_)",
    "relu_in_place": "it overwrites a tensor (relu)",
    "written_over": "it overwrites a tensor (__setitem__)",
    "mixed_by_scores": "it calls _VariableFunctionsClass.sigmoid",
    "two_chunks": "it splits something other than a sequence",
    "sees_twice": "an attention that reads the same rows twice",
    "learnt_start": "one row for all examples",
    "clamped_in_place": "it overwrites a tensor (clamp_)",
    "masked_in_place": "it overwrites a tensor (__setitem__)",
    "noise_of_its_own": "it draws its own random numbers",
}


@needs_native
@pytest.mark.parametrize("name", sorted(ALL.keys() - REFUSED))
def test_accepted_models_are_computed_correctly(name: str) -> None:
    assert_same_pass(Strange(ALL[name]), inputs_of("sender"))


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_models_are_refused_in_a_sentence(name: str) -> None:
    model = Strange(ALL[name])
    model(inputs_of("sender"))  # is a model
    with pytest.raises(NotNativeError) as error:
        Program(model, inputs_of("sender"), training=True, gradient=True)
    assert REFUSED[name] in str(error.value)


def test_a_gate_that_a_batch_shares_is_refused_in_parts_of_a_batch() -> None:
    """The published receivers use the gate of the first example for all examples."""
    model = make("receiver", "Hier:GRU", shared_gate=True)
    with pytest.raises(NotNativeError, match="its gates depend on the batch"):
        Program(model, inputs_of("receiver"), training=True, gradient=True)


@needs_native
@pytest.mark.parametrize("frozen", ["embed.weight", "net.layers.0.weight_hh", "out.bias", "feedback.embed.weight"])
def test_frozen_parameters_have_no_gradient_and_those_below_them_do(frozen: str) -> None:
    model = make("sender", "RNNAutoReg:GRU")
    model.get_parameter(frozen).requires_grad_(False)
    assert_same_pass(model, inputs_of("sender"))


@needs_native
def test_parameters_that_nothing_reads_have_no_gradient() -> None:
    model = Strange(ALL["residual"])
    assert {name for name, p in model.named_parameters() if p.shape == torch.Size([1, 40])} == {"row"}
    assert_same_pass(model, inputs_of("sender"))


# -- what a trace does not hold is found by comparing with PyTorch -----------------------------------------------------


pytestmark = needs_native


class Reversed(torch.autograd.Function):
    """tanh, with a gradient of another sign."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.tanh(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        return -grad


def without_gradient(m: Any, h: Tensor) -> Tensor:
    with torch.no_grad():
        return m.second(h)


def hooked(m: Any, h: Tensor) -> Tensor:
    if h.requires_grad:
        h.register_hook(torch.neg)
    return h


def large_batches_otherwise(m: Any, h: Tensor) -> Tensor:
    return h.relu() if len(h) > 64 else h


def only_small_batches(m: Any, h: Tensor) -> Tensor:
    assert len(h) < 64, "too many"
    return h


def strange(middle: Callable[[Any, Tensor], Tensor]) -> Strange:
    def run(m: Any, x: Tensor) -> Tensor:
        return m.steps([torch.tanh(m.first(middle(m, m.embed(x))))] * 6)

    return Strange(run)


def verify(model: torch.nn.Module, training: bool = True) -> None:
    program = Program(model, inputs_of("sender"), training, gradient=training)
    require_same(Caller(), program, model, training)


@pytest.mark.parametrize(
    ("middle", "why"),
    [
        (without_gradient, "another gradient of embed.weight"),
        (lambda m, h: Reversed.apply(h), "another gradient of embed.weight"),
        (hooked, "another gradient of embed.weight"),
        (large_batches_otherwise, "other scores"),
        (only_small_batches, "too many"),
    ],
)
def test_untraced_behavior_is_found(middle: Callable[[Any, Tensor], Tensor], why: str) -> None:
    with pytest.raises(NotNativeError, match=why):
        verify(strange(middle))


@pytest.mark.parametrize("training", [True, False])
def test_models_that_a_trace_holds_pass_and_stay_as_they_are(training: bool) -> None:
    for model in (Strange(tied), make("sender", "RNNAutoReg:GRU", representation="gumb")):
        before = copy.deepcopy(model.state_dict())
        verify(model, training)
        assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
        assert all(p.grad is None for p in model.parameters())


def test_parts_of_pairs_are_compared_too() -> None:
    with pytest.raises(NotNativeError, match="another gradient"):
        NativeModule(strange(without_gradient), [inputs_of("sender")])
