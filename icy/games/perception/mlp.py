"""The feed-forward perception of objects."""

import math

from jaxtyping import Float
from torch import Tensor, nn

from icy.models.layers import Linear


class MLP(nn.Module):
    """One hidden layer with ReLU, then a linear layer; objects of any shape are flattened.

    Args:
        shape: shape of an object.
        size: size of an output vector.
        hidden: units of the hidden layer; by default `size`.
    """

    broadcasts = True

    def __init__(self, shape: tuple[int, ...], size: int, *, hidden: int | None = None) -> None:
        super().__init__()
        self.axes = len(shape)
        self.hidden = Linear(math.prod(shape), hidden or size)
        self.out = Linear(hidden or size, size)

    def forward(self, objects: Float[Tensor, "..."]) -> Float[Tensor, "*stack batch size"]:
        """Map objects to vectors."""
        vectors: Tensor = self.out(self.hidden(objects.flatten(-self.axes)).relu())
        return vectors
