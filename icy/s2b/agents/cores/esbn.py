"""Emergent symbol binding network (Webb, Sinha and Cohen 2021), in the original version and in MetaRG22's version.

The memory holds a pair for each step: the input as value, and a key from the controller. The current value is compared
with earlier values and retrieves their keys, which the controller reads.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.checks import whole_number

from .core import CAPACITY, Device, Inputs, Resets, SequenceCore, State, Traced, beginnings, begun
from .entries import MemoryView, appended, remembered, view
from .lstm import LSTMStack


@dataclass(eq=False)
class Reads:
    """The keys that the steps of a sequence read, computed step by step as new keys become available.

    Attributes:
        weights: weight of each entry for each step, [B, T, C + T].
        earlier: weighted sum of the keys before the sequence for each step, [B, T, key].
        confidence: weighted mean of the entries' confidences for each step, [B, T, 1].
        capacity: number of entries before the sequence.
        keys: keys of the sequence's steps so far, each [B, key].
    """

    weights: Float[Tensor, "batch step entry"]
    earlier: Float[Tensor, "batch step key"]
    confidence: Float[Tensor, "batch step 1"]
    capacity: int
    keys: list[Float[Tensor, "batch key"]]

    def at(self, step: int) -> Float[Tensor, "batch read"]:
        """Return the key that a step reads, with its confidence, [B, key + 1]; zeros if the memory is empty."""
        read = self.earlier[:, step]
        if self.keys:
            new = self.weights[:, step, None, self.capacity : self.capacity + step]
            read = read + (new @ torch.stack(self.keys, 1))[:, 0]
        return torch.cat([read, self.confidence[:, step]], -1)


class Binding(nn.Module):
    """Attention by the dot product of values, with a confidence for each entry.

    Attributes:
        gain, bias: parameters of the confidence, sigmoid(gain * dot product + bias).
    """

    def __init__(self) -> None:
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(())), nn.Parameter(torch.zeros(()))

    def forward(
        self,
        values: Float[Tensor, "step batch value"],
        entries: Float[Tensor, "batch entry value"],
        keys: Float[Tensor, "batch capacity key"],
        seen: MemoryView,
    ) -> Reads:
        """Return the reads of values [T, B, v] from entries [B, C + T, v]. The first C entries have keys."""
        alike = values.transpose(0, 1) @ entries.mT
        weights = alike.masked_fill(~seen.earlier, torch.finfo(alike.dtype).min).softmax(-1) * seen.earlier
        confidence = (weights * (self.gain * alike + self.bias).sigmoid()).sum(-1, keepdim=True)
        return Reads(weights, weights[:, :, : keys.shape[1]] @ keys, confidence, keys.shape[1], [])


class _Bindings(SequenceCore):
    """Shared code of both versions: a loop over steps in which the controller reads and produces keys."""

    def __init__(self, width: int, output: int, latent: int, capacity: int, key: int, value: int) -> None:
        super().__init__(width, output, latent)
        self.capacity, self.key = whole_number("capacity", capacity), whole_number("width of a key", key)
        self.value = value
        self.binding = Binding()

    def nothing(self, episodes: int, device: Device) -> State:
        """Return an empty memory: keys, values, and the number of steps so far."""
        empty = (self.zeros(episodes, self.capacity, width, device=device) for width in (self.key, self.value))
        keys, values = empty
        return keys, values, torch.zeros(episodes, dtype=torch.int64, device=keys.device)

    def bound(self, values: Tensor, memory: State, resets: Tensor | None, run: Callable[[Reads], None]) -> State:
        """Call `run` with the reads of values [T, B, v], to which it appends keys, and return the new memory."""
        keys, old, count = memory
        seen = view(count, resets, len(values), self.capacity)
        entries = appended(old, values)
        reads = self.binding(values, entries, keys, seen)
        run(reads)
        all_keys = appended(keys, torch.stack(reads.keys))
        return remembered(all_keys, seen), remembered(entries, seen), seen.count


class StrictESBN(_Bindings):
    """The original ESBN (Webb et al. 2021): the controller sees only the keys that inputs retrieve, never an input.

    The original runs one more step after the last input, so that the controller processes its last read. Here
    every step has an output, so each step ends with this controller step. It is the step with which the next input
    would begin. The original also normalizes inputs over the whole sequence, which is not possible here: later inputs
    are unknown.

    Args:
        width: width of an input.
        capacity: capacity of the memory in steps; new steps replace the oldest.
        value: width of the embedding of inputs.
        key: width of a key.
        controller: size of the controller's LSTM.
    """

    def __init__(
        self, width: int, capacity: int = CAPACITY, value: int = 128, key: int = 256, controller: int = 512
    ) -> None:
        super().__init__(width, controller, controller, capacity, key, value)
        self.embed = nn.Linear(self.width, value)
        self.controller = nn.LSTMCell(key + 1, controller)
        self.to_key, self.gate = nn.Linear(controller, key), nn.Linear(controller, 1)

    def start(self, episodes: int, device: Device = None) -> State:
        """Return the initial state: the controller's state after a read of zeros, and an empty memory."""
        h, c = self.controller(self.zeros(episodes, self.key + 1, device=device))
        return h, c, *self.nothing(episodes, device)

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the controller's hidden state."""
        return state[0]

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read T inputs; only the controller needs a loop over steps."""
        h, c, *memory = state
        begins, ys = beginnings(resets, len(xs)), []

        def run(reads: Reads) -> None:
            nonlocal h, c
            for t, begin in enumerate(begins):
                if begin and resets is not None:
                    h, c = begun((h, c), self.start(len(h), xs.device)[:2], resets[t])
                read = self.gate(h).sigmoid() * reads.at(t)
                reads.keys.append(self.to_key(h).relu())
                h, c = self.controller(read, (h, c))
                ys.append(h)

        memory_after = self.bound(self.embed(xs), tuple(memory), resets, run)
        return torch.stack(ys), torch.stack(ys), (h, c, *memory_after)


class ESBN(_Bindings):
    """ESBN of MetaRG22: the controller also sees the input, and an LSTM computes the output.

    Values are inputs without an embedding, and keys have no ReLU. The output LSTM gets the input, the controller's
    output, and the retrieved key with its confidence.

    Args:
        width: width of an input.
        capacity: capacity of the memory in steps; new steps replace the oldest.
        key: width of a key.
        controller: size of the controller's LSTM.
        hidden: size of the output LSTM.
        output: width of an output.
    """

    def __init__(
        self,
        width: int,
        capacity: int = CAPACITY,
        key: int = 256,
        controller: int = 256,
        hidden: int = 512,
        output: int = 256,
    ) -> None:
        super().__init__(width, output, controller + key + 1, capacity, key, width)
        self.controller = nn.LSTMCell(self.width + key + 1, controller)
        self.to_key, self.gate = nn.Linear(controller, key), nn.Linear(controller, 1)
        self.above = LSTMStack(self.width + controller + key + 1, [hidden])
        self.answer = nn.Sequential(nn.Linear(hidden, output), nn.ReLU())

    def start(self, episodes: int, device: Device = None) -> State:
        """Return the initial state: zeros for the controller, its last read and the output LSTM; an empty memory."""
        like = self.zeros(episodes, 1, device=device)
        controller = [like.new_zeros(episodes, size) for size in 2 * [self.controller.hidden_size] + [self.key + 1]]
        return *controller, *self.above.start(like), *self.nothing(episodes, device)

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the controller's hidden state, and the retrieved key."""
        return torch.cat([state[0], state[2]], -1)

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read T inputs; only the controller needs a loop over steps."""
        (h, c, read), above, memory = state[:3], state[3:5], state[5:]
        begins, latents = beginnings(resets, len(xs)), []

        def run(reads: Reads) -> None:
            nonlocal h, c, read
            for t, begin in enumerate(begins):
                if begin and resets is not None:
                    h, c, read = begun((h, c, read), self.start(len(h), xs.device)[:3], resets[t])
                h, c = self.controller(torch.cat([xs[t], read], -1), (h, c))
                read = self.gate(h).sigmoid() * reads.at(t)
                reads.keys.append(self.to_key(h))
                latents.append(torch.cat([h, read], -1))

        memory = self.bound(xs, memory, resets, run)
        latent = torch.stack(latents)
        ys, _, above = self.above(torch.cat([xs, latent], -1), above, resets)
        return self.answer(ys), latent, (h, c, read, *above, *memory)
