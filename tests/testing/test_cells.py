"""The contract of cells: for every check a cell that is wrong in the way it looks for, and fails it alone."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from icy import testing
from icy.core.errors import IncompatibleError, UnknownNameError
from icy.core.registry import Entry, registry
from icy.models.cells import Cell, State
from icy.testing import CELL_CHECKS, ContractError
from icy.testing.other_loops import OTHER_LOOP_CHECKS


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
    """All that a cell has, by hand."""

    gate_blocks, scans = 1, False

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__()
        self.hidden_size, self.fed, self.inert = hidden_size, fed, 0 if fed else input_size * hidden_size
        self.keep = nn.Linear(hidden_size, hidden_size)
        if fed:
            self.read = nn.Linear(input_size, hidden_size, bias=False)

    project, weigh, unfed, step = Plain.project, Plain.weigh, Plain.unfed, Plain.step

    def start(self, h: Tensor) -> State:
        return (h,)

    def drive_unfed_net(self) -> None: ...

    def keep_state_only(self) -> None: ...


class WrongWidth(Plain):
    gate_blocks = 2

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__(input_size, hidden_size, fed)
        self.inert = 0 if fed else input_size * hidden_size


class ListsState(Plain):
    def start(self, h: Tensor) -> Any:
        return [h]


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


class Unseeded(Plain):
    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        with torch.no_grad():
            self.keep.bias += 1e-6 * random.Random().random()


class Constant(Plain):
    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        for p in self.parameters():
            nn.init.constant_(p, 0.1)


class DrawsElsewhere(Plain):
    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        np.random.random()


class Counts(Plain):
    """Remembers how often it was called."""

    calls = 0

    def step(self, gates: Tensor, state: State) -> State:
        self.calls += 1
        return (super().step(gates, state)[0] + 1e-8 * self.calls,)


class WritesGates(Plain):
    def step(self, gates: Tensor, state: State) -> State:
        found = super().step(gates, state)
        if not torch.is_grad_enabled():
            gates.zero_()
        return found


class Mixes(Plain):
    def step(self, gates: Tensor, state: State) -> State:
        return super().step(gates, (state[0] + 0.1 * state[0].mean(-2, keepdim=True),))


class Unused(Plain):
    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.spare = nn.Parameter(torch.rand(3))


class Forgetful(Plain):
    """Reads nothing of the state; the weights of it are used for something else."""

    def step(self, gates: Tensor, state: State) -> State:
        return (torch.tanh(gates + self.keep(torch.ones_like(state[0]))),)


class ScansOtherwise(Scanning):
    def scan(self, x: Tensor | None, matrix: Tensor | None, state: State, steps: int) -> Tensor:
        return super().scan(x, matrix, (state[0] * 0.5,), steps)


class Single(Plain):
    def step(self, gates: Tensor, state: State) -> State:
        return (super().step(gates, state)[0].float(),)


class OnTheCPU(Plain):
    def unfed(self) -> Tensor:
        return torch.zeros(1, self.hidden_size, dtype=self.keep.bias.dtype)


class Unpicklable(Plain):
    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.generator = (i for i in range(3))

    def __deepcopy__(self, memo: dict[int, Any]) -> Unpicklable:
        copied = type(self)(self.input_size, self.hidden_size, self.fed)
        copied.load_state_dict(copy.deepcopy(self.state_dict()))
        return copied


class EvenSizes(Plain):
    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__(input_size, hidden_size, fed)
        self.halves = torch.ones(hidden_size).view(2, -1).shape


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


WRONG = {
    "made_by_name": NoCell,
    "gates": WrongWidth,
    "states": ListsState,
    "project_is_weigh_and_a_constant": NotLinear,
    "unfed_is_a_zero_input": UnfedOtherwise,
    "inert_parameters": Miscounts,
    "finite_over_many_steps": Overflows,
    "same_seed_same_weights": Unseeded,
    "different_seeds_differ": Constant,
    "random_state_untouched": DrawsElsewhere,
    "deterministic": Counts,
    "inputs_unchanged": WritesGates,
    "examples_independent": Mixes,
    "gradients_reach_parameters": Unused,
    "reads_input_and_state": Forgetful,
    "scan_equals_steps": ScansOtherwise,
    "float64": Single,
    "moves_to_device": OnTheCPU,
    "pickles": Unpicklable,
    "other_sizes": EvenSizes,
    "every_family": NeverOne,
    "stacked_equals_separate": FalselyBroadcasts,
}


@pytest.mark.contract
@pytest.mark.parametrize("check", WRONG)
def test_a_wrong_cell_fails_one_check(check: str) -> None:
    results = testing.check(WRONG[check], "cell", raise_on_failure=False)
    assert {r.name for r in results if not r.passed} - set(OTHER_LOOP_CHECKS) == {check}


def test_every_check_has_a_cell_that_fails_it() -> None:
    assert set(WRONG) == set(CELL_CHECKS) - set(OTHER_LOOP_CHECKS)  # the rest: test_other_loops


@pytest.mark.parametrize("cell", [Plain, Scanning])
def test_a_strangers_cell_passes(cell: type[Cell]) -> None:
    results = {r.name: r for r in testing.check(cell, "cell")}
    assert set(results) == set(CELL_CHECKS)
    assert results["stacked_equals_separate"].message == "trains as: vmap"
    assert results["scan_equals_steps"].excused is (cell is Plain)
    assert results["made_by_name"].message == "does not apply: the cell is not registered"


def test_the_line_to_mend_is_named() -> None:
    class Broken(Plain):
        def step(self, gates: Tensor, state: State) -> State:
            raise ZeroDivisionError("my own fault")

    results = {r.name: r for r in testing.check(Broken, "cell", raise_on_failure=False)}
    assert results["states"].message.startswith("ZeroDivisionError: my own fault (line ")
    assert results["every_family"].message.startswith("In sender/HierAutoReg:Broken: ZeroDivisionError: my own fault")


@pytest.mark.contract
def test_registered_cells_are_found() -> None:
    entry = Entry("cell", "mine", Plain, "", "", origin=__name__, aliases=("my_own",))
    with registry.holding(entry):
        for given in ("my_own", Plain):
            results = {r.name: r for r in testing.check(given, "cell")}
            assert not results["made_by_name"].excused
    with pytest.raises(UnknownNameError, match="No cell is called 'mine'"):
        testing.check("mine", "cell")
    with pytest.raises(ContractError, match="cell/Miscounts fails 1 of"):
        testing.check(Miscounts, "cell")
    excused = testing.check(Miscounts, "cell", expected_failures={"inert_parameters": "it counts nothing"})
    assert all(r.passed for r in excused)
