"""Random numbers for stacks of models: pure functions of a key and an index, the same on every device.

A representation that samples needs the same noise twice: in the model, where a sender reads its own samples, and in the
loss, which scores these samples. The model does not pass its samples to the loss. Instead, the noise of symbol v at
position t of example n is a function of (v, t, n) and the key of the update, so model and loss compute the same noise.
A replicate's noise depends only on its seed, not on its stack.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

_GOLDEN = -7046029254386353131  # 2^64 / golden ratio, and the multipliers of the splitmix64 finalizer, as signed
_FIRST, _SECOND = -4658895280553007687, -7723592293110705685


def shift(x: Int[Tensor, "*axes"], bits: int) -> Int[Tensor, "*axes"]:
    """Shift right as an unsigned integer, without copying the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def counter_hash(key: Int[Tensor, "*#axes"], counter: Int[Tensor, "*#axes"]) -> Int[Tensor, "*axes"]:
    """Return a 64-bit hash of (key, counter): the n-th number of a random stream, without earlier numbers.

    This is the splitmix64 generator in wrapping 64-bit arithmetic. The numbers are the same on a CPU and a GPU, for a
    single seed and for many seeds at once. A stream can be read from any position.
    """
    x = key + counter * _GOLDEN
    x = (x ^ shift(x, 30)) * _FIRST
    x = (x ^ shift(x, 27)) * _SECOND
    return x ^ shift(x, 31)


class Noise:
    """Noise of an update, for a model or for each model of a stack.

    Args:
        keys: one 64-bit key, or one per model [replicate].
    """

    def __init__(self, keys: Int[Tensor, "*stack"]) -> None:
        self.keys = keys

    def stream(self, number: int) -> "Noise":
        """Return noise that is independent of this noise and of every other stream."""
        return Noise(counter_hash(self.keys, torch.full_like(self.keys, number)))

    def gumbel(
        self, like: Float[Tensor, "*stack batch choice"], step: int, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "*stack batch choice"]:
        """Return standard Gumbel noise for the scores of one step (a position, an attribute) of every example.

        The argmax of scores + noise is a sample from the softmax of the scores.
        """
        batch, choices = like.shape[-2:]
        return self._gumbel(step, 1, batch, choices, like.device).squeeze(-2).to(dtype or like.dtype)

    def gumbels(self, like: Float[Tensor, "*stack batch step choice"]) -> Float[Tensor, "*stack batch step choice"]:
        """Return the noise of all steps at once: at [..., t, :] the noise that `gumbel` returns for step t."""
        batch, steps, choices = like.shape[-3:]
        return self._gumbel(0, steps, batch, choices, like.device).to(like.dtype)

    def _gumbel(self, first: int, steps: int, batch: int, choices: int, device: torch.device) -> Tensor:
        place = torch.arange(first * batch * choices, (first + steps) * batch * choices, device=device)
        place = place.view(steps, batch, choices).transpose(0, 1)
        bits = shift(counter_hash(self.keys[..., None, None, None], place), 41)
        # 23 bits plus 1/2, so that the uniform number is never 0 or 1, even in single precision.
        return -torch.log(-torch.log((bits + 0.5) * 2.0**-23))


_current: ContextVar[Noise | None] = ContextVar("icy_noise", default=None)


@contextmanager
def drawing_from(noise: Noise | None) -> Iterator[None]:
    """Within the block, sampling models use `noise` instead of torch's global generator."""
    token = _current.set(noise)
    try:
        yield
    finally:
        _current.reset(token)


def current_noise(device: torch.device) -> Noise:
    """Return the current noise of sampling models."""
    noise = _current.get()
    if noise is None:  # a model is called directly, in training mode
        noise = Noise(torch.randint(2**62, (), device=device))
    return noise
