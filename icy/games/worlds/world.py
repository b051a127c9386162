"""Base class of the worlds of multi-target games: attributes, their values, and the looks of objects."""

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, PluginError
from icy.core.noise import counter_hash, shift
from icy.core.registry import WORLD, Entry, registry
from icy.core.streams import stream_key
from icy.languages.meanings import MeaningSpace

Objects = Integer[Tensor, "*batch attr"]
Keys = Integer[Tensor, "*batch"]


class World(ABC):
    """Base class of worlds. An object has one value of each attribute.

    The pair of an attribute and one of its values is a concept. Concepts are numbered from 0, starting with the
    concepts of the first attribute.

    A subclass sets the attributes below and implements `observe`. Objects with equal values may look different: the
    look of an object depends on its values and on a 64-bit key.

    Attributes:
        attributes: names of the attributes, as in ("shape", "colour").
        values: names of the values of each attribute, at least two per attribute.
        shape: shape of one object as agents see it, as in (270,) or (3, 64, 64).
        block: if the look of an object is one block of numbers per attribute, in which only the number of its concept
            is 1: the size of a block. Compiled code then looks concepts up, and does not call `observe`.
    """

    attributes: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    shape: tuple[int, ...]
    block: int | None = None

    @abstractmethod
    def observe(self, objects: Objects, keys: Keys) -> Float[Tensor, "*batch_and_shape"]:
        """Return the objects as agents see them, a pure function of each object's values and key.

        The last bit of a key is 1 in evaluations. A world with a finite number of looks can reserve some for
        evaluations.

        Args:
            objects: the value of each attribute.
            keys: 64-bit keys, one per object.
        """

    @cached_property
    def space(self) -> MeaningSpace:
        """The space of the objects, without their looks."""
        return MeaningSpace.of_sizes(*map(len, self.values))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each attribute."""
        return self.space.size_of_each

    @property
    def objects(self) -> int:
        """Number of different objects, without their looks."""
        return self.space.size

    @cached_property
    def concepts(self) -> tuple[str, ...]:
        """Names of the concepts: the value, with its attribute if several attributes have this value."""
        every = [name for names in self.values for name in names]
        return tuple(
            value if every.count(value) == 1 else f"{attribute} {value}"
            for attribute, names in zip(self.attributes, self.values, strict=True)
            for value in names
        )

    @cached_property
    def first_concepts(self) -> tuple[int, ...]:
        """Number of the first concept of each attribute."""
        return tuple(sum(self.sizes[:place]) for place in range(len(self.sizes)))


# -- banks: worlds in which every object has a fixed number of looks, stored in memory ---------------------------------


LEVELS = 255
AT_ONCE = 4096  # number of looks computed at once
MOST_NUMBERS = 2**31  # largest number of numbers in a bank


class Bank(World):
    """A world in which every object has a fixed number of looks for training, and other looks for evaluations.

    All looks are computed at first use, once per device. Images are stored as bytes.

    Args:
        world: the world that computes the looks.
        looks: number of looks of each object in training. Evaluations have a quarter as many, but at least one.

    Raises:
        InvalidSettingError: a bank would have more than 2**31 numbers.
    """

    def __init__(self, world: World, looks: int) -> None:
        self.world = world
        self.attributes, self.values, self.shape = world.attributes, world.values, world.shape
        self.looks = whole_number("number of looks in a bank", looks)
        self.evaluation_looks = math.ceil(self.looks / 4)
        self._each = self.looks + self.evaluation_looks
        numbers = self.objects * self._each * math.prod(self.shape)
        if numbers > MOST_NUMBERS:
            raise InvalidSettingError(
                f"A bank of {self._each} looks of each of {self.objects:,} objects has {numbers:,} numbers; at most "
                f"{MOST_NUMBERS:,} are allowed. Take fewer looks, or no bank."
            )
        self._banks: dict[torch.device, Tensor] = {}

    def observe(self, objects: Objects, keys: Keys) -> Float[Tensor, "*batch_and_shape"]:
        """Return looks from the bank."""
        evaluated, number = (keys & 1).bool(), shift(keys, 1)
        look = torch.where(evaluated, self.looks + number % self.evaluation_looks, number % self.looks)
        for attribute, stride in enumerate(self.space.strides.tolist()):
            look = look + stride * self._each * objects[..., attribute]
        looks = self._bank(keys.device).index_select(0, look.flatten())  # many times faster than indexing
        return _numbers(looks).view(*keys.shape, *self.shape)

    def _bank(self, device: torch.device) -> Tensor:
        if device not in self._banks:
            parts = [self._looks(place, device) for place in range(0, self.objects * self._each, AT_ONCE)]
            whole = all(part.dtype == torch.uint8 for part in parts)
            self._banks[device] = torch.cat(parts if whole else [_numbers(part) for part in parts])
        return self._banks[device]

    def _looks(self, first: int, device: torch.device) -> Tensor:
        """Compute a block of looks, as bytes if they are images with 256 levels."""
        place = torch.arange(first, min(first + AT_ONCE, self.objects * self._each), device=device)
        number, look = place // self._each, place % self._each
        objects = torch.from_numpy(self.space.meanings(number.cpu().numpy())).to(device)
        key = torch.tensor(stream_key(0, "games", "bank"), device=device, dtype=torch.int64)
        keys = (counter_hash(key, place) & ~1) | (look >= self.looks).long()
        seen = self.world.observe(objects, keys)
        images = (seen * LEVELS).round_().clamp_(0, LEVELS).to(torch.uint8)
        return images if torch.equal(_numbers(images), seen) else seen


def _numbers(looks: Tensor) -> Tensor:
    return looks.float().mul_(1 / LEVELS) if looks.dtype == torch.uint8 else looks


# -- creation of worlds by name ----------------------------------------------------------------------------------------


def make_world(name: str, *, bank: int = 0, **options: Any) -> World:
    """Create a world by name.

    Args:
        name: name of a registered world (`icy list worlds`).
        bank: number of looks of each object to store for training, in addition to those for evaluations; 0: every
            object is drawn again.
        **options: options of the world, as in `canvas=32`.

    Returns:
        The world. Its method `observe` gives the look of objects.

    Raises:
        UnknownNameError: no world has this name.
        InvalidSettingError: the world does not accept a value, or the bank is too large.
        PluginError: the world does not accept these options, or is not a `World`.

    Example:
        >>> from icy.games import make_world
        >>> make_world("thing", attributes=2, values=3).concepts
        ('1.1', '1.2', '1.3', '2.1', '2.2', '2.3')
    """
    world = make_from_entry(registry.get(name, WORLD), **options)
    return Bank(world, bank) if bank else world


def make_from_entry(entry: Entry, **options: Any) -> World:
    """Create the world of a registry entry; see `make_world`."""
    made = entry.create(**options)
    if not isinstance(made, World):
        raise PluginError(f"{entry.qualified} makes a {type(made).__name__}; derive it from icy.games.World.")
    return made
