"""Batches of meanings and messages for a stack of replicates, drawn on the device."""

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from icy.language import Language
from icy.meanings import MeaningSpace
from icy.noise import counter_hash, shift
from icy.streams import stream_key


def draw_meanings(
    space: MeaningSpace, keys: Int[Tensor, " seed"], first: int, batches: int, batch_size: int
) -> Int[Tensor, "seed batches batch attr"]:
    """Meanings whose attribute values are independent and uniform.

    Args:
        space: the meanings.
        keys: one stream per seed.
        first: index of the first batch in the stream.
        batches: how many.
        batch_size: meanings in each.
    """
    shape = (batches, batch_size, space.attributes)
    start = first * batch_size * space.attributes
    counter = start + torch.arange(batches * batch_size * space.attributes, device=keys.device)
    bits = shift(counter_hash(keys[:, None], counter), 33)  # 31 bits: the bias is below K / 2^31
    return ((bits * space.values) >> 31).view(len(keys), *shape)


class Draws:
    """The meanings and messages that each replicate of a stack sees, update by update.

    Args:
        languages: one per replicate, over the same space and with messages of one shape.
        seeds: one per replicate; equal seeds see equal meanings.
        device: where batches are made.
    """

    def __init__(self, languages: list[Language], seeds: list[int], device: torch.device) -> None:
        self.space: MeaningSpace = languages[0].space
        self.device = device
        distinct = sorted(set(seeds))
        self._keys = {
            purpose: torch.tensor([stream_key(s, "meanings", purpose) for s in distinct], device=device)
            for purpose in ("training", "check", "report", "noise")
        }
        self._seed_of = torch.tensor([distinct.index(s) for s in seeds], device=device)
        self._tables = torch.from_numpy(np.concatenate([language.messages for language in languages])).to(device)
        self._first_row = torch.arange(len(languages), device=device) * self.space.size
        self._place = self.space.values ** torch.arange(self.space.attributes - 1, -1, -1, device=device)

    def batches(self, purpose: str, first: int, count: int, size: int) -> tuple[Tensor, Tensor]:
        """Meanings [batches, replicate, batch, attr] and their messages [batches, replicate, batch, length].

        Args:
            purpose: "training", "check" or "report", each a stream of its own.
            first: index of the first batch in the stream.
            count: number of batches.
            size: meanings in each.
        """
        meanings = draw_meanings(self.space, self._keys[purpose], first, count, size).transpose(0, 1)
        meanings = meanings[:, self._seed_of]
        rows = (meanings * self._place).sum(-1) + self._first_row[:, None]
        return meanings, self._tables[rows].long()  # tables are stored small, but nn.Embedding takes no 8-bit tokens

    def noise(self, first: int, count: int) -> Int[Tensor, "update replicate"]:
        """The key of the noise of each replicate at each of `count` updates from the `first` on (see icy.noise)."""
        updates = torch.arange(first, first + count, device=self.device)
        return counter_hash(self._keys["noise"], updates[:, None])[:, self._seed_of]

    def keep(self, which: list[int]) -> None:
        """Go on with these replicates only, given by their places in the stack."""
        index = torch.tensor(which, device=self.device)
        self._seed_of, self._first_row = self._seed_of[index], self._first_row[index]
