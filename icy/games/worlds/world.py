"""Base class of the worlds of multi-target games: attributes, their values, and the looks of objects."""

from abc import ABC, abstractmethod
from functools import cached_property

from jaxtyping import Float, Integer
from torch import Tensor

from icy.languages.meanings import MeaningSpace


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
    def observe(
        self, objects: Integer[Tensor, "*batch attr"], keys: Integer[Tensor, "*batch"]
    ) -> Float[Tensor, "*batch_and_shape"]:
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
