"""Recurrent cells with one interface: PyTorch's cells, an SRU, and the two cells found by search (Perkins21).

A state is a tuple of tensors [batch, hidden], where the first tensor is the output. An input of None is zero.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

State = tuple[Tensor, ...]
LIBRARY = {"RNN": (nn.RNNCell, nn.RNN), "GRU": (nn.GRUCell, nn.GRU), "LSTM": (nn.LSTMCell, nn.LSTM)}


class LibraryCell(nn.Module):
    """A cell of PyTorch. If it is not `fed`, its input has size 1 and is zero, as PyTorch's cells require an input."""

    def __init__(self, name: str, hidden: int, fed: bool = True) -> None:
        super().__init__()
        self.cell = LIBRARY[name][0](hidden if fed else 1, hidden)

    def start(self, h: Tensor) -> State:
        return (h, torch.zeros_like(h)) if isinstance(self.cell, nn.LSTMCell) else (h,)

    def forward(self, x: Tensor | None, state: State) -> State:
        x = state[0].new_zeros(len(state[0]), 1) if x is None else x
        return self.cell(x, state) if len(state) > 1 else (self.cell(x, state[0]),)


class SRU(nn.Module):
    """Simple recurrent unit: gates read the state through a weight per unit, so W x is one product for all steps."""

    def __init__(self, hidden: int, fed: bool = True) -> None:
        super().__init__()
        self.fed = fed
        if fed:
            self.weight = nn.Linear(hidden, 3 * hidden, bias=False)
        self.state_weight, self.bias = nn.Parameter(torch.randn(2, hidden)), nn.Parameter(torch.zeros(2, hidden))

    def forward(self, x: Tensor | None, c: Tensor, length: int) -> Tensor:
        """Return the outputs [batch, length, hidden] for a sequence of inputs, or for None (no input)."""
        outputs, steps = [], [(0.0,) * 4] * length
        if x is not None:
            steps = zip(*(part.unbind(1) for part in (*self.weight(x).chunk(3, -1), x)), strict=True)
        for candidate, of_f, of_r, passed in steps:
            f = torch.sigmoid(of_f + self.state_weight[0] * c + self.bias[0])
            r = torch.sigmoid(of_r + self.state_weight[1] * c + self.bias[1])
            c = f * c + (1 - f) * candidate
            outputs.append(r * (c if self.fed else torch.tanh(c)) + (1 - r) * passed)
        return torch.stack(outputs, 1)


class SearchedCell(nn.Module):
    """A cell with a highway node that reads x and h, and nodes that read an earlier node; the state is their mean.

    Args:
        hidden: size of input and state.
        nodes: input node and activation of each further node.
    """

    def __init__(self, hidden: int, nodes: tuple[tuple[int, Any], ...]) -> None:
        super().__init__()
        self.nodes = nodes
        self.first = nn.Linear(2 * hidden, 2 * hidden, bias=False)
        self.others = nn.ModuleList(nn.Linear(hidden, 2 * hidden, bias=False) for _ in nodes)

    def start(self, h: Tensor) -> State:
        return (h,)

    def forward(self, x: Tensor, state: State) -> State:
        (h,) = state
        found = [_highway(self.first(torch.cat([x, h], -1)), h, torch.tanh)]
        for (place, activation), weight in zip(self.nodes, self.others, strict=True):
            found.append(_highway(weight(found[place]), found[place], activation))
        return (torch.stack(found[1:]).mean(0),)


def _highway(gates: Tensor, s: Tensor, activation: Any) -> Tensor:
    gate, candidate = gates.chunk(2, -1)
    return s + torch.sigmoid(gate) * (activation(candidate) - s)


SEARCHED: dict[str, tuple[tuple[int, Any], ...]] = {
    "dgsend": ((0, nn.Identity()),),
    "dgrecv": ((0, torch.tanh), (0, torch.tanh), (0, nn.Identity()), (2, torch.relu)),
}


def make_cell(name: str, hidden: int, fed: bool = True) -> LibraryCell | SearchedCell:
    """Return a cell by name, for one step at a time."""
    return SearchedCell(hidden, SEARCHED[name]) if name in SEARCHED else LibraryCell(name, hidden, fed)


class Layers(nn.Module):
    """Stacked layers of a cell that run over a whole sequence; PyTorch's own layers where they exist.

    Args:
        name: name of the cell.
        hidden: size of inputs and states.
        layers: number of layers.
        fed: False if the input is always zero.
    """

    def __init__(self, name: str, hidden: int, layers: int = 1, fed: bool = True) -> None:
        super().__init__()
        self.name, self.hidden = name, hidden
        if name in LIBRARY:
            self.net: nn.Module = LIBRARY[name][1](hidden if fed else 1, hidden, layers, batch_first=True)
        elif name == "SRU":
            self.net = nn.ModuleList(SRU(hidden, fed) for _ in range(layers))
        else:
            self.net = nn.ModuleList(make_cell(name, hidden) for _ in range(layers))

    def forward(self, x: Tensor | None, start: Tensor, length: int) -> Tensor:
        """Return the outputs [batch, length, hidden].

        Args:
            x: inputs [batch, length, hidden], or None for no input.
            start: initial state [batch, hidden].
            length: number of steps.
        """
        if self.name in LIBRARY:
            return self._library(start.new_zeros(len(start), length, 1) if x is None else x, start)
        for layer in self.net:
            x = layer(x, start, length) if self.name == "SRU" else _run(layer, x, start)
            start = torch.zeros_like(start)
        assert x is not None
        return x

    def _library(self, x: Tensor, start: Tensor) -> Tensor:
        h = torch.cat([start.unsqueeze(0), start.new_zeros(self.net.num_layers - 1, *start.shape)])
        return self.net(x, (h, torch.zeros_like(h)) if self.name == "LSTM" else h)[0]


def _run(cell: SearchedCell, x: Tensor, start: Tensor) -> Tensor:
    state, outputs = cell.start(start), []
    for given in x.unbind(1):
        state = cell(given, state)
        outputs.append(state[0])
    return torch.stack(outputs, 1)
