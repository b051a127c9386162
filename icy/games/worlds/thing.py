"""Thing: symbolic objects, seen as one-hot vectors (CBM24)."""

import torch
from jaxtyping import Float
from torch import Tensor

from icy.core.checks import whole_number

from .world import Keys, Objects, World

SPECIAL = 4  # entries of the vocabulary without a value: start, end, padding and unknown word


class Thing(World):
    """Objects of A attributes with V values each, seen as one-hot vectors over one vocabulary.

    Every attribute has a block of A * V + 4 numbers: one entry per value of any attribute, and four entries that are
    always 0 (CBM24). So an object of 5 attributes with 10 values is a vector of 5 * 54 = 270 numbers, five of them 1.

    Args:
        attributes: number of attributes, A.
        values: number of values of each attribute, V.

    Raises:
        InvalidSettingError: there is less than one attribute, or there are fewer than two values.
    """

    def __init__(self, attributes: int = 5, values: int = 10) -> None:
        count = whole_number("number of attributes", attributes)
        each = whole_number("number of values", values, least=2)
        self.attributes = tuple(f"attribute {a + 1}" for a in range(count))
        self.values = tuple(tuple(f"{a + 1}.{v + 1}" for v in range(each)) for a in range(count))
        self.block: int = count * each + SPECIAL
        self.shape = (count * self.block,)

    def observe(self, objects: Objects, keys: Keys) -> Float[Tensor, "*batch width"]:
        """Return the one-hot vectors of objects. Keys have no effect."""
        attributes, each = len(self.sizes), self.sizes[0]
        first = torch.arange(attributes, device=objects.device) * (self.block + each)
        seen = torch.zeros(*objects.shape[:-1], *self.shape, device=objects.device, dtype=torch.float32)
        return seen.scatter_(-1, objects + first, 1.0)
