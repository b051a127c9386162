"""The two-level state of the hierarchical-unit network (HU-RNN; Perkins21 section 3, Icy22 section 5)."""

import torch
from torch import Tensor, nn

from .cells import State
from .kernels import cell_steps
from .layers import Linear


def mix(old: State, new: State, s: Tensor) -> State:
    """(1 - s) old + s new, for every member of the state (an LSTM's h and c alike)."""
    return tuple(cell_steps.mix(a, b, s) for a, b in zip(old, new, strict=True))


def damp(state: State, s: Tensor) -> State:
    """(1 - s) state."""
    return tuple(x - x * s for x in state)


class StopGate(nn.Module):
    """s = sigmoid(a . h + b): whether the lower level has finished a word. One number per example."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.score = Linear(hidden_size, 1)

    def forward(self, lower: State) -> Tensor:
        # A product with one column is summed in another order for one model than for a stack of them; this is not.
        weight, bias = self.score.weight, self.score.bias.unsqueeze(-1)
        return torch.sigmoid((lower[0] * weight).sum(-1, keepdim=True) + bias)
