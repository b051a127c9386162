"""Checks of worlds and perceptions of the multi-target games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from icy.core.errors import IcyError
from icy.core.noise import counter_hash
from icy.core.streams import stream, stream_key
from icy.games import World
from icy.games.worlds.world import make_from_entry

from .cases import require
from .modules import TensorCase, Tensors, TrainedCase

OBJECTS = 12
EXTREMES = (0, 1, -1, 2**63 - 1, -(2**63))  # keys
PAIRS = 3  # number of pairs of objects that differ in one value, for each attribute
SHAPES = ((12,), (3, 16, 16))  # shapes of objects that a perception may support: features, and an image
BATCH = 6


@dataclass(frozen=True)
class WorldCase(TensorCase[World]):
    """A world under test, with its default options. Its looks are the same in any batch, bit for bit."""

    tolerance = 0.0
    gpu_tolerance = 1 / 64

    def make(self) -> World:
        """Create the world."""
        return make_from_entry(self.entry)

    def draw_inputs(self, world: World) -> Tensors:
        """Draw objects, [object, attr], and the keys of their looks, [object]."""
        sizes = world.sizes
        objects = torch.from_numpy(stream(self.seed, "testing", "world").integers(sizes, size=(OBJECTS, len(sizes))))
        key = torch.tensor(stream_key(self.seed, "testing", "looks"), dtype=torch.int64, device="cpu")
        return objects, counter_hash(key, torch.arange(OBJECTS, device="cpu"))

    def extreme_inputs(self, world: World) -> Tensors:
        """Return objects with every value of every attribute, each with the extremes of 64-bit keys."""
        values = [torch.arange(size, device="cpu") for size in world.sizes]
        objects = torch.block_diag(*(value.unsqueeze(1) for value in values)).long()
        keys = torch.tensor(EXTREMES, dtype=torch.int64, device="cpu").repeat_interleave(len(objects))
        return objects.repeat(len(EXTREMES), 1), keys

    def outputs(self, world: World, given: Tensors) -> Tensors:
        """Return the looks of objects."""
        return (world.observe(*given),)

    def check_attributes_and_values(self) -> None:
        """Every attribute has a name of its own, and at least two values with names of their own."""
        world = self.make()
        names = tuple(world.attributes)
        counts = len(names), len(world.values)
        require(counts[0] == counts[1], f"There are {counts[0]} attributes, but values of {counts[1]}.")
        require(0 < len(names) == len(set(names)), f"The attributes are {names}; give each its own name.")
        for name, values in zip(names, world.values, strict=True):
            require(len(values) > 1, f"The attribute '{name}' has {len(values)} values; it must have two or more.")
            require(len(set(values)) == len(values), f"Two values of the attribute '{name}' have the same name.")
        every = (*names, *(value for values in world.values for value in values))
        texts = all(isinstance(name, str) and name for name in every)
        require(texts, "A name of an attribute or value is not a text.")

    def check_shape_of_looks(self) -> None:
        """`observe` gives numbers of single precision [*batch, *shape], for any axes of the batch."""
        world = self.make()
        objects, keys = self.draw_inputs(world)
        for axes in ((OBJECTS,), (3, 4), (2, 1, 6), (0,)):
            count = torch.Size(axes).numel()
            seen = world.observe(objects[:count].view(*axes, len(world.sizes)), keys[:count].view(axes))
            expected = (*axes, *world.shape)
            require(tuple(seen.shape) == expected, f"Objects {axes} are seen as {tuple(seen.shape)}, not {expected}.")
            require(seen.dtype == torch.float32, f"Objects are seen as {seen.dtype}, not torch.float32.")

    def check_same_key_same_look(self) -> None:
        """In two worlds with the same options, the same objects and keys have the same looks, bit for bit."""
        (one,), (other,) = self.run(self.make()), self.run(self.make())
        sentence = "Another world with the same options gives other looks; derive all randomness from the keys."
        require(torch.equal(one, other), sentence)

    def check_values_are_seen(self) -> None:
        """Objects that differ in one value look different, with the same key."""
        world = self.make()
        objects, keys = (tensor[:PAIRS] for tensor in self.draw_inputs(world))
        for attribute, size in enumerate(world.sizes):
            other = objects.clone()
            other[:, attribute] = (other[:, attribute] + 1) % size
            differ = (world.observe(objects, keys) != world.observe(other, keys)).flatten(1).any(1)
            require(differ.all(), f"Objects that differ in '{world.attributes[attribute]}' look the same.")


@dataclass(frozen=True)
class PerceptionCase(TrainedCase[nn.Module]):
    """A perception under test, and its size in the tests.

    Attributes:
        size: size of the vectors.
    """

    size: int = 10

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of objects that the perception supports.

        Raises:
            CheckFailure: the perception refuses all shapes.
        """
        found: list[tuple[int, ...]] = []
        refusals = []
        for shape in SHAPES:
            try:
                self.entry.create(shape, self.size)
                found.append(shape)
            except IcyError as refusal:
                refusals.append(str(refusal))
        require(found, f"It supports none of the tried shapes: {' '.join(refusals)}")
        return found

    def create(self, seed: int, **options: Any) -> object:
        """Create the perception for objects of a shape, by default the first that it supports."""
        return self.entry.create(options.get("shape", self.shapes[0]), self.size)

    def objects(self, *shape: int, draw: int = 0) -> Tensor:
        """Draw numbers from 0 to 1, by default objects [batch, *shape]."""
        size = shape or (BATCH, *self.shapes[0])
        return torch.from_numpy(stream(self.seed, "testing", "objects", draw).random(size=size)).float()

    def draw_inputs(self, perception: nn.Module) -> Tensors:
        """Draw objects."""
        return (self.objects(),)

    def extreme_inputs(self, perception: nn.Module) -> Tensors:
        """Return objects, and an object of zeros."""
        return (torch.cat([self.objects(), torch.zeros_like(self.objects()[:1])]),)

    def outputs(self, perception: nn.Module, given: Tensors) -> Tensors:
        """Return the vectors of objects."""
        return (perception(*given),)

    def batches(self, seeds: Sequence[int], update: int) -> tuple[Tensor, Tensor]:
        """Return objects [replicate, batch, *shape] and vectors [replicate, batch, size], the same at each update."""
        vectors = [torch.from_numpy(stream(s, "testing", "vectors").normal(size=(BATCH, self.size))) for s in seeds]
        return torch.stack([self.objects(draw=seed) for seed in seeds]), torch.stack(vectors).float()

    def check_output_shape(self) -> str:
        """Objects [batch, *shape] of a supported shape give vectors [batch, size]; other shapes raise an IcyError."""
        for shape in self.shapes:
            for expected in ((BATCH, self.size), (1, self.size)):
                (found,) = self.run(self.make(shape=shape), (self.objects(expected[0], *shape),))
                require(isinstance(found, Tensor), f"The output is a {type(found).__name__}, not a tensor.")
                require(tuple(found.shape) == expected, f"Objects {shape} give {tuple(found.shape)}, not {expected}.")
                require(found.is_floating_point(), f"The vectors are {found.dtype}, not floating point.")
        return f"supports objects of shape {' and '.join(map(str, self.shapes))}"
