"""Checks of recurrent cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from icy.core.registry import SIDES, registry
from icy.core.streams import stream
from icy.models.cells import Cell, State

from .cases import NotApplicable, require, require_close
from .models import ModelCase
from .modules import Tensors, TrainedCase

BATCH, STEPS = 5, 4
LONG = 20  # steps, the length of the papers' messages


@dataclass(frozen=True)
class CellCase(TrainedCase[Cell]):
    """A recurrent cell under test, and its sizes in the tests.

    Attributes:
        size: size of the input and of the state, E.
    """

    size: int = 8

    def create(self, seed: int, fed: bool = True, sizes: tuple[int, int] | None = None, **options: Any) -> Cell:
        """Create the cell as the families do."""
        made = self.entry.load()(*(sizes or (self.size, self.size)), fed=fed)
        name = type(made).__name__
        require(isinstance(made, Cell), f"The factory made a {name}; derive it from icy.models.cells.Cell.")
        return made  # type: ignore[no-any-return]

    def ready_cell(self, fed: bool = True) -> Cell:
        """Create the cell and change its initial weights, because biases often start from zero."""
        cell = self.make(fed=fed)
        with torch.no_grad():
            for i, p in enumerate(cell.parameters()):
                p.add_(0.1 * self.numbers(*p.shape, draw=100 + i))
        return cell

    def forms(self) -> dict[str, Cell]:
        """Create the forms that families use: with input, without input, and with only the state read."""
        state_only = self.ready_cell()
        state_only.keep_state_only()
        forms = self.ready_cell(), self.ready_cell(fed=False), state_only
        return dict(zip(("with input", "without input", "with only its state read"), forms, strict=True))

    def numbers(self, *shape: int, draw: int = 0) -> Tensor:
        """Draw normal random numbers."""
        return torch.from_numpy(stream(self.seed, "testing", "cell", draw).normal(size=shape)).float()

    @torch.no_grad()
    def draw_inputs(self, cell: Cell, steps: int = STEPS) -> Tensors:
        """Draw an initial output, [batch, E], and inputs, [batch, step, E]; then gates, and a state after all steps."""
        like = next(cell.parameters())
        start, inputs = self.numbers(BATCH, self.size, draw=1).to(like), self.numbers(BATCH, steps, self.size).to(like)
        gates = cell.project(inputs[:, 0]) if cell.fed else cell.unfed().repeat(BATCH, 1)
        return start, inputs, gates, *run_cell(cell, start, inputs)[-1]

    def extreme_inputs(self, cell: Cell) -> Tensors:
        """Draw a long sequence of inputs."""
        return self.draw_inputs(cell, LONG)

    def outputs(self, cell: Cell, given: Tensors) -> Tensors:
        """Return the members of all states, from the last state to the first, and of a step with the given gates."""
        start, inputs, gates, *state = given
        states = [*run_cell(cell, start, inputs)[::-1], cell.step(gates, tuple(state))]
        return tuple(member for state in states for member in state)

    def trainable(self, seed: int) -> nn.Module:
        """Create a net of two cells: one with input, one without."""
        return _Net(self, seed)

    def batches(self, seeds: Sequence[int], update: int) -> tuple[Tensor, Tensor]:
        """Return inputs and targets for each replicate, [replicate, batch, E] and [replicate, batch, 2 E]."""
        inputs = [self.numbers(BATCH, self.size, draw=seed) for seed in seeds]
        targets = [self.numbers(BATCH, 2 * self.size, draw=1000 + seed) for seed in seeds]
        return torch.stack(inputs), torch.stack(targets)

    def check_project_is_weigh_and_a_constant(self) -> None:
        """`project` is `weigh`, which is linear, plus a constant. Families fold an embedding into it."""
        cell, (x, y) = self.ready_cell(), self.numbers(2, BATCH, self.size)
        parts = cell.weigh(x) * 2 - cell.weigh(y)
        require_close(cell.weigh(2 * x - y), parts, "`weigh` of a sum, and the sum of `weigh`; it is not linear")
        constant = cell.project(torch.zeros_like(x))
        require_close(cell.project(x), cell.weigh(x) + constant, "`project`, and `weigh` plus `project` of zero")

    def check_unfed_is_a_zero_input(self) -> None:
        """`unfed` gives the gates of a zero input."""
        cell = self.ready_cell()
        state = self.draw_inputs(cell)[3:]
        zero = cell.step(cell.project(torch.zeros_like(state[0])), state)
        for one, other in zip(cell.step(cell.unfed(), state), zero, strict=True):
            require_close(one, other, "A step with `unfed` and one with a zero input")

    def check_inert_parameters(self) -> None:
        """`inert` counts the parameters that a cell without input, or with only its state read, leaves out."""
        whole = sum(p.numel() for p in self.make().parameters())
        for form, cell in self.forms().items():
            there = sum(p.numel() for p in cell.parameters())
            require(
                there + cell.inert == whole,
                f"A cell {form} has {there} parameters and inert = {cell.inert}; their sum must be the {whole} of "
                "the whole cell.",
            )

    def check_scan_equals_steps(self) -> None:
        """If the cell has `scan`, it equals `step`, step by step."""
        if not self.make().scans:
            raise NotApplicable("the cell has `scans = False`")
        symbols, embedding = self.numbers(STEPS, BATCH, 3, draw=3), self.numbers(3, self.size, draw=4)
        x = symbols @ embedding
        for form, cell in self.forms().items():
            states = run_cell(cell, self.draw_inputs(cell)[0], x.transpose(0, 1))
            outputs = torch.stack([state[0] for state in states[1:]])
            expected = outputs[-1] if "state" in form else outputs
            given = [(x, None), (symbols, cell.weigh(embedding))] if cell.fed else [(None, None)]
            for some, matrix in given:
                found = cell.scan(some, matrix, states[0], STEPS)
                require_close(found, expected, f"Outputs of `scan` and of `step` ({form})")

    def check_every_family(self) -> str:
        """Every family of icy that takes a cell works with this cell."""
        families = {}
        for entry in registry.entries(*SIDES):
            if entry.cell is not None and not entry.choices and entry.origin.startswith("icy."):
                name = f"{entry.name.partition(':')[0]}:{self.entry.name}"
                families[entry.kind, name] = replace(entry, name=name, cell=self.entry)
        for entry in families.values():
            try:
                scores = ModelCase(entry, seed=self.seed, space="2x3", hidden_size=self.size).checked_scores(BATCH)
                require(scores.isfinite().all(), "Some scores are infinite or NaN.")
            except Exception as error:
                error.add_note(f"The family is {entry.qualified}.")
                raise
        return f"tried in {len(families)} families"


class _Net(nn.Module):
    """Two cells with the same initial weights, one with input and one without: [*stack, batch, E] to [..., 2 E]."""

    broadcasts = True

    def __init__(self, case: CellCase, seed: int) -> None:
        super().__init__()
        self.fed, self.unfed = case.make(seed), case.make(seed, fed=False)

    def forward(self, x: Tensor) -> Tensor:
        fed, unfed = self.fed.start(x), self.unfed.start(x)
        for _ in range(STEPS):
            fed = self.fed.step(self.fed.project(x), fed)
            unfed = self.unfed.step(self.unfed.unfed(), unfed)
        return torch.cat([fed[0], unfed[0]], -1)


def run_cell(cell: Cell, start: Tensor, inputs: Tensor) -> list[State]:
    """Run a cell, and return its first state and the state after every step.

    Args:
        cell: the cell; a cell without input ignores the inputs.
        start: initial output, [batch, E].
        inputs: one per step, [batch, step, E].
    """
    states = [cell.start(start)]
    for x in inputs.unbind(1):
        states.append(cell.step(cell.project(x) if cell.fed else cell.unfed(), states[-1]))
    return states
