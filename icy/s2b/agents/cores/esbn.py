"""Emergent symbol binding network (Webb, Sinha and Cohen 2021), as it was, and as MetaRG22 has it.

The memory holds a pair per step: a value, which is what was seen, and a key, which the controller made. What is like
the present value leads to the keys that go with it, and the controller works on those.
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
    """What the steps of a sequence read from the memory, given out step by step as keys are made.

    Attributes:
        weights: weight of each entry for each step, [B, T, C + T].
        held: what the entries before the sequence give each step, [B, T, key].
        confidence: the mean confidence of what each step reads, [B, T, 1].
        capacity: number of entries before the sequence.
        keys: keys that were made in the sequence so far, each [B, key].
    """

    weights: Float[Tensor, "batch step entry"]
    held: Float[Tensor, "batch step key"]
    confidence: Float[Tensor, "batch step 1"]
    capacity: int
    keys: list[Float[Tensor, "batch key"]]

    def at(self, step: int) -> Float[Tensor, "batch read"]:
        """Return what a step reads: a key and its confidence, [B, key + 1]; zeros from an empty memory."""
        read = self.held[:, step]
        if self.keys:
            new = self.weights[:, step, None, self.capacity : self.capacity + step]
            read = read + (new @ torch.stack(self.keys, 1))[:, 0]
        return torch.cat([read, self.confidence[:, step]], -1)


class Binding(nn.Module):
    """The memory's way of reading: by the product of values, with a confidence.

    Attributes:
        gain, bias: of the confidence, sigmoid(gain * product + bias).
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
        """Return what is read for values [T, B, v] from entries [B, C + T, v] of which the first C have keys."""
        alike = values.transpose(0, 1) @ entries.mT
        weights = alike.masked_fill(~seen.earlier, torch.finfo(alike.dtype).min).softmax(-1) * seen.earlier
        confidence = (weights * (self.gain * alike + self.bias).sigmoid()).sum(-1, keepdim=True)
        return Reads(weights, weights[:, :, : keys.shape[1]] @ keys, confidence, keys.shape[1], [])


class _Bindings(SequenceCore):
    """What both variants share: a loop in which the controller reads keys and makes keys."""

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
        """Let `run` read what the memory holds for values [T, B, v] and make keys, and return the memory after it."""
        keys, old, count = memory
        seen = view(count, resets, len(values), self.capacity)
        entries = appended(old, values)
        reads = self.binding(values, entries, keys, seen)
        run(reads)
        made = appended(keys, torch.stack(reads.keys))
        return remembered(made, seen), remembered(entries, seen), seen.count


class StrictESBN(_Bindings):
    """ESBN as it was (Webb et al. 2021): the controller never sees an input, only the keys that inputs lead to.

    The original runs one step more at the end, with nothing to see, so that the controller can process what it read
    last. Here every step needs an output, so that each ends with that step of the controller; it is the same step
    with which the next one would begin. The original's normalisation over all of a sequence is left out: an episode's
    later inputs are not there yet.

    Args:
        width: width of an input.
        capacity: number of steps that the memory holds; the oldest make room.
        value: width of the embedding of inputs.
        key: width of a key.
        controller: size of the controller, an LSTM.
    """

    def __init__(
        self, width: int, capacity: int = CAPACITY, value: int = 128, key: int = 256, controller: int = 512
    ) -> None:
        super().__init__(width, controller, controller, capacity, key, value)
        self.embed = nn.Linear(self.width, value)
        self.controller = nn.LSTMCell(key + 1, controller)
        self.to_key, self.gate = nn.Linear(controller, key), nn.Linear(controller, 1)

    def start(self, episodes: int, device: Device = None) -> State:
        """Return the controller after it has read nothing, and an empty memory."""
        h, c = self.controller(self.zeros(episodes, self.key + 1, device=device))
        return h, c, *self.nothing(episodes, device)

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the controller's hidden state."""
        return state[0]

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read several inputs, of which all but the controller's steps go at once."""
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
    """ESBN as MetaRG22 has it: the controller sees the input too, and an LSTM puts out (s2b-facts 10.5).

    The value of a step is its input as it is, keys are linear, and the output LSTM gets the input, the controller's
    output and the key that was read, with its confidence.

    Args:
        width: width of an input.
        capacity: number of steps that the memory holds; the oldest make room.
        key: width of a key.
        controller: size of the controller, an LSTM.
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
        """Return zeros of the controller, of what it read and of the output LSTM, and an empty memory."""
        like = self.zeros(episodes, 1, device=device)
        controller = [like.new_zeros(episodes, size) for size in 2 * [self.controller.hidden_size] + [self.key + 1]]
        return *controller, *self.above.start(like), *self.nothing(episodes, device)

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the controller's hidden state, and the key that was read."""
        return torch.cat([state[0], state[2]], -1)

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read several inputs, of which all but the controller's steps go at once."""
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
