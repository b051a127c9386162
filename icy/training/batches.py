"""Batches of meanings and messages for a stack of replicates, drawn on the device."""

import functools
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from icy.core.noise import counter_hash, shift
from icy.core.streams import stream_key
from icy.languages.frequencies import Frequencies, Weights
from icy.languages.language import Language
from icy.languages.meanings import IntArray, MeaningSpace
from icy.languages.splits import Split
from icy.models.native import calls

EQUALLY = "report with equal weights"
PURPOSES = ("training", "check", "report", "report on training", EQUALLY, "noise")
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
    below: int | Tensor = space.values
    if not space.is_grid:
        below = torch.tensor(space.sizes, device=keys.device, dtype=torch.int64).repeat(batches * batch_size)
    return _uniform(keys, counter, below).view(len(keys), *shape)


def _uniform(
    keys: Int[Tensor, " seed"], counter: Int[Tensor, " draw"], below: int | Tensor
) -> Int[Tensor, "seed draw"]:
    """Draw whole numbers 0 <= n < `below`: a number for all, a number per seed [seed, 1], or per draw [draw]."""
    bits = shift(counter_hash(keys[:, None], counter), 64 - UNIFORM_BITS)
    return (bits * below) >> UNIFORM_BITS


class MeaningPool:
    """A subset of the meanings per seed, to draw from.

    Args:
        numbers: for each seed, the sorted numbers of the meanings in the pool.
        device: device of the draws.
        weights: for each seed, the weight of each of these meanings; by default all are drawn equally often. A weight
            is rounded to a multiple of the sum / 2^31.
    """

    def __init__(
        self, numbers: Sequence[IntArray], device: torch.device, weights: Sequence[Weights] | None = None
    ) -> None:
        self._ends = None if weights is None else torch.from_numpy(_ends(weights)).to(device)
        sizes = np.array([len(n) for n in numbers])
        self._numbers = torch.from_numpy(np.concatenate(numbers)).to(device)
        self._sizes = torch.from_numpy(sizes).to(device)[:, None]
        self._first = torch.from_numpy(np.cumsum(sizes) - sizes).to(device)[:, None]

    def draw(
        self, keys: Int[Tensor, " seed"], first: int, batches: int, batch_size: int
    ) -> Int[Tensor, "seed batches batch"]:
        """Draw indices of meanings; arguments as for `draw_meanings`."""
        counter = first * batch_size + torch.arange(batches * batch_size, device=keys.device)
        if self._ends is None:
            place = self._first + _uniform(keys, counter, self._sizes)
        else:
            bits = shift(counter_hash(keys[:, None], counter), 64 - UNIFORM_BITS)
            place = self._first + torch.searchsorted(self._ends, bits.contiguous(), right=True)
        return self._numbers[place].view(len(keys), batches, batch_size)


def _ends(weights: Sequence[Weights]) -> IntArray:
    """Return the end of each meaning's part of the draws, for each seed, [seed, most meanings]."""
    ends = np.full((len(weights), max(map(len, weights))), 2**UNIFORM_BITS)
    for row, of_seed in zip(ends, weights, strict=True):
        total = np.cumsum(of_seed)
        row[: len(total) - 1] = np.rint(total[:-1] / total[-1] * 2**UNIFORM_BITS)
    return ends


class Batches:
    """Batches of meanings and messages for each replicate of a stack, update by update.

    Args:
        languages: a language per replicate, all over the same space and with equal message lengths.
        seeds: a seed per replicate; replicates with equal seeds get equal meanings.
        device: device of the batches.
        split: split of the meanings for each seed. Held-out meanings occur only in the report. By default none are held
            out.
        frequencies: which meanings exist, and how often each is drawn; by default all, equally often.
    """

    def __init__(
        self,
        languages: list[Language],
        seeds: list[int],
        device: torch.device,
        split: Split | None = None,
        frequencies: Frequencies | None = None,
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
        self._place = torch.from_numpy(self.space.strides).to(device)
        drawn = split is not None or frequencies is not None
        self._pools = _pools(self.space, distinct, split, frequencies, device) if drawn else None
        plain = self._pools is None and device.type == "cpu" and self._tables.dtype == torch.uint8
        self._native = plain and calls.available()
        self._sizes = torch.tensor(self.space.size_of_each, device=device, dtype=torch.int64)

    def batches(
        self, purpose: str, first: int, count: int, size: int, which: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return meanings [batches, replicate, batch, attr] and their messages [batches, replicate, batch, length].

        Args:
            purpose: "training", "check", "report", "report on training" or EQUALLY; each has its own stream. If
                meanings are held out, "report" and EQUALLY are drawn from them, and the other purposes from the
                remaining meanings. EQUALLY ignores the weights of the meanings.
            first: index of the first batch in the stream.
            count: number of batches.
            size: number of meanings in a batch.
            which: indices of the replicates in the stack; by default all.
        """
        if (drawing := self.drawing(purpose, first, count, size, which)) is not None:
            return calls.draw(drawing)
        seed_of, first_row = self._some(which)
        if self._pools is None:
            meanings = draw_meanings(self.space, self._keys[purpose], first, count, size).transpose(0, 1)[:, seed_of]
            numbers = (meanings * self._place).sum(-1)
        else:
            pool = self._pools.get(purpose, self._pools["training"])
            numbers = pool.draw(self._keys[purpose], first, count, size).transpose(0, 1)[:, seed_of]
            meanings = numbers[..., None] // self._place % self._sizes
        return meanings, self._tables[numbers + first_row[:, None]].long()  # nn.Embedding does not take 8-bit tokens

    def drawing(
        self, purpose: str, first: int, count: int, size: int, which: Sequence[int] | None = None
    ) -> calls.Drawing | None:
        """Describe the same batches for compiled code; None if it cannot draw them. Arguments as for `batches`."""
        if not self._native:
            return None
        seed_of, first_row = self._some(which)
        keys = self._keys[purpose][seed_of]
        return calls.Drawing(keys, first_row, self._tables, self.symbols, first, count, size, self._sizes)

    def _some(self, which: Sequence[int] | None) -> tuple[Int[Tensor, " replicate"], Int[Tensor, " replicate"]]:
        """Return the place of its seed, and its first row in the tables, for some replicates or all."""
        if which is None:
            return self._seed_of, self._first_row
        index = torch.tensor(which, device=self.device, dtype=torch.int64)
        return self._seed_of[index], self._first_row[index]

    @functools.cached_property
    def symbols(self) -> int:
        """Number of symbols up to the largest in a message."""
        return int(self._tables.max()) + 1

    def noise(self, first: int, count: int) -> Int[Tensor, "update replicate"]:
        """Return the noise key of each replicate at each of `count` updates from `first` on (see icy.core.noise)."""
        updates = torch.arange(first, first + count, device=self.device)
        return counter_hash(self._keys["noise"], updates[:, None])[:, self._seed_of]

    def keep(self, which: list[int]) -> None:
        """Keep only these replicates, given by their indices in the stack."""
        index = torch.tensor(which, device=self.device, dtype=torch.int64)
        self._seed_of, self._first_row = self._seed_of[index], self._first_row[index]


def _pools(
    space: MeaningSpace,
    seeds: Sequence[int],
    split: Split | None,
    frequencies: Frequencies | None,
    device: torch.device,
) -> dict[str, MeaningPool]:
    """Return the meanings for training, for the report, and for the report with equal weights.

    Raises:
        InvalidSettingError: the meanings that exist cannot be split.
    """
    parts: list[list[tuple[IntArray, Weights]]] = []
    for seed in seeds:
        known, of_known = (Frequencies() if frequencies is None else frequencies).of_seed(space, seed)
        if split is None:
            parts.append([(known, of_known)] * 2)
        else:
            chosen = [np.isin(known, part) for part in split.parts(space, seed, known)]
            parts.append([(known[one], of_known[one]) for one in chosen])
    (trained_on, weights), (reported, of_reported) = (zip(*of_one, strict=True) for of_one in zip(*parts, strict=True))
    equally = MeaningPool(reported, device)
    if frequencies is None:
        return {"training": MeaningPool(trained_on, device), "report": equally, EQUALLY: equally}
    weighted = MeaningPool(trained_on, device, weights), MeaningPool(reported, device, of_reported)
    return {"training": weighted[0], "report": weighted[1], EQUALLY: equally}
