"""Emergent symbol binding network (Webb, Sinha and Cohen 2021), in the original version and in MetaRG22's version.

The memory holds a pair for each step: the input as value, and a key from the controller. The current value is compared
with earlier values and retrieves their keys, which the controller reads.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.checks import whole_number

from .core import CAPACITY, Device, Inputs, Resets, State, Traced, beginnings, begun
from .entries import MemoryView, RememberingCore, appended, remembered, view
from .lstm import LSTMStack

Input = Float[Tensor, "batch width"]


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


class _Bindings(RememberingCore):
    """Shared code of both versions: a loop over steps in which the controller reads and produces keys."""

    def __init__(self, width: int, output: int, latent: int, capacity: int, key: int, value: int) -> None:
        super().__init__(width, output, latent, capacity)
        self.key, self.value = whole_number("width of a key", key), value
        self.binding = Binding()

    def control(self, x: Input, controller: State, reads: Reads, step: int) -> State:
        """Run a step of the controller, add its key to `reads`, and return the controller's new state."""
        raise NotImplementedError

    def bound(
        self, xs: Inputs, values: Tensor, controller: State, memory: State, resets: Resets | None
    ) -> tuple[Tensor, State]:
        """Run the controller step by step; only it needs a loop over steps.

        Args:
            xs: inputs, [T, B, D].
            values: the values of the inputs, [T, B, v].
            controller: state of the controller, with which the core's state begins.
            memory: keys, values, and the number of steps so far.
            resets: see `trace`.

        Returns:
            The latents after each step, and the state of the controller and the memory after the last.
        """
        keys, old, count = memory
        seen, entries = view(count, resets, len(values), self.capacity), appended(old, values)
        reads, latents = self.binding(values, entries, keys, seen), []
        for t, begin in enumerate(beginnings(resets, len(xs))):
            if begin and resets is not None:
                controller = begun(controller, self.start(xs.shape[1], xs.device)[: len(controller)], resets[t])
            controller = self.control(xs[t], controller, reads, t)
            latents.append(self.latent(controller))
        all_keys = appended(keys, torch.stack(reads.keys))
        after = (*controller, remembered(all_keys, seen), remembered(entries, seen), seen.count)
        return torch.stack(latents), after


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
        return h, c, *self.empty(episodes, (self.key, self.value), device)

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the controller's hidden state."""
        return state[0]

    def control(self, x: Input, controller: State, reads: Reads, step: int) -> State:
        """Read a key, and produce the key of this step from the state before it."""
        h, c = controller
        read = self.gate(h).sigmoid() * reads.at(step)
        reads.keys.append(self.to_key(h).relu())
        return tuple(self.controller(read, (h, c)))

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read T inputs; see Core."""
        ys, state = self.bound(xs, self.embed(xs), state[:2], state[2:], resets)
        return ys, ys, state


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
        memory = self.empty(episodes, (self.key, self.value), device)
        return *controller, *self.above.start(like), *memory

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the controller's hidden state, and the retrieved key."""
        return torch.cat([state[0], state[2]], -1)

    def control(self, x: Input, controller: State, reads: Reads, step: int) -> State:
        """Run the controller on the input and the last read, then read a key and produce the key of this step."""
        h, c, read = controller
        h, c = self.controller(torch.cat([x, read], -1), (h, c))
        read = self.gate(h).sigmoid() * reads.at(step)
        reads.keys.append(self.to_key(h))
        return h, c, read

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read T inputs; see Core."""
        latent, (h, c, read, *memory) = self.bound(xs, xs, state[:3], state[5:], resets)
        ys, _, above = self.above(torch.cat([xs, latent], -1), state[3:5], resets)
        return self.answer(ys), latent, (h, c, read, *above, *memory)
