"""Checks of cells, of cores, and of modules in other training loops."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from icy import testing
from icy.core.errors import IncompatibleError
from icy.models.cells import Cell, State
from tests.testing.mistakes import EVERY, Kind, shared_mistakes

# -- cells that are wrong in the way that a check looks for; test_kinds checks them ------------------------------------


NO_SCAN = "does not apply: the cell has `scans = False`"


class Plain(Cell):
    """A cell as a stranger would write it, of ordinary layers."""

    gate_blocks = 1

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__(input_size, hidden_size, fed)
        self.keep = nn.Linear(hidden_size, hidden_size)
        if fed:
            self.read = nn.Linear(input_size, hidden_size, bias=False)

    def project(self, x: Tensor) -> Tensor:
        gates: Tensor = self.read(x)
        return gates

    def weigh(self, x: Tensor) -> Tensor:
        gates: Tensor = self.read(x)
        return gates

    def unfed(self) -> Tensor:
        return self.keep.bias.new_zeros(1, self.hidden_size)

    def step(self, gates: Tensor, state: State) -> State:
        return (torch.tanh(gates + self.keep(state[0])),)


class Scanning(Plain):
    """With a scan, which families then use."""

    scans = True

    def scan(self, x: Tensor | None, matrix: Tensor | None, state: State, steps: int) -> Tensor:
        weights = self.read.weight.mT if self.fed and matrix is None else matrix
        outputs = []
        for t in range(steps):
            state = self.step(self.unfed() if x is None else x[..., t, :, :] @ weights, state)
            outputs.append(state[0])
        return outputs[-1] if self.told else torch.stack(outputs, -3)

    told = False

    def keep_state_only(self) -> None:
        self.told = True


class NoCell(nn.Module):
    """Not derived from Cell."""

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__()


class NotLinear(Plain):
    def weigh(self, x: Tensor) -> Tensor:
        return super().weigh(x).abs()

    project = weigh


class UnfedOtherwise(Plain):
    def unfed(self) -> Tensor:
        return super().unfed() + 1


class Miscounts(Plain):
    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.inert = 0


class Overflows(Plain):
    """The second tensor of its state is infinite after some twenty steps; the output knows nothing of it."""

    def start(self, h: Tensor) -> State:
        return h, torch.ones_like(h)

    def step(self, gates: Tensor, state: State) -> State:
        return (*super().step(gates, state[:1]), state[1].detach() * 100)


class WritesGates(Plain):
    def step(self, gates: Tensor, state: State) -> State:
        found = super().step(gates, state)
        if not torch.is_grad_enabled():
            gates.zero_()
        return found


class ScansOtherwise(Scanning):
    def scan(self, x: Tensor | None, matrix: Tensor | None, state: State, steps: int) -> Tensor:
        return super().scan(x, matrix, (state[0] * 0.5,), steps)


class NeverOne(Plain):
    """Refuses the input of one number that some families give where nothing is fed."""

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__(input_size, hidden_size, fed)
        if input_size == 1:
            raise IncompatibleError("I do not like this input.")


class FalselyBroadcasts(Plain):
    """Takes stacked parameters without complaint, and uses the first cell's for all of them."""

    def _first(self, layer: nn.Linear, x: Tensor) -> Tensor:
        weight, bias = layer.weight, layer.bias
        if weight.dim() == 2:
            return nn.functional.linear(x, weight, bias)
        return nn.functional.linear(x, weight[0], None if bias is None else bias[0])

    def project(self, x: Tensor) -> Tensor:
        return self._first(self.read, x)

    weigh = project

    def step(self, gates: Tensor, state: State) -> State:
        return (torch.tanh(gates + self._first(self.keep, state[0])),)


KIND = Kind(
    "cell",
    {
        "made_by_name": NoCell,
        "project_is_weigh_and_a_constant": NotLinear,
        "unfed_is_a_zero_input": UnfedOtherwise,
        "inert_parameters": Miscounts,
        "finite_output": Overflows,
        "scan_equals_steps": ScansOtherwise,
        "every_family": NeverOne,
        "stacked_equals_separate": FalselyBroadcasts,
        **shared_mistakes(Plain, "cell"),
        "inputs_unchanged": WritesGates,
    },
    Plain,
    {"stacked_equals_separate": "trains as: vmap", "scan_equals_steps": NO_SCAN},
    also={"made_by_name": EVERY, "state_dict": EVERY},
    mark="contract",
)


def test_a_cell_with_a_scan_passes() -> None:
    assert not {r.name: r for r in testing.check(Scanning, "cell")}["scan_equals_steps"].excused


def test_the_line_to_mend_is_named() -> None:
    class Broken(Plain):
        def step(self, gates: Tensor, state: State) -> State:
            raise ZeroDivisionError("my own fault")

    results = {r.name: r for r in testing.check(Broken, "cell", raise_on_failure=False)}
    assert results["finite_output"].message.startswith("ZeroDivisionError: my own fault (line ")
    family = "ZeroDivisionError: my own fault. The family is sender/HierAutoReg:Broken (line "
    assert results["every_family"].message.startswith(family)
