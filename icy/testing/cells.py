"""Checks of recurrent cells. The first line of each docstring is the claim that the check tests."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from icy.core.errors import IcyError
from icy.core.registry import SIDES, Entry, registry
from icy.core.streams import stream, stream_key
from icy.languages.meanings import MeaningSpace
from icy.models.cells import Cell, State
from icy.training.tasks import Task

from . import modules
from .cases import CheckFailure, NotApplicable, check_made_by_name, named, require, require_close
from .models import ModelCase, first_representation
from .modules import TrainedCase, require_gradients
from .other_loops import OtherLoopCase, other_loop_checks

BATCH, STEPS = 5, 4
LONG = 20  # steps, the length of the papers' messages


@dataclass(frozen=True)
class CellCase(TrainedCase[Cell]):
    """A recurrent cell under test, and its sizes in the tests.

    Attributes:
        entry: the cell's registry entry.
        size: size of the input and of the state, E.
        seed: seed of weights and inputs.
        registered: whether the registry knows the cell.
    """

    noun = "cell"
    entry: Entry
    size: int = 8
    seed: int = 0
    registered: bool = True

    def make(self, seed: int | None = None, fed: bool = True, sizes: tuple[int, int] | None = None) -> Cell:
        """Create the cell as the families do, with the initial weights of a seed."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(stream_key(self.seed if seed is None else seed, "testing", "cell"))
            made: Cell = self.entry.load()(*(sizes or (self.size, self.size)), fed=fed)
        require(
            isinstance(made, Cell), f"The factory made a {type(made).__name__}; derive it from icy.models.cells.Cell."
        )
        return made

    def ready(self, fed: bool = True, state_only: bool = False) -> Cell:
        """Create the cell and change its initial weights, because biases often start from zero."""
        cell = self.make(fed=fed)
        if state_only:
            cell.keep_state_only()
        with torch.no_grad():
            for i, p in enumerate(cell.parameters()):
                p.add_(0.1 * self.numbers(*p.shape, draw=100 + i))
        return cell

    def forms(self) -> dict[str, Cell]:
        """Create the forms that families use: with input, without input, and with only the state read."""
        return {
            "with input": self.ready(),
            "without input": self.ready(fed=False),
            "with only its state read": self.ready(state_only=True),
        }

    def numbers(self, *shape: int, draw: int = 0) -> Tensor:
        """Draw normal random numbers."""
        return torch.from_numpy(stream(self.seed, "testing", "cell", draw).normal(size=shape)).float()

    def inputs(self, steps: int = STEPS, batch: int = BATCH) -> Tensor:
        """Draw inputs [step, batch, E]."""
        return self.numbers(steps, batch, self.size)

    def start(self, batch: int = BATCH) -> Tensor:
        """Draw the initial output, [batch, E]."""
        return self.numbers(batch, self.size, draw=1)

    def run(self, cell: Cell, steps: int = STEPS) -> list[State]:
        """Run a cell on the usual inputs, and return its first state and the state after every step."""
        return run_cell(cell, self.start(), self.inputs(steps))

    def draw_inputs(self, cell: Cell) -> tuple[Tensor, ...]:
        """Draw an initial output, and inputs."""
        return self.start(), self.inputs()

    @torch.no_grad()
    def outputs(self, cell: Cell, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the members of the first state and of the state after every step."""
        return tuple(member for state in run_cell(cell, *given) for member in state)

    def rows(self, given: tuple[Tensor, ...], which: Sequence[int]) -> tuple[Tensor, ...]:
        """Return the start and the inputs of some examples."""
        return given[0][list(which)], given[1][:, list(which)]

    def trainable(self, seed: int) -> nn.Module:
        """Create a net of two cells: one with input, one without."""
        return _Net(self, seed)

    def batches(self, seeds: Sequence[int], update: int) -> tuple[Tensor, Tensor]:
        """Return inputs and targets for each replicate, [replicate, batch, E] and [replicate, batch, 2 E]."""
        inputs = [self.numbers(BATCH, self.size, draw=seed) for seed in seeds]
        targets = [self.numbers(BATCH, 2 * self.size, draw=1000 + seed) for seed in seeds]
        return torch.stack(inputs), torch.stack(targets)


def run_cell(cell: Cell, start: Tensor, inputs: Tensor) -> list[State]:
    """Run a cell, and return its first state and the state after every step.

    Args:
        cell: the cell; a cell without input ignores the inputs.
        start: initial output, [batch, E].
        inputs: one per step, [step, batch, E].
    """
    states = [cell.start(start)]
    for x in inputs:
        states.append(cell.step(cell.project(x) if cell.fed else cell.unfed(), states[-1]))
    return states


def require_same_states(found: Sequence[State], expected: Sequence[State], what: str, tolerance: float = 1e-5) -> None:
    """Fail the check unless two runs have the same states."""
    for some, others in zip(found, expected, strict=True):
        for one, other in zip(some, others, strict=True):
            require_close(one, other, what, tolerance)


def check_gates(case: CellCase) -> None:
    """`project` and `weigh` give [..., batch, gates] for any leading axes, `unfed` gives [1, gates]."""
    cell, x = case.ready(), case.inputs()
    width = cell.gate_blocks * case.size
    for name, function in (("project", cell.project), ("weigh", cell.weigh)):
        found = function(x)
        _require_shape(found, (*x.shape[:-1], width), f"`{name}` of inputs [step, batch, E]")
        each = torch.stack([function(one) for one in x])
        require_close(found, each, f"`{name}` of all steps at once and of each step")
    for fed in (True, False):
        _require_shape(case.ready(fed).unfed(), (1, width), f"`unfed` with fed={fed}")


def check_states(case: CellCase) -> None:
    """`start` and `step` give a tuple of tensors [batch, E], and the first one is the output; `start` keeps it."""
    for form, cell in case.forms().items():
        states = case.run(cell)
        require(torch.equal(states[0][0], case.start()), f"`start` does not keep the output that it receives ({form}).")
        _require_states(states, (BATCH, case.size), form)


def check_project_is_weigh_and_a_constant(case: CellCase) -> None:
    """`project` is `weigh`, which is linear, plus a constant. Families fold an embedding into it."""
    cell, x, y = case.ready(), case.inputs(1)[0], case.inputs(2)[1]
    parts = cell.weigh(x) * 2 - cell.weigh(y)
    require_close(cell.weigh(2 * x - y), parts, "`weigh` of a sum, and the sum of `weigh`; it is not linear")
    constant = cell.project(torch.zeros(1, case.size, dtype=torch.float32, device="cpu"))
    require_close(cell.project(x), cell.weigh(x) + constant, "`project`, and `weigh` plus `project` of zero")


def check_unfed_is_a_zero_input(case: CellCase) -> None:
    """`unfed` gives the gates of a zero input."""
    cell = case.ready()
    state = case.run(cell)[-1]
    zero = cell.step(cell.project(torch.zeros(BATCH, case.size, dtype=torch.float32, device="cpu")), state)
    require_same_states([cell.step(cell.unfed(), state)], [zero], "A step with `unfed` and one with a zero input")


def check_inert_parameters(case: CellCase) -> None:
    """`inert` counts the parameters that a cell without input, or with only its state read, leaves out."""
    whole = sum(p.numel() for p in case.make().parameters())
    for form, cell in case.forms().items():
        there = sum(p.numel() for p in cell.parameters())
        require(
            there + cell.inert == whole,
            f"A cell {form} has {there} parameters and inert = {cell.inert}; their sum must be the {whole} of "
            "the whole cell.",
        )


def check_finite_over_many_steps(case: CellCase) -> None:
    """The state stays finite over a long message."""
    for form, cell in case.forms().items():
        for step, state in enumerate(case.run(cell, LONG)):
            require(all(m.isfinite().all() for m in state), f"The state is not finite after {step} steps ({form}).")


@torch.no_grad()
def check_inputs_unchanged(case: CellCase) -> None:
    """The cell does not write into inputs, gates or states."""
    cell, x, h = case.ready(), case.inputs(1)[0], case.start()
    gates, state = cell.project(x), case.run(cell)[-1]
    given = {"inputs": (x,), "gates": (gates,), "states": state, "outputs to start from": (h,)}
    before = copy.deepcopy(given)
    cell.project(x), cell.weigh(x), cell.start(h), cell.step(gates, state)
    for what, tensors in given.items():
        same = all(torch.equal(one, other) for one, other in zip(tensors, before[what], strict=True))
        require(same, f"The cell changed its {what} in place; work on new tensors.")


def check_gradients_reach_parameters(case: CellCase) -> None:
    """In every form that families use, each parameter gets a finite gradient that is not all zero."""
    for form, cell in case.forms().items():
        require_gradients(cell, case.run(cell)[-1][0], case.seed, f" in a cell {form}")


def check_reads_input_and_state(case: CellCase) -> None:
    """The output depends on every input so far, and on the initial state."""
    for form, cell in case.forms().items():
        start, inputs = case.start().requires_grad_(), case.inputs().requires_grad_()
        output = run_cell(cell, start, inputs)[-1][0].sum()
        wanted = [start, inputs] if cell.fed else [start]
        gradients = torch.autograd.grad(output, wanted, allow_unused=True)
        for what, gradient in zip(("the first state", "some of the inputs"), gradients, strict=False):
            reached = gradient is not None and gradient.flatten(1).any(1).all()
            require(reached, f"After {STEPS} steps the output does not depend on {what} ({form}).")


def check_scan_equals_steps(case: CellCase) -> None:
    """If the cell has `scan`, it equals `step`, step by step."""
    if not case.make().scans:
        raise NotApplicable("the cell has `scans = False`")
    symbols, embedding = case.numbers(STEPS, BATCH, 3, draw=3), case.numbers(3, case.size, draw=4)
    x = symbols @ embedding
    for form, cell in case.forms().items():
        states = run_cell(cell, case.start(), x)
        outputs = torch.stack([state[0] for state in states[1:]])
        expected = outputs[-1] if "state" in form else outputs
        given: list[tuple[Tensor | None, Tensor | None]] = [(None, None)]
        if cell.fed:
            given = [(x, None), (symbols, cell.weigh(embedding))]
        for some, matrix in given:
            found = cell.scan(some, matrix, states[0], STEPS)
            require_close(found, expected, f"Outputs of `scan` and of `step` ({form})")


def check_other_sizes(case: CellCase) -> None:
    """Other sizes work; an input with another size than the state works, or is refused with an IcyError."""
    for inputs, hidden in ((5, 5), (13, 13), (3, 5)):
        for fed in (True, False):
            try:
                cell = case.make(fed=fed, sizes=(inputs, hidden))
            except IcyError:
                require(fed and inputs != hidden, f"Sizes ({inputs}, {hidden}) are refused with fed={fed}.")
                continue
            state = run_cell(cell, case.numbers(BATCH, hidden), case.numbers(STEPS, BATCH, inputs))[-1]
            _require_shape(state[0], (BATCH, hidden), f"The output with sizes ({inputs}, {hidden}) and fed={fed}")


def check_every_family(case: CellCase) -> str:
    """Every family of icy that takes a cell works with this cell."""
    families = _families(case.entry)
    for entry in families:
        used = first_representation(entry)
        task = Task(entry, MeaningSpace(2, 3), word_length=2, hidden_size=case.size, representation=used)
        try:
            scores = ModelCase(task, case.seed).check_shape(BATCH)
            require(scores.isfinite().all(), "Some scores are infinite or NaN.")
        except Exception as error:
            sentence = str(error) if isinstance(error, CheckFailure | IcyError) else f"{type(error).__name__}: {error}"
            raise CheckFailure(f"In {entry.qualified}: {sentence}") from error
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


def _families(cell: Entry) -> list[Entry]:
    """Return every family of icy that takes a cell, with this cell."""
    found = {}
    for entry in registry.entries(*SIDES):
        if entry.cell is not None and not entry.choices and entry.origin.startswith("icy."):
            name = f"{entry.name.partition(':')[0]}:{cell.name}"
            found[entry.kind, name] = replace(entry, name=name, cell=cell)
    return list(found.values())


def _require_shape(found: Tensor, expected: tuple[int, ...], what: str) -> None:
    require(isinstance(found, Tensor), f"{what} is a {type(found).__name__}, not a tensor.")
    require(tuple(found.shape) == expected, f"{what} has shape {tuple(found.shape)}, not {expected}.")


def _require_states(states: Sequence[State], shape: tuple[int, int], what: str) -> None:
    for step, state in enumerate(states):
        name = f"`step` {step}" if step else "`start`"
        require(isinstance(state, tuple), f"{name} gives a {type(state).__name__}, not a tuple ({what}).")
        require(
            len(state) == len(states[0]),
            f"{name} gives a state of {len(state)} tensors, and `start` a state of {len(states[0])} ({what}).",
        )
        for i, member in enumerate(state):
            _require_shape(member, shape, f"Tensor {i} of the state that {name} gives ({what})")


def _in_another_loop(case: CellCase) -> OtherLoopCase:
    return OtherLoopCase(lambda seed: _Net(case, case.seed + seed), case.start(), (2 * case.size,))


CELL_CHECKS = named(
    check_made_by_name,
    check_gates,
    check_states,
    check_project_is_weigh_and_a_constant,
    check_unfed_is_a_zero_input,
    check_inert_parameters,
    check_finite_over_many_steps,
    modules.check_same_seed_same_weights,
    modules.check_different_seeds_differ,
    modules.check_random_state_untouched,
    modules.check_deterministic,
    check_inputs_unchanged,
    modules.check_examples_independent,
    check_gradients_reach_parameters,
    check_reads_input_and_state,
    check_scan_equals_steps,
    modules.check_float64,
    modules.check_moves_to_device,
    modules.check_pickles,
    check_other_sizes,
    check_every_family,
    modules.check_stacked_equals_separate,
)
CELL_CHECKS |= other_loop_checks(_in_another_loop)
