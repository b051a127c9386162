"""Checks of worlds of the multi-target games. The first line of each docstring is the claim that the check tests."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icy.core.noise import counter_hash
from icy.core.registry import Entry
from icy.core.streams import stream, stream_key
from icy.games import World
from icy.games.worlds.factory import make_from_entry

from . import modules
from .cases import check_made_by_name, named, require
from .modules import TensorCase

OBJECTS = 12
EXTREMES = (0, 1, -1, 2**63 - 1, -(2**63))  # keys
PAIRS = 3  # number of pairs of objects that differ in one value, for each attribute


@dataclass(frozen=True)
class WorldCase(TensorCase[World]):
    """A world under test.

    Attributes:
        entry: the world's registry entry.
        seed: seed of the objects.
        registered: whether the registry knows the world.
    """

    noun = "world"
    gpu_tolerance = 1 / 64
    entry: Entry
    seed: int = 0
    registered: bool = True

    def make(self) -> World:
        """Create the world with its default options."""
        return make_from_entry(self.entry)

    def objects(self, world: World) -> Tensor:
        """Draw objects, [object, attr]."""
        sizes = world.sizes
        return torch.from_numpy(stream(self.seed, "testing", "world").integers(sizes, size=(OBJECTS, len(sizes))))

    def keys(self) -> Tensor:
        """Draw keys for the looks of objects, [object]."""
        return counter_hash(
            torch.tensor(stream_key(self.seed, "testing", "looks"), dtype=torch.int64, device="cpu"),
            torch.arange(OBJECTS, device="cpu"),
        )

    def draw_inputs(self, world: World) -> tuple[Tensor, Tensor]:
        """Draw objects and keys."""
        return self.objects(world), self.keys()

    @torch.no_grad()
    def outputs(self, world: World, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the looks of objects."""
        return (world.observe(*given),)


def check_attributes_and_values(case: WorldCase) -> None:
    """Every attribute has a name of its own, and at least two values with names of their own."""
    world = case.make()
    names = tuple(world.attributes)
    require(len(names) == len(world.values), f"There are {len(names)} attributes, but values of {len(world.values)}.")
    require(len(names) > 0 and len(set(names)) == len(names), f"The attributes are {names}; give each its own name.")
    for name, values in zip(names, world.values, strict=True):
        require(len(values) > 1, f"The attribute '{name}' has {len(values)} values; it must have two or more.")
        require(len(set(values)) == len(values), f"Two values of the attribute '{name}' have the same name.")
    every = (*names, *(value for values in world.values for value in values))
    require(all(isinstance(name, str) and name for name in every), "A name of an attribute or value is not a text.")


def check_shape_of_looks(case: WorldCase) -> None:
    """`observe` gives numbers of single precision [*batch, *shape], for any axes of the batch."""
    world = case.make()
    objects, keys = case.draw_inputs(world)
    for axes in ((OBJECTS,), (3, 4), (2, 1, 6), (0,)):
        count = torch.Size(axes).numel()
        seen = world.observe(objects[:count].view(*axes, len(world.sizes)), keys[:count].view(axes))
        expected = (*axes, *world.shape)
        require(tuple(seen.shape) == expected, f"Objects {axes} are seen as {tuple(seen.shape)}, not {expected}.")
        require(seen.dtype == torch.float32, f"Objects are seen as {seen.dtype}, not torch.float32.")


def check_finite(case: WorldCase) -> None:
    """All looks are finite, with every value of every attribute, and with the extremes of 64-bit keys."""
    world = case.make()
    for attribute, size in enumerate(world.sizes):
        for key in EXTREMES:
            objects = torch.zeros(size, len(world.sizes), dtype=torch.long, device="cpu")
            objects[:, attribute] = torch.arange(size, device="cpu")
            seen = world.observe(objects, torch.full((size,), key, dtype=torch.int64, device="cpu"))
            name = world.attributes[attribute]
            require(seen.isfinite().all(), f"A look is not finite, for a value of '{name}' and the key {key}.")


def check_same_key_same_look(case: WorldCase) -> None:
    """The same objects and keys give the same looks, bit for bit, also in a new world."""
    world = case.make()
    objects, keys = case.draw_inputs(world)
    first = world.observe(objects, keys)
    again = torch.equal(world.observe(objects, keys), first)
    require(again, "The same objects and keys look different the second time; `observe` must not keep state.")
    anew = torch.equal(case.make().observe(objects, keys), first)
    require(anew, "Another world with the same options gives other looks; derive all randomness from the keys.")


def check_alone_as_in_a_batch(case: WorldCase) -> None:
    """An object looks the same in any batch, bit for bit."""
    world = case.make()
    objects, keys = case.draw_inputs(world)
    together = world.observe(objects, keys)
    for n in range(OBJECTS):
        alone = world.observe(objects[n : n + 1], keys[n : n + 1])[0]
        require(torch.equal(alone, together[n]), "An object looks different alone and in a batch.")


def check_values_are_seen(case: WorldCase) -> None:
    """Objects that differ in one value look different, with the same key."""
    world = case.make()
    objects, keys = case.draw_inputs(world)
    for attribute, size in enumerate(world.sizes):
        other = objects[:PAIRS].clone()
        other[:, attribute] = (other[:, attribute] + 1) % size
        one, two = world.observe(objects[:PAIRS], keys[:PAIRS]), world.observe(other, keys[:PAIRS])
        differ = (one != two).flatten(1).any(1)
        require(differ.all(), f"Objects that differ in '{world.attributes[attribute]}' look the same.")


def check_looks_vary(case: WorldCase) -> str:
    """Reports whether objects of equal values look different with different keys; both are allowed."""
    world = case.make()
    objects, keys = case.draw_inputs(world)
    seen = world.observe(objects[:1].repeat(OBJECTS, 1), keys)
    return "objects have many looks" if (seen != seen[:1]).any() else "objects have one look each"


WORLD_CHECKS = named(
    check_made_by_name,
    check_attributes_and_values,
    check_shape_of_looks,
    check_finite,
    check_same_key_same_look,
    check_alone_as_in_a_batch,
    check_values_are_seen,
    check_looks_vary,
    modules.check_random_state_untouched,
    modules.check_inputs_unchanged,
    modules.check_moves_to_device,
    modules.check_pickles,
)
