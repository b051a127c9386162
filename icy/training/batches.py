"""Batches of meanings and messages for a stack of replicates, drawn on the device."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from icy.core.noise import counter_hash, shift
from icy.core.streams import stream_key
from icy.languages.language import Language
from icy.languages.meanings import IntArray, MeaningSpace
from icy.languages.splits import Split
from icy.models.native import calls

PURPOSES = ("training", "check", "report", "report on training", "noise")
UNIFORM_BITS = 31  # bits of a draw; the bias of a number below n is at most n / 2^31


def draw_meanings(
    space: MeaningSpace, keys: Int[Tensor, " seed"], first: int, batches: int, batch_size: int
) -> Int[Tensor, "seed batches batch attr"]:
    """Draw meanings with independent and uniform attribute values.

    Args:
        space: the meanings.
        keys: a stream key per seed.
        first: index of the first batch in the stream.
        batches: number of batches.
        batch_size: number of meanings in a batch.
    """
    shape = (batches, batch_size, space.attributes)
    start = first * batch_size * space.attributes
    counter = start + torch.arange(batches * batch_size * space.attributes, device=keys.device)
    return _uniform(keys, counter, space.values).view(len(keys), *shape)


def _uniform(
    keys: Int[Tensor, " seed"], counter: Int[Tensor, " draw"], below: int | Tensor
) -> Int[Tensor, "seed draw"]:
    """Draw whole numbers 0 <= n < `below`; `below` is a number for all seeds, or a number per seed [seed, 1]."""
    bits = shift(counter_hash(keys[:, None], counter), 64 - UNIFORM_BITS)
    return (bits * below) >> UNIFORM_BITS


class MeaningPool:
    """A subset of the meanings per seed, to draw from uniformly.

    Args:
        numbers: for each seed, the sorted numbers of the meanings in the pool.
        device: device of the draws.
    """

    def __init__(self, numbers: Sequence[IntArray], device: torch.device) -> None:
        sizes = np.array([len(n) for n in numbers])
        self._numbers = torch.from_numpy(np.concatenate(numbers)).to(device)
        self._sizes = torch.from_numpy(sizes).to(device)[:, None]
        self._first = torch.from_numpy(np.cumsum(sizes) - sizes).to(device)[:, None]

    def draw(
        self, keys: Int[Tensor, " seed"], first: int, batches: int, batch_size: int
    ) -> Int[Tensor, "seed batches batch"]:
        """Draw indices of meanings; arguments as for `draw_meanings`."""
        counter = first * batch_size + torch.arange(batches * batch_size, device=keys.device)
        place = self._first + _uniform(keys, counter, self._sizes)
        return self._numbers[place].view(len(keys), batches, batch_size)


class Batches:
    """Batches of meanings and messages for each replicate of a stack, update by update.

    Args:
        languages: a language per replicate, all over the same space and with equal message lengths.
        seeds: a seed per replicate; replicates with equal seeds get equal meanings.
        device: device of the batches.
        split: split of the meanings for each seed. Held-out meanings occur only in the report. By default none are held
            out.
    """

    def __init__(
        self, languages: list[Language], seeds: list[int], device: torch.device, split: Split | None = None
    ) -> None:
        self.space: MeaningSpace = languages[0].space
        self.device = device
        distinct = sorted(set(seeds))
        self._keys = {
            purpose: torch.tensor(
                [stream_key(s, "meanings", purpose) for s in distinct], device=device, dtype=torch.int64
            )
            for purpose in PURPOSES
        }
        self._seed_of = torch.tensor([distinct.index(s) for s in seeds], device=device, dtype=torch.int64)
        self._tables = torch.from_numpy(np.concatenate([language.messages for language in languages])).to(device)
        self._first_row = torch.arange(len(languages), device=device) * self.space.size
        self._place = self.space.values ** torch.arange(self.space.attributes - 1, -1, -1, device=device)
        plain = split is None and device.type == "cpu" and self._tables.dtype == torch.uint8
        self._native = plain and calls.available()
        self._pools, self._every = None, torch.empty(0)
        if split is not None:
            self._pools = _pools(self.space, distinct, split, device)
            self._every = torch.from_numpy(self.space.all()).to(device)

    def batches(
        self, purpose: str, first: int, count: int, size: int, which: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return meanings [batches, replicate, batch, attr] and their messages [batches, replicate, batch, length].

        Args:
            purpose: "training", "check", "report" or "report on training"; each has its own stream. If meanings are
                held out, "report" is drawn from them, and the other purposes from the remaining meanings.
            first: index of the first batch in the stream.
            count: number of batches.
            size: number of meanings in a batch.
            which: indices of the replicates in the stack; by default all.
        """
        seed_of, first_row = self._seed_of, self._first_row
        if which is not None:
            index = torch.tensor(which, device=self.device, dtype=torch.int64)
            seed_of, first_row = seed_of[index], first_row[index]
        if self._native:
            space, keys = self.space, self._keys[purpose][seed_of]
            return calls.draw(keys, first_row, self._tables, first, count, size, space.attributes, space.values)
        if self._pools is None:
            meanings = draw_meanings(self.space, self._keys[purpose], first, count, size).transpose(0, 1)[:, seed_of]
            numbers = (meanings * self._place).sum(-1)
        else:
            pool = self._pools[purpose == "report"]
            numbers = pool.draw(self._keys[purpose], first, count, size).transpose(0, 1)[:, seed_of]
            meanings = self._every[numbers]
        return meanings, self._tables[numbers + first_row[:, None]].long()  # nn.Embedding does not take 8-bit tokens

    def noise(self, first: int, count: int) -> Int[Tensor, "update replicate"]:
        """Return the noise key of each replicate at each of `count` updates from `first` on (see icy.core.noise)."""
        updates = torch.arange(first, first + count, device=self.device)
        return counter_hash(self._keys["noise"], updates[:, None])[:, self._seed_of]

    def keep(self, which: list[int]) -> None:
        """Keep only these replicates, given by their indices in the stack."""
        index = torch.tensor(which, device=self.device, dtype=torch.int64)
        self._seed_of, self._first_row = self._seed_of[index], self._first_row[index]


def _pools(
    space: MeaningSpace, seeds: Sequence[int], split: Split, device: torch.device
) -> tuple[MeaningPool, MeaningPool]:
    """Return the meanings for training and the held-out meanings, per seed."""
    trained_on, held_out = zip(*(split.parts(space, seed) for seed in seeds), strict=True)
    return MeaningPool(trained_on, device), MeaningPool(held_out, device)
