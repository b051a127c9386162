"""Layers of a recurrent cell, run step by step or, if the cell supports it, each over the whole sequence."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.fused import tracing

from .cells import Cell, Gates, InputMatrix, Scanned, State, Steps

CellFactory = Callable[..., Cell]


class Recurrent(nn.Module):
    """One or more layers of one kind of cell, each reading the outputs of the layer below.

    Args:
        cell: function from (input_size, hidden_size, fed=...) to a cell.
        hidden_size: E, also the size of the input.
        layers: number of layers.
        fed: False if the first layer's input is always zero.
        state_only: whether only the last layer's final state is used.
    """

    def __init__(
        self, cell: CellFactory, hidden_size: int, layers: int = 1, fed: bool = True, state_only: bool = False
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(cell(hidden_size, hidden_size, fed=fed or i > 0) for i in range(layers))
        if not fed:
            for layer in self._cells():
                layer.drive_unfed_net()
        if state_only:
            self._cells()[-1].keep_state_only()

    @property
    def first(self) -> Cell:
        """The layer that reads the input."""
        return self._cells()[0]

    @property
    def scans(self) -> bool:
        """Whether `scan` works: a faster equivalent of `step` if all inputs are known beforehand.

        In a trace the result is False.
        """
        return not tracing() and all(layer.scans for layer in self._cells())

    def _cells(self) -> list[Cell]:
        return list(self.layers)  # type: ignore[arg-type]

    def start(self, h: Float[Tensor, "*stack batch hidden"]) -> list[State]:
        """Return states of zeros, except the output `h` of the first layer."""
        first, *rest = self._cells()
        return [first.start(h), *(layer.start(torch.zeros_like(h)) for layer in rest)]

    def step(self, gates: Gates, states: list[State]) -> list[State]:
        """Run one step of every layer; `gates` are the first layer's gates, from `project` or `unfed`."""
        new: list[State] = []
        for layer, state in zip(self._cells(), states, strict=True):
            if new:
                gates = layer.project(new[-1][0])
            new.append(layer.step(gates, state))
        return new

    def scan(self, x: Steps, matrix: InputMatrix, h: Float[Tensor, "*stack batch hidden"], steps: int) -> Scanned:
        """Run all steps of the first layer, then all steps of the next layer.

        Args:
            x, matrix: inputs of the first layer; see Cell.scan.
            h: the first layer's output before the first step; other layers start from zero.
            steps: number of steps.

        Returns:
            The last layer's outputs [*stack, step, batch, hidden]; with `state_only`, only its final output.
        """
        for layer, state in zip(self._cells(), self.start(h), strict=True):
            x, matrix = layer.scan(x, matrix, state, steps), None
        assert x is not None  # there is at least one layer
        return x
