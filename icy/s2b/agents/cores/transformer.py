"""Causal Transformer over the last steps of an episode."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError

from .core import CAPACITY, Device, Inputs, Resets, State, Traced
from .entries import MemoryView, RememberingCore, appended, remembered, view

SLOWEST = 10_000.0  # steps per radian of the slowest rotation (Su et al. 2021)


class Layer(nn.Module):
    """A pre-norm Transformer layer: self-attention and a feed-forward network, each with a residual connection.

    Args:
        size: width of inputs and outputs.
        heads: number of heads.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(size), nn.LayerNorm(size)
        self.project, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.neurons = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(
        self, x: Float[Tensor, "step batch size"], old: Float[Tensor, "batch capacity both"], seen: MemoryView
    ) -> tuple[Float[Tensor, "step batch size"], Float[Tensor, "batch entry both"]]:
        """Attend from inputs [T, B, size] to the keys and values of earlier steps [B, C, 2 * size] and of the inputs.

        Returns:
            The outputs, and the keys and values of earlier and new steps.
        """
        query, key, value = self.project(self.before(x)).chunk(3, -1)
        angles = rotations(seen.ages.T, query.shape[-1] // self.heads).to(x.dtype)
        query, key = (self._rotated(part, angles) for part in (query, key))
        entries = appended(old, torch.cat([key, value], -1))
        keys, values = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in entries.chunk(2, -1))
        queries = query.unflatten(-1, (self.heads, -1)).permute(1, 2, 0, 3)
        steps = torch.eye(len(x), dtype=torch.bool, device=x.device)
        allowed = (seen.earlier | F.pad(steps, (old.shape[1], 0)))[:, None]  # a step sees itself as well
        attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed)
        x = x + self.out(attended.permute(2, 0, 1, 3).flatten(-2))
        return x + self.neurons(self.between(x)), entries

    def _rotated(self, x: Tensor, angles: Tensor) -> Tensor:
        """Rotate pairs of each head's components by angles [T, B, head size / 2]."""
        one, other = x.unflatten(-1, (self.heads, -1)).chunk(2, -1)
        cos, sin = angles.cos()[:, :, None], angles.sin()[:, :, None]
        return torch.cat([one * cos - other * sin, one * sin + other * cos], -1).flatten(-2)


def rotations(ages: Int[Tensor, "*lead"], size: int) -> Float[Tensor, "*lead half"]:
    """Return the rotation angles of steps, with which attention scores depend only on the distance of steps."""
    speed = SLOWEST ** (-torch.arange(size // 2, dtype=torch.float64, device=ages.device) / (size // 2))
    return ages[..., None] * speed


class TransformerCore(RememberingCore):
    """Causal Transformer: a step attends to itself and to the last `capacity` steps of its episode.

    Positions are encoded as rotations (Su et al. 2021), so only distances between steps matter. The state caches keys
    and values, so earlier steps are not computed again.

    Args:
        width: width of an input.
        capacity: number of earlier steps that a step attends to.
        size: width of the layers.
        layers: number of layers.
        heads: number of heads of a layer.

    Raises:
        InvalidSettingError: the size of a head is odd or not a whole number.
    """

    def __init__(self, width: int, capacity: int = CAPACITY, size: int = 128, layers: int = 2, heads: int = 4) -> None:
        super().__init__(width, size, size, capacity)
        self.size = size
        if whole_number("size of a layer", size) % (2 * whole_number("number of heads", heads)):
            raise InvalidSettingError(f"The size of a layer must be a multiple of 2 * {heads} (heads), not {size}.")
        self.embed, self.last = nn.Linear(self.width, size), nn.LayerNorm(size)
        self.layers = nn.ModuleList(Layer(size, heads) for _ in range(whole_number("number of layers", layers)))

    def start(self, episodes: int, device: Device = None) -> State:
        """Return the initial state: empty caches, a step count of 0, and zeros for the last output."""
        caches = self.empty(episodes, [2 * self.size] * len(self.layers), device)
        return *caches, self.zeros(episodes, self.size, device=device)

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the last output."""
        return state[-1]

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read T inputs in one parallel pass."""
        *windows, count, _ = state
        seen = view(count, resets, len(xs), self.capacity)
        x, after = self.embed(xs), []
        for layer, window in zip(self.layers, windows, strict=True):
            x, entries = layer(x, window, seen)
            after.append(remembered(entries, seen))
        ys = self.last(x)
        return ys, ys, (*after, seen.count, ys[-1])
