"""What a trace does not hold is found by comparing with PyTorch: strangers' models that it would get wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from icy.models.native.builder import NotNativeError
from icy.models.native.calls import Caller, NativeModule, require_same
from icy.models.native.program import Program
from tests.cores import needs_native
from tests.models.native.helpers import inputs_of, make
from tests.models.native.strange import Strange, tied

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
