"""What a world of the multi-target games is: attributes, their values, and how an object looks."""

import math
from abc import ABC, abstractmethod
from functools import cached_property

from jaxtyping import Float, Integer
from torch import Tensor


class World(ABC):
    """A world of objects: every object has one value of each attribute.

    The pair of an attribute and one of its values is a concept. Concepts are numbered from 0, those of the first
    attribute first.

    A world is a class with the attributes below and the method `observe`. Two objects of equal values may look
    different: how an object looks is a function of its values and of a 64-bit key.

    Attributes:
        attributes: names of the attributes, as in ("shape", "colour").
        values: names of the values of each attribute; an attribute has at least two.
        shape: shape of one object as agents see it, as in (270,) or (3, 64, 64).
    """

    attributes: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    shape: tuple[int, ...]

    @abstractmethod
    def observe(
        self, objects: Integer[Tensor, "*batch attr"], keys: Integer[Tensor, "*batch"]
    ) -> Float[Tensor, "*batch_and_shape"]:
        """Return how objects look, on their device: a pure function of each object's values and key.

        The last bit of a key is 1 if the object is shown in an evaluation, so that a world with a finite number of
        looks can keep some for evaluations.

        Args:
            objects: the value of each attribute.
            keys: 64-bit keys, one per object.
        """

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each attribute."""
        return tuple(len(names) for names in self.values)

    @cached_property
    def objects(self) -> int:
        """Number of different objects, looks apart."""
        return math.prod(self.sizes)

    @cached_property
    def concepts(self) -> tuple[str, ...]:
        """Names of the concepts: those of the values, with the attribute where several attributes have the name."""
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
