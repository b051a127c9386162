"""Worlds and perceptions that are wrong in the way that a check looks for; test_kinds checks them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from icy import testing
from icy.core.errors import IncompatibleError
from icy.core.noise import counter_hash, shift
from icy.games import World
from icy.games.perception.conv4 import Conv4
from tests.testing.mistakes import EVERY, Kind, changed, shared_mistakes


class PlainWorld(World):
    """A world as a stranger would write it: two attributes as numbers, and a look between 0 and 1."""

    def __init__(self) -> None:
        self.attributes = ("size", "weight")
        self.values = (("small", "large"), ("light", "middling", "heavy"))
        self.shape = (3,)

    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        look = shift(counter_hash(keys, torch.zeros_like(keys)), 40).float() * 2.0**-24
        return torch.cat([objects.float(), look[..., None]], -1)


class NoWorld:
    """Not derived from World."""


class OneValue(PlainWorld):
    def __init__(self) -> None:
        super().__init__()
        self.values = (("small", "large"), ("light", "middling", "light"))


class Breaks(PlainWorld):
    """Divides by the key."""

    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        seen = super().observe(objects, keys)
        return seen + (1 / keys)[..., None]


class Counts(PlainWorld):
    calls = 0

    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        self.calls += 1
        return super().observe(objects, keys) + (self.calls == 2)


class Fickle(PlainWorld):
    """Every world has a number of its own."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        Fickle.made += 1
        self.number = Fickle.made

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state

    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        return super().observe(objects, keys) + self.number


class BlindWorld(PlainWorld):
    """Shows the first attribute alone."""

    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        return super().observe(objects * torch.tensor([1, 0], device=keys.device), keys)


WORLD = Kind(
    "world",
    {
        "made_by_name": NoWorld,
        "attributes_and_values": OneValue,
        "shape_of_looks": changed(PlainWorld, lambda world, objects, looks: looks.double()),
        "finite_output": Breaks,
        "same_key_same_look": Fickle,
        "examples_independent": changed(PlainWorld, lambda world, objects, looks: looks + len(looks)),
        "values_are_seen": BlindWorld,
        **shared_mistakes(PlainWorld, "world"),
        "deterministic": Counts,
    },
    PlainWorld,
    also={
        "made_by_name": EVERY,
        "deterministic": {"examples_independent", "values_are_seen"},
    },
)


def test_looks_without_the_axes_of_the_batch_are_found() -> None:
    flat = changed(PlainWorld, lambda world, objects, looks: looks.flatten(0, -2))
    assert "shape_of_looks" in {r.name for r in testing.check(flat, "world", raise_on_failure=False) if not r.passed}


def test_a_factory_that_must_be_given_something_is_refused_once() -> None:
    def needs(colors: int) -> World:
        return PlainWorld()

    (result,) = testing.check(needs, "world", raise_on_failure=False)
    assert "needs takes (colors), and a world must take options only, each with a default" in result.message


class PlainPerception(nn.Module):
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


class TooWide(PlainPerception):
    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__(shape, size + 1)


class SharedAverage(PlainPerception):
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


PERCEPTION = Kind(
    "perception",
    {
        "made_by_name": no_module,
        "output_shape": TooWide,
        "finite_output": changed(
            PlainPerception, lambda plugin, objects, vectors: vectors / objects.sum(-1, keepdim=True)
        ),
        "stacked_equals_separate": SharedAverage,
        **shared_mistakes(PlainPerception, "perception"),
    },
    PlainPerception,
    {"output_shape": "supports objects of shape (12,)", "stacked_equals_separate": "trains as: vmap"},
    also={
        "made_by_name": EVERY,
        "state_dict": EVERY,
        "output_shape": {"gradients_reach_parameters", "stacked_equals_separate"},
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
