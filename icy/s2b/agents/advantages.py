"""What decisions earned, beyond what was expected of them."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def advantages(
    rewards: Float[Tensor, "batch game"],
    values: Float[Tensor, "batch game"],
    there: Bool[Tensor, "batch game"],
    discount: float = 0.0,
    trace: float = 1.0,
) -> Float[Tensor, "batch game"]:
    """Return generalised advantages of decisions (Schulman et al. 2016), 0 behind the end of an episode.

    Args:
        rewards: reward of each decision.
        values: value of the state before each decision; zeros to get returns.
        there: which decisions there are.
        discount: discount of rewards, per decision.
        trace: how far rewards count rather than the values of later states, from 0 to 1 (lambda).
    """
    left, there = torch.zeros_like(rewards[:, 0]), there.to(rewards.dtype)
    later, found = torch.zeros_like(left), []
    for number in reversed(range(rewards.shape[1])):
        surprise = rewards[:, number] + discount * later - values[:, number]
        left = (surprise + discount * trace * left) * there[:, number]
        later = values[:, number] * there[:, number]
        found.append(left)
    return torch.stack(found[::-1], 1)
