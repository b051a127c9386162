"""Perceptions that are wrong in the way that a check looks for; test_kinds checks them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from icy import testing
from icy.core.errors import IncompatibleError
from icy.games.perception.conv4 import Conv4
from icy.testing import PERCEPTION_CHECKS
from tests.testing.mistakes import Kind, changed, shared_mistakes


class Plain(nn.Module):
    """A perception as a stranger would write it, of features alone."""

    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__()
        if len(shape) != 1:
            raise IncompatibleError(f"It sees features, not objects of shape {shape}.")
        self.size = size
        self.layer = nn.Linear(shape[0], size)

    def forward(self, objects: Tensor) -> Tensor:
        return torch.tanh(self.layer(objects))


def no_module(shape: tuple[int, ...], size: int) -> Any:
    return lambda objects: objects


class TooWide(Plain):
    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__(shape, size + 1)


class Blind(Plain):
    def forward(self, objects: Tensor) -> Tensor:
        return super().forward(torch.ones_like(objects))


class SharedAverage(Plain):
    """Says that it broadcasts, and keeps one running average for all."""

    broadcasts = True

    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__(shape, size)
        self.average: Tensor
        self.register_buffer("average", torch.zeros(()))

    def forward(self, objects: Tensor) -> Tensor:
        if self.training:
            self.average.lerp_(objects.mean().detach(), 0.1)
        found: Tensor = objects @ self.layer.weight.mT + self.layer.bias.unsqueeze(-2) + self.average
        return found


SHARED = shared_mistakes(Plain, {*PERCEPTION_CHECKS, "examples_independent"})
KIND = Kind(
    "perception",
    PERCEPTION_CHECKS,
    {
        "made_by_name": no_module,
        "output_shape": TooWide,
        "finite_output": changed(Plain, lambda perception, objects, vectors: vectors / objects.sum(-1, keepdim=True)),
        "objects_independent": SHARED.pop("examples_independent"),
        "objects_differ": Blind,
        "stacked_equals_separate": SharedAverage,
        "learns": changed(Plain, lambda perception, objects, vectors: 2 * vectors.detach() - vectors),  # wrong sign
        **SHARED,
    },
    Plain,
    {"output_shape": "supports objects of shape (12,)", "stacked_equals_separate": "trains as: vmap"},
    also={
        "made_by_name": PERCEPTION_CHECKS,
        "output_shape": {"gradients_reach_parameters", "stacked_equals_separate", "learns"},
    },
    mark="contract",
)


def test_a_perception_that_refuses_all_shapes_fails() -> None:
    def choosy(shape: tuple[int, ...], size: int) -> nn.Module:
        raise IncompatibleError("Nothing is good enough.")

    results = testing.check(choosy, "perception", raise_on_failure=False)
    (message,) = {r.message for r in results if not r.passed}
    assert "It supports none of the tried shapes: Nothing is good enough." in message


@pytest.mark.contract
def test_sizes_are_the_requested_sizes() -> None:
    assert all(r.passed for r in testing.check(Conv4, "perception", size=3, seed=5))
