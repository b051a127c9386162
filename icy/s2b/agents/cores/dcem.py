"""Dual-coding episodic memory (Hill et al. 2020), in the version of MetaRG22.

It has a memory of stimuli and a memory of messages, with one entry per step in each. The current message is compared
with earlier messages and retrieves the stimuli of the same steps. The current stimulus is compared with earlier stimuli
and retrieves the messages of the same steps.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError

from .core import CAPACITY, Device, Inputs, Parts, Resets, State, Traced
from .entries import MemoryView, RememberingCore, appended, remembered, view
from .lstm import LSTMStack

EPSILON = 1e-8  # keeps weights finite
RANKED = 1e5  # cosines that agree to 5 digits count as equal, and the newest of them is first
Near = Float[Tensor, "batch step head near"]


class Reader(nn.Module):
    """Attention over the `nearest` entries: queries are compared with one memory and read the other.

    Args:
        key: width of an input and of a key.
        value: width of a value.
        heads: number of queries.
        nearest: number of entries that a query reads.
        hidden: size of the hidden layer between an input and its queries.
    """

    def __init__(self, key: int, value: int, heads: int, nearest: int, hidden: int) -> None:
        super().__init__()
        self.heads, self.nearest = heads, nearest
        self.query = nn.Sequential(nn.Linear(key, hidden), nn.ReLU(), nn.Linear(hidden, heads * key))
        self.attend, self.out = nn.Linear(value, 3 * value), nn.Linear(value, value)

    def forward(
        self,
        inputs: Float[Tensor, "step batch key"],
        keys: Float[Tensor, "batch entry key"],
        values: Float[Tensor, "batch entry value"],
        seen: MemoryView,
    ) -> Float[Tensor, "step batch read"]:
        """Read from keys and values [B, C + T, ...] for inputs [T, B, key], and return [T, B, heads * value]."""
        query = self.query(inputs.transpose(0, 1)).unflatten(-1, (self.heads, -1))  # [B, T, heads, key]
        cosines = F.normalize(query, dim=-1).flatten(1, 2) @ F.normalize(keys, dim=-1).mT
        cosines = cosines.unflatten(1, query.shape[1:3])
        near, which, there = nearest(cosines, seen.earlier[:, :, None], self.nearest)
        rows = torch.arange(len(values), device=values.device).view(-1, 1, 1, 1)
        weighted = values[rows, which] * weights(near, there)[..., None]
        read: Tensor = self._mixed(weighted, there).flatten(-2).transpose(0, 1)
        return read

    def _mixed(self, items: Tensor, there: Tensor) -> Tensor:
        """Apply self-attention to the entries of each query and sum them, [B, T, heads, value]."""
        query, key, value = self.attend(items).chunk(3, -1)
        allowed = there | ~there.any(-1, keepdim=True)  # without entries allow all, so that the softmax is defined
        attended = self.out(F.scaled_dot_product_attention(query, key, value, attn_mask=allowed[..., None, :]))
        mixed: Tensor = (attended * there[..., None]).sum(-2)
        return mixed


def nearest(
    cosines: Float[Tensor, "batch step head entry"], earlier: Bool[Tensor, "batch step #head entry"], count: int
) -> tuple[Near, Int[Tensor, "batch step head near"], Bool[Tensor, "batch step head near"]]:
    """Return the `count` largest cosines of earlier entries, their positions, and a mask of existing entries.

    Equal cosines are common because messages repeat. Among equal cosines, the newest entries come first.
    """
    places = cosines.shape[-1]
    rank = (cosines.detach() * RANKED).round().long() * places + torch.arange(places, device=cosines.device)
    rank = rank.masked_fill(~earlier, torch.iinfo(torch.int64).min)
    which = rank.topk(min(count, places), -1).indices
    return cosines.gather(-1, which), which, earlier.expand_as(cosines).gather(-1, which)


def weights(cosines: Float[Tensor, "*lead near"], there: Bool[Tensor, "*lead near"]) -> Float[Tensor, "*lead near"]:
    """Return weights proportional to 1 / (1 - cosine + 1e-8), and 0 outside the mask."""
    inverse = there / ((1 - cosines).clamp(min=0) + EPSILON)
    return inverse / inverse.sum(-1, keepdim=True).clamp(min=EPSILON)


class DCEM(RememberingCore):
    """LSTM with two memories, of stimuli and of messages: similar stimuli retrieve messages, and vice versa.

    Entries include the flags. The retrieved entries, the LSTM's output and the input pass through an output LSTM and
    two layers.

    Args:
        width: width of an input.
        parts: widths of stimuli, message and flags in the input; by default its two halves.
        capacity: capacity of the memory in steps; new steps replace the oldest.
        heads: number of queries to each memory.
        nearest: number of entries that a query reads.
        hidden: size of both LSTMs, and of the first layer after them.
        query: size of the hidden layer between an input and its queries.
        output: width of an output.

    Raises:
        InvalidSettingError: the widths in `parts` exceed the input, or one of them is 0.
    """

    def __init__(
        self,
        width: int,
        parts: Parts | None = None,
        capacity: int = CAPACITY,
        heads: int = 3,
        nearest: int = 6,
        hidden: int = 512,
        query: int = 256,
        output: int = 256,
    ) -> None:
        self_parts = parts or Parts.halves(whole_number("width of an input", width, least=2))
        vision, language = self_parts.vision + self_parts.flags, self_parts.language + self_parts.flags
        super().__init__(width, output, hidden + heads * (vision + language), capacity)
        if self_parts.width > width or not vision * language:
            raise InvalidSettingError(f"{self_parts} does not fit an input of {width} numbers.")
        self.parts, self.entries = self_parts, (vision, language)  # widths of the entries of both memories
        self.seen_by_heard = Reader(language, vision, heads, whole_number("nearest", nearest), query)
        self.heard_by_seen = Reader(vision, language, heads, nearest, query)
        self.reads = heads * (vision + language)
        self.below = LSTMStack(self.width, [hidden])
        self.above = LSTMStack(self.reads + hidden + self.width, [hidden])
        self.answer = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, output), nn.ReLU())

    def split(
        self, xs: Float[Tensor, "*lead width"]
    ) -> tuple[Float[Tensor, "*lead seen"], Float[Tensor, "*lead heard"]]:
        """Split inputs into stimuli and messages, each concatenated with the flags."""
        seen, heard, flags = xs[..., : self.parts.width].split(self.parts.sizes, -1)
        return torch.cat([seen, flags], -1), torch.cat([heard, flags], -1)

    def start(self, episodes: int, device: Device = None) -> State:
        """Return the initial state: zeros for both LSTMs and the retrieved entries, and empty memories."""
        like = self.zeros(episodes, self.width, device=device)
        memories = self.empty(episodes, self.entries, device)
        return *self.below.start(like), *self.above.start(like), like.new_zeros(episodes, self.reads), *memories

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the LSTM's hidden state and the retrieved entries."""
        return torch.cat([state[0], state[4]], -1)

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read T inputs at once, which is possible because the memories depend only on the inputs."""
        below, above, (_, old_seen, old_heard, count) = state[:2], state[2:4], state[4:]
        now = view(count, resets, len(xs), self.capacity)
        seen, heard = self.split(xs)
        all_seen, all_heard = appended(old_seen, seen), appended(old_heard, heard)
        read = [self.seen_by_heard(heard, all_heard, all_seen, now), self.heard_by_seen(seen, all_seen, all_heard, now)]
        hidden, _, below = self.below(xs, below, resets)
        latent = torch.cat([hidden, *read], -1)
        ys, _, above = self.above(torch.cat([latent, xs], -1), above, resets)
        memories = remembered(all_seen, now), remembered(all_heard, now)
        return self.answer(ys), latent, (*below, *above, latent[-1, :, hidden.shape[-1] :], *memories, now.count)
