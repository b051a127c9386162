"""One or more layers of a recurrent cell, stepped together or, where the cell can, each over the whole sequence."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .cells import Cell, State

CellFactory = Callable[..., Cell]


class Recurrent(nn.Module):
    """Layers of one cell: layer n + 1 reads what layer n puts out.

    Args:
        cell: makes a cell from (input_size, hidden_size, fed=...).
        hidden_size: E, also the size of the input.
        layers: number of layers.
        fed: False where the first layer's input is always zero.
        state_only: whether of the last layer nothing is read but the state after the last step.
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
        """Whether `scan` works; it gives what `step` gives, faster, where all inputs are known beforehand."""
        return all(layer.scans for layer in self._cells())

    def _cells(self) -> list[Cell]:
        return list(self.layers)  # type: ignore[arg-type]

    def start(self, h: Tensor) -> list[State]:
        """States whose first layer has output `h` and all else is zero."""
        first, *rest = self._cells()
        return [first.start(h), *(layer.start(torch.zeros_like(h)) for layer in rest)]

    def step(self, gates: Tensor, states: list[State]) -> list[State]:
        """One step of every layer. `gates` are the first layer's, from its `project` or `unfed`."""
        new: list[State] = []
        for layer, state in zip(self._cells(), states, strict=True):
            if new:
                gates = layer.project(new[-1][0])
            new.append(layer.step(gates, state))
        return new

    def scan(self, x: Tensor | None, matrix: Tensor | None, h: Tensor, steps: int) -> Tensor:
        """All steps of the first layer, then all of the next.

        Args:
            x, matrix: inputs of the first layer; see Cell.scan.
            h: the first layer's output before the first step; of all else zero.
            steps: how many.

        Returns:
            The last layer's outputs [*stack, step, batch, hidden], or its last alone if nothing else is read.
        """
        for layer, state in zip(self._cells(), self.start(h), strict=True):
            x, matrix = layer.scan(x, matrix, state, steps), None
        assert x is not None  # there is a layer
        return x
