"""What a player is told of the other's greedy choice in training (simplified action decoder; Hu and Foerster 2019)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .actions import Actions

PLAYER = (0.0, 1.0)  # which player it is, counted from oneself


def told_width(actions: Actions) -> int:
    """Return how many numbers tell of a choice among the other player's actions."""
    return actions.width + len(PLAYER)


def told_of(actions: Actions, chosen: Int[Tensor, "*lead choice"]) -> Float[Tensor, "*lead told"]:
    """Return the other player's choice as a one-hot block, and which player it is; zeros where there was no choice."""
    block = actions.one_hot(chosen)
    there = block.any(-1, keepdim=True)
    return torch.cat([block, there * torch.tensor(PLAYER, device=block.device, dtype=torch.float32)], -1)
