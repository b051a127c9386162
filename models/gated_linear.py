"""Gated linear recurrences: cells with gates that do not read the state."""

import math

import torch
from torch import nn

from .cells import Cell, FromInput, Gates, Inputs, State, Unfed
from .kernels import cell_steps
from .layers import linear


class MinGRUCell(Cell):
    """Minimal GRU (Feng et al. 2024, "Were RNNs all we needed?", section 3.1): a GRU with gates of the input alone.

    z = sigmoid(W_z x + b_z);  h~ = W_h x + b_h;  h' = (1 - z) h + z h~. This is the paper's plain form; its second form
    computes in log space and keeps h~ positive. Initialized U(+-1/sqrt(E)), like PyTorch's cells and, if input and
    state have the same size, its linear layers.

    Meant for families in which cells have an input. If the input is always zero (RNNZero, Composed without feedback,
    and the upper level of the Hier senders), z and h~ are constant, and each unit of the state decays from the meaning
    to h~ at a fixed rate. The scores of token t are then W d^t h_0 plus a constant, with d = 1 - z: positions differ
    only by the rates. Such a sender does not learn long messages: on concat at 5x10 (L=20, E=128, one seed) it had 99 %
    of the first token after 1,500 updates, and 28 to 58 % of tokens 4 to 20. Slower rates at the start (b_z lower by 3,
    or rates from 1/L to 1) changed the mean over tokens from 46 % to 43 and 48 %.
    """

    gate_blocks = 2

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__(input_size, hidden_size, fed)
        width, bound = self.gate_blocks * hidden_size, 1 / math.sqrt(hidden_size)
        if fed:
            self.weight_ih = nn.Parameter(torch.empty(width, input_size).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def project(self, x: Inputs) -> FromInput:
        return linear(x, self.weight_ih, self.bias)

    def weigh(self, x: Inputs) -> FromInput:
        return linear(x, self.weight_ih)

    def unfed(self) -> Unfed:
        return self.bias.unsqueeze(-2)

    def step(self, gates: Gates, state: State) -> State:
        (h,) = state
        # h + z (h~ - h) is a highway node without activation. The gates of a zero input have a single row.
        by_example = gates.expand(*h.shape[:-1], gates.shape[-1])
        return (cell_steps.highway_step(by_example, h, "identity"),)
