"""Recurrent cells: RNN, GRU, LSTM and the two DARTS cells of Perkins21 (appendix), with one interface.

A cell splits its step in two, so that whatever does not depend on the state is computed once for all steps:

    gates = cell.project(x)            # W x + b, for every step at once
    state = cell.step(gates, state)    # the part that needs the state

A state is a tuple whose first member is the output h; the LSTM's second is c. Everything broadcasts over leading axes.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from . import fused
from .layers import linear, rows_times

State = tuple[Tensor, ...]


class Cell(nn.Module):
    """What the families ask of a recurrent cell.

    Args:
        input_size: size of x.
        hidden_size: E.
        fed: False where the input is always zero, as in RNNZero and HierZero. The input weights, which the published
            models have and count, would then do nothing: they are left out, and `inert` counts them.
    """

    gate_blocks: int  # the width of `gates`, in units of hidden_size

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.fed = input_size, hidden_size, fed
        self.inert = 0 if fed else input_size * self.gate_blocks * hidden_size

    def project(self, x: Float[Tensor, "*lead inputs"]) -> Float[Tensor, "*lead gates"]:
        """The share of the gates that comes from the input, with its bias."""
        raise NotImplementedError

    def weigh(self, x: Float[Tensor, "*lead inputs"]) -> Float[Tensor, "*lead gates"]:
        """The linear part of `project` alone, without a bias."""
        raise NotImplementedError

    def unfed(self) -> Float[Tensor, "*stack 1 gates"]:
        """The gates of a zero input, the same for every example and step."""
        raise NotImplementedError

    def step(self, gates: Tensor, state: State) -> State:
        """The next state. `gates` [..., batch or 1, gates] is from `project` or `unfed`."""
        raise NotImplementedError

    def start(self, h: Float[Tensor, "*stack batch hidden"]) -> State:
        """A state with output `h`, whatever else it holds zero."""
        return (h,)


class _LibraryCell(Cell):
    """Weights and initialisation of PyTorch's cells: U(+-1/sqrt(E)), two bias vectors."""

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__(input_size, hidden_size, fed)
        width, bound = self.gate_blocks * hidden_size, 1 / math.sqrt(hidden_size)
        if fed:
            self.weight_ih = nn.Parameter(torch.empty(width, input_size).uniform_(-bound, bound))
        self.weight_hh = nn.Parameter(torch.empty(width, hidden_size).uniform_(-bound, bound))
        self.bias_ih = nn.Parameter(torch.empty(width).uniform_(-bound, bound))
        self.bias_hh = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def project(self, x: Tensor) -> Tensor:
        return linear(x, self.weight_ih, self._input_bias())

    def weigh(self, x: Tensor) -> Tensor:
        return linear(x, self.weight_ih)

    def unfed(self) -> Tensor:
        return self._input_bias().unsqueeze(-2)

    def _input_bias(self) -> Tensor:
        # Both biases enter the same sum, so they are added once and not at every step (the GRU must not, below).
        return self.bias_ih + self.bias_hh


class RNNCell(_LibraryCell):
    """Vanilla (Elman) RNN: h' = tanh(W x + b + U h + c)."""

    gate_blocks = 1

    def step(self, gates: Tensor, state: State) -> State:
        (h,) = state
        return (fused.tanh(rows_times(h, self.weight_hh.mT, gates)),)


class GRUCell(_LibraryCell):
    """Gated recurrent unit, in PyTorch's form (the reset gate acts after the product with the state)."""

    gate_blocks = 3

    def _input_bias(self) -> Tensor:
        return self.bias_ih  # the candidate's share of bias_hh stands inside the reset gate

    def step(self, gates: Tensor, state: State) -> State:
        (h,) = state
        return (fused.gru_step(gates, linear(h, self.weight_hh, self.bias_hh), h),)


class LSTMCell(_LibraryCell):
    """Long short-term memory, in PyTorch's form."""

    gate_blocks = 4

    def step(self, gates: Tensor, state: State) -> State:
        h, c = state
        return fused.lstm_step(rows_times(h, self.weight_hh.mT, gates), c)

    def start(self, h: Tensor) -> State:
        return h, torch.zeros_like(h)


class DartsCell(Cell):
    """A cell found by architecture search: a first highway node, then `nodes`, whose mean (or last) is the new state.

    All matrices are Xavier-uniform and there is no bias. Node i is s_p + sigmoid(c) (f(g) - s_p) with
    [c | g] = s_p W_i, for its predecessor p (Perkins21, section on DARTS; node 0 starts from h and also sees x).

    Args:
        input_size: size of x.
        hidden_size: E.
        fed: see Cell.
    """

    gate_blocks = 2
    nodes: tuple[tuple[int, str], ...]  # predecessor, activation

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__(input_size, hidden_size, fed)
        width = 2 * hidden_size
        # One matrix in the published form, with x's rows above h's: the bound is that of the whole.
        bound = math.sqrt(6 / (input_size + hidden_size + width))
        if fed:
            self.weight_x = nn.Parameter(torch.empty(input_size, width).uniform_(-bound, bound))
        self.weight_h = nn.Parameter(torch.empty(hidden_size, width).uniform_(-bound, bound))
        for i, _ in enumerate(self.nodes, 1):
            matrix = torch.empty(hidden_size, width)
            self.register_parameter(f"weight_{i}", nn.Parameter(nn.init.xavier_uniform_(matrix)))

    def project(self, x: Tensor) -> Tensor:
        return rows_times(x, self.weight_x)

    weigh = project

    def unfed(self) -> Tensor:
        return self.weight_h.new_zeros(*self.weight_h.shape[:-2], 1, self.weight_h.shape[-1])

    def step(self, gates: Tensor, state: State) -> State:
        (h,) = state
        outputs = [fused.highway_step(rows_times(h, self.weight_h, gates), h, "tanh")]
        for i, (predecessor, activation) in enumerate(self.nodes, 1):
            s = outputs[predecessor]
            outputs.append(fused.highway_step(rows_times(s, getattr(self, f"weight_{i}")), s, activation))
        found = outputs[1:]
        return (found[0] if len(found) == 1 else torch.stack(found).mean(0),)


class DGSendCell(DartsCell):
    """The DARTS cell found for senders: one node."""

    nodes = ((0, "identity"),)


class DGRecvCell(DartsCell):
    """The DARTS cell found for receivers: four nodes."""

    nodes = ((0, "tanh"), (0, "tanh"), (0, "identity"), (2, "relu"))
