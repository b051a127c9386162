"""Targets of values: rewards of some steps, and then what the state is worth."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

OfSteps = Float[Tensor, "step batch"]
Flags = Bool[Tensor, "step batch"]


def n_step_targets(rewards: OfSteps, ends: Flags, worth: OfSteps, steps: int, discount: float) -> OfSteps:
    """Return the sum of the next rewards, discounted, and of what the state after them is worth.

    Rewards end with the episode. Close to the end of a sequence there are fewer of them, before its last state. The
    target of its last step is its own worth, unless an episode ends there.

    Args:
        rewards: reward of the action of each step.
        ends: whether the episode ends with it.
        worth: what the state of each step is worth.
        steps: number of rewards, n.
        discount: of later rewards.
    """
    found = worth
    for _ in range(steps):
        later = torch.cat([rewards[:-1] + discount * found[1:] * ~ends[:-1], worth[-1:]])
        found = torch.where(ends, rewards, later)
    return found


def whole(ends: Flags, steps: int) -> Flags:
    """Return at which steps of a sequence the next `steps` rewards are in it, or all that are left of the episode."""
    found = torch.ones_like(ends)
    for _ in range(steps):
        found = ends | torch.cat([found[1:], torch.zeros_like(found[:1])])
    return found
