"""The contract of worlds: for every check a world that is wrong in the way it looks for, and fails it alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from icy import testing
from icy.core.errors import UnknownNameError
from icy.core.noise import counter_hash, shift
from icy.core.registry import WORLD, Entry, registry
from icy.games import World
from icy.testing import WORLD_CHECKS, ContractError


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


class Flat(Plain):
    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        return super().observe(objects, keys).flatten(0, -2)


class Double(Plain):
    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        return super().observe(objects, keys).double()


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


class Mixes(Plain):
    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        seen = super().observe(objects, keys)
        return seen + len(seen)


class Blind(Plain):
    """Shows the first attribute alone."""

    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        return super().observe(objects * torch.tensor([1, 0], device=keys.device), keys)


class Draws(Plain):
    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        np.random.random()
        return super().observe(objects, keys)


class Writes(Plain):
    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        seen = super().observe(objects, keys)
        if len(objects):
            objects[..., 0] = 0
        return seen


class OnTheCPU(Plain):
    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        return super().observe(objects, keys) + torch.zeros(3)


class Unpicklable(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.generator = (i for i in range(3))


WRONG: dict[str, Any] = {
    "made_by_name": NoWorld,
    "attributes_and_values": OneValue,
    "shape_of_looks": Double,
    "finite": Breaks,
    "same_key_same_look": Counts,
    "alone_as_in_a_batch": Mixes,
    "values_are_seen": Blind,
    "random_state_untouched": Draws,
    "inputs_unchanged": Writes,
    "moves_to_device": OnTheCPU,
    "pickles": Unpicklable,
}
ALSO = {
    "made_by_name": set(WORLD_CHECKS),
    "inputs_unchanged": {"same_key_same_look", "alone_as_in_a_batch", "values_are_seen", "pickles"},
    "same_key_same_look": {"alone_as_in_a_batch", "values_are_seen"},
}


@pytest.mark.parametrize("check", WRONG)
def test_a_wrong_world_fails_its_check(check: str) -> None:
    results = testing.check(WRONG[check], "world", raise_on_failure=False)
    failed = {r.name for r in results if not r.passed}
    assert check in failed
    assert failed <= {check} | ALSO.get(check, set())


@pytest.mark.parametrize(("wrong", "check"), [(Flat, "shape_of_looks"), (Fickle, "same_key_same_look")])
def test_other_mistakes_are_found_too(wrong: Any, check: str) -> None:
    assert check in {r.name for r in testing.check(wrong, "world", raise_on_failure=False) if not r.passed}


def test_every_check_has_a_world_that_fails_it() -> None:
    assert {*WRONG, "looks_vary"} == set(WORLD_CHECKS)  # which says how a world is, and allows both


def test_a_strangers_world_passes() -> None:
    results = {r.name: r for r in testing.check(Plain, "world")}
    assert set(results) == set(WORLD_CHECKS)
    assert results["made_by_name"].message == "does not apply: the world is not registered"
    assert results["looks_vary"].message == "objects have many looks"


def test_a_factory_that_must_be_given_something_is_refused_once() -> None:
    def needs(colours: int) -> World:
        return Plain()

    (result,) = testing.check(needs, "world", raise_on_failure=False)
    assert "needs takes (colours), and a world must take options alone, each with a default" in result.message


def test_registered_worlds_are_found() -> None:
    entry = Entry(WORLD, "mine", Plain, "", "", origin=__name__, aliases=("my_own",))
    with registry.holding(entry):
        assert not {r.name: r for r in testing.check("my_own", "world")}["made_by_name"].excused
    with pytest.raises(UnknownNameError, match=r"No world is called 'mine'.*`icy list worlds`"):
        testing.check("mine", "world")
    with pytest.raises(ContractError, match="world/Blind fails 1 of"):
        testing.check(Blind, "world")
    assert all(r.passed for r in testing.check(Blind, "world", expected_failures={"values_are_seen": "on purpose"}))
