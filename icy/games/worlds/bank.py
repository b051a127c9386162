"""Banks: worlds in which every object has a fixed number of looks, stored in memory."""

import math

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError
from icy.core.noise import counter_hash, shift
from icy.core.streams import stream_key

from .world import World

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

    def observe(
        self, objects: Integer[Tensor, "*batch attr"], keys: Integer[Tensor, "*batch"]
    ) -> Float[Tensor, "*batch_and_shape"]:
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
