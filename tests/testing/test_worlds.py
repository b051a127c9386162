"""Worlds that are wrong in the way that a check looks for; test_kinds checks them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from icy import testing
from icy.core.noise import counter_hash, shift
from icy.games import World
from icy.testing import WORLD_CHECKS
from tests.testing.mistakes import Kind, changed, shared_mistakes


class Plain(World):
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


class OneValue(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.values = (("small", "large"), ("light", "middling", "light"))


class Breaks(Plain):
    """Divides by the key."""

    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        seen = super().observe(objects, keys)
        return seen + (1 / keys)[..., None]


class Counts(Plain):
    calls = 0

    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        self.calls += 1
        return super().observe(objects, keys) + (self.calls == 2)


class Fickle(Plain):
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


class Blind(Plain):
    """Shows the first attribute alone."""

    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        return super().observe(objects * torch.tensor([1, 0], device=keys.device), keys)


KIND = Kind(
    "world",
    WORLD_CHECKS,
    {
        "made_by_name": NoWorld,
        "attributes_and_values": OneValue,
        "shape_of_looks": changed(Plain, lambda world, objects, looks: looks.double()),
        "finite": Breaks,
        "same_key_same_look": Counts,
        "alone_as_in_a_batch": changed(Plain, lambda world, objects, looks: looks + len(looks)),
        "values_are_seen": Blind,
        **shared_mistakes(Plain, WORLD_CHECKS),
    },
    Plain,
    {"looks_vary": "objects have many looks"},
    also={
        "made_by_name": WORLD_CHECKS,
        "inputs_unchanged": {"same_key_same_look", "alone_as_in_a_batch", "values_are_seen"},
        "same_key_same_look": {"alone_as_in_a_batch", "values_are_seen"},
    },
    unfailing=frozenset({"looks_vary"}),  # which says how a world is, and allows both
)


FLAT = changed(Plain, lambda world, objects, looks: looks.flatten(0, -2))


@pytest.mark.parametrize(("wrong", "check"), [(FLAT, "shape_of_looks"), (Fickle, "same_key_same_look")])
def test_other_mistakes_are_found_too(wrong: Any, check: str) -> None:
    assert check in {r.name for r in testing.check(wrong, "world", raise_on_failure=False) if not r.passed}


def test_a_factory_that_must_be_given_something_is_refused_once() -> None:
    def needs(colors: int) -> World:
        return Plain()

    (result,) = testing.check(needs, "world", raise_on_failure=False)
    assert "needs takes (colors), and a world must take options only, each with a default" in result.message
