"""Make symbols from scores: samples, argmax, one-hot vectors."""

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from icy.core.fused import traceable
from icy.core.noise import current_noise

from .protocol import StepScores


@traceable
def sampled(scores: StepScores, step: int, training: bool) -> StepScores:
    """Return the token that a sampling sender emits at a step, one-hot and without a gradient; greedy if not training.

    The loss of `Discrete` scores the same token.

    Returns:
        The one-hot token, [..., batch, vocab], with 0 and 1 as floats.
    """
    if not training:
        return largest(scores)
    return largest(scores.detach() + current_noise(scores.device).gumbel(scores, step))


@traceable
def relaxed(scores: StepScores, step: int, temperature: float) -> StepScores:
    """Return the sampled token of a step, one-hot, with the gradient of the Gumbel-softmax."""
    return straight_through(scores, current_noise(scores.device).gumbel(scores, step), temperature)


def straight_through(
    scores: Float[Tensor, "*places choice"], gumbel: Float[Tensor, "*places choice"], temperature: float
) -> Float[Tensor, "*places choice"]:
    """Return the argmax of scores plus noise, one-hot, with the gradient of their softmax at a temperature."""
    soft = ((scores + gumbel) / temperature).softmax(-1)
    return largest(soft.detach()) - soft.detach() + soft  # value of the one-hot, gradient of the softmax


@traceable
def largest(scores: Float[Tensor, "*places choice"]) -> Float[Tensor, "*places choice"]:
    """Return the one-hot vector of the largest score."""
    return one_hot(scores.argmax(-1), scores.shape[-1], scores.dtype)


@traceable
def without_start(scores: Float[Tensor, "*places vocab"]) -> Float[Tensor, "*places vocab"]:
    """Set the last score, of the start symbol, to minus infinity, so that the start symbol is never drawn."""
    last = torch.arange(scores.shape[-1], device=scores.device) == scores.shape[-1] - 1
    return scores.masked_fill(last, -torch.inf)


def one_hot(
    index: Integer[Tensor, "*places"], size: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*places size={size}"]:
    """Return one-hot vectors on a new last axis, without the range check of PyTorch, which waits for the device."""
    return (index.unsqueeze(-1) == torch.arange(size, device=index.device)).to(dtype)
