"""Checks of recurrent cells. The first line of each check says what it proves."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from joblib.externals.loky.backend.reduction import dumps
from torch import Tensor, nn

from icy.core.errors import IcyError
from icy.core.logs import log_level
from icy.core.registry import SIDES, Entry, registry
from icy.core.streams import stream, stream_key
from icy.languages.meanings import MeaningSpace
from icy.models.cells import Cell, State
from icy.training.learners import Learner, make_learner
from icy.training.tasks import Task

from .cases import (
    CPU,
    SETTINGS,
    Check,
    CheckFailure,
    MadeTensors,
    ModelCase,
    NotApplicable,
    check_of,
    require,
    require_close,
    require_gradients,
    require_registered,
    require_same_training,
    same_random_state,
)
from .other_loops import OtherLoopCase, other_loop_checks

BATCH, STEPS = 5, 4
LONG = 20  # steps, as in the papers' messages
SEEDS = (11, 12, 13)  # of the three replicates that are trained together

CELL_CHECKS: dict[str, Check] = {}


@dataclass(frozen=True)
class CellCase:
    """A recurrent cell under test, and the sizes it is tested at.

    Attributes:
        entry: the cell's registry entry.
        size: size of the input and of the state, E.
        seed: seed of weights and inputs.
        registered: whether the registry knows the cell.
    """

    entry: Entry
    size: int = 8
    seed: int = 0
    registered: bool = True

    def make(self, fed: bool = True, seed: int | None = None, sizes: tuple[int, int] | None = None) -> Cell:
        """Make the cell as the families do, with the initial weights of a seed."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(stream_key(self.seed if seed is None else seed, "testing", "cell"))
            made: Cell = self.entry.load()(*(sizes or (self.size, self.size)), fed=fed)
        return made

    def ready(self, fed: bool = True, state_only: bool = False) -> Cell:
        """Make the cell with weights away from their first values, since biases often start from zero."""
        cell = self.make(fed)
        if state_only:
            cell.keep_state_only()
        with torch.no_grad():
            for i, p in enumerate(cell.parameters()):
                p.add_(0.1 * self.numbers(*p.shape, draw=100 + i))
        return cell

    def forms(self) -> dict[str, Cell]:
        """Make the forms that families use: with input, without, and told that only the state is read."""
        return {
            "with input": self.ready(),
            "without input": self.ready(fed=False),
            "told that only its state is read": self.ready(state_only=True),
        }

    def numbers(self, *shape: int, draw: int = 0) -> Tensor:
        """Draw normal random numbers."""
        return torch.from_numpy(stream(self.seed, "testing", "cell", draw).normal(size=shape)).float()

    def inputs(self, steps: int = STEPS, batch: int = BATCH) -> Tensor:
        """Draw inputs [step, batch, E]."""
        return self.numbers(steps, batch, self.size)

    def start(self, batch: int = BATCH) -> Tensor:
        """Draw the output that states start from, [batch, E]."""
        return self.numbers(batch, self.size, draw=1)

    def run(self, cell: Cell, steps: int = STEPS) -> list[State]:
        """Run a cell on the usual inputs, and return its first state and that after every step."""
        return run_cell(cell, self.start(), self.inputs(steps))


def run_cell(cell: Cell, start: Tensor, inputs: Tensor) -> list[State]:
    """Run a cell, and return its first state and that after every step.

    Args:
        cell: the cell; one without input reads none of the inputs.
        start: output to start from, [batch, E].
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


@check_of(CELL_CHECKS)
def check_made_by_name(case: CellCase) -> None:
    """The registry knows the cell by its name and its aliases, and its factory makes an icy.models.cells.Cell."""
    made = case.make()
    require(isinstance(made, Cell), f"The factory makes a {type(made).__name__}; derive it from icy.models.cells.Cell.")
    require_registered(case.entry, case.registered)


@check_of(CELL_CHECKS)
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


@check_of(CELL_CHECKS)
def check_states(case: CellCase) -> None:
    """`start` and `step` give a tuple of tensors [batch, E], the first of which is the output; `start` keeps that."""
    for form, cell in case.forms().items():
        states = case.run(cell)
        require(torch.equal(states[0][0], case.start()), f"`start` does not hold the output it is given ({form}).")
        _require_states(states, (BATCH, case.size), form)


@check_of(CELL_CHECKS)
def check_project_is_weigh_and_a_constant(case: CellCase) -> None:
    """`project` is `weigh`, which is linear, plus a constant: families fold an embedding into it."""
    cell, x, y = case.ready(), case.inputs(1)[0], case.inputs(2)[1]
    parts = cell.weigh(x) * 2 - cell.weigh(y)
    require_close(cell.weigh(2 * x - y), parts, "`weigh` of a sum, and the sum of what `weigh` gives; it is not linear")
    constant = cell.project(torch.zeros(1, case.size, dtype=torch.float32, device="cpu"))
    require_close(cell.project(x), cell.weigh(x) + constant, "`project`, and `weigh` plus `project` of zero")


@check_of(CELL_CHECKS)
def check_unfed_is_a_zero_input(case: CellCase) -> None:
    """`unfed` gives the gates of a zero input."""
    cell = case.ready()
    state = case.run(cell)[-1]
    zero = cell.step(cell.project(torch.zeros(BATCH, case.size, dtype=torch.float32, device="cpu")), state)
    require_same_states([cell.step(cell.unfed(), state)], [zero], "A step with `unfed` and one with a zero input")


@check_of(CELL_CHECKS)
def check_inert_parameters(case: CellCase) -> None:
    """`inert` counts the parameters that are left out where there is no input, or only the state is read."""
    whole = sum(p.numel() for p in case.make().parameters())
    for form, cell in case.forms().items():
        there = sum(p.numel() for p in cell.parameters())
        require(
            there + cell.inert == whole,
            f"A cell {form} has {there} parameters and says inert = {cell.inert}; together they must be the {whole} of "
            "the whole cell.",
        )


@check_of(CELL_CHECKS)
def check_finite_over_many_steps(case: CellCase) -> None:
    """The state stays finite over a long message."""
    for form, cell in case.forms().items():
        for step, state in enumerate(case.run(cell, LONG)):
            require(all(m.isfinite().all() for m in state), f"The state is not finite after {step} steps ({form}).")


@check_of(CELL_CHECKS)
def check_same_seed_same_weights(case: CellCase) -> None:
    """A seed gives the same weights every time: all are drawn from torch's generator."""
    first = case.make().state_dict()
    for name, value in case.make().state_dict().items():
        require(torch.equal(first[name], value), f"'{name}' differs between two cells of one seed.")


@check_of(CELL_CHECKS)
def check_different_seeds_differ(case: CellCase) -> None:
    """Another seed gives other weights."""
    pairs = zip(case.make(seed=1).parameters(), case.make(seed=2).parameters(), strict=True)
    require(any(not torch.equal(a, b) for a, b in pairs), "Two seeds give the same weights.")


@check_of(CELL_CHECKS)
def check_random_state_untouched(case: CellCase) -> None:
    """Making a cell draws from torch only, and running it draws nothing."""
    with same_random_state("Making the cell"):
        cell = case.make()
    with same_random_state("Running the cell"):
        case.run(cell)


@check_of(CELL_CHECKS)
def check_deterministic(case: CellCase) -> None:
    """The same inputs give the same states twice: the cell keeps nothing but its weights between calls."""
    for form, cell in case.forms().items():
        first, again = case.run(cell), case.run(cell)
        same = all(torch.equal(a, b) for s, t in zip(first, again, strict=True) for a, b in zip(s, t, strict=True))
        require(same, f"The same inputs give other states the second time ({form}); keep what lasts in the state.")


@check_of(CELL_CHECKS)
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


@check_of(CELL_CHECKS)
def check_examples_independent(case: CellCase) -> None:
    """The states of an example do not depend on the others in its batch."""
    for form, cell in case.forms().items():
        together = case.run(cell)
        for i in range(BATCH):
            alone = run_cell(cell, case.start()[i : i + 1], case.inputs()[:, i : i + 1])
            mine = [tuple(member[i : i + 1] for member in state) for state in together]
            require_same_states(alone, mine, f"States of an example alone and in a batch ({form})")


@check_of(CELL_CHECKS)
def check_gradients_reach_parameters(case: CellCase) -> None:
    """In every form that families use, each parameter gets a gradient that is finite and not all zero."""
    for form, cell in case.forms().items():
        (case.run(cell)[-1][0] * case.numbers(BATCH, case.size, draw=2)).sum().backward()
        require_gradients(cell, f" in a cell {form}")


@check_of(CELL_CHECKS)
def check_reads_input_and_state(case: CellCase) -> None:
    """The output depends on every input so far, and on the state that the run started from."""
    for form, cell in case.forms().items():
        start, inputs = case.start().requires_grad_(), case.inputs().requires_grad_()
        output = run_cell(cell, start, inputs)[-1][0].sum()
        wanted = [start, inputs] if cell.fed else [start]
        gradients = torch.autograd.grad(output, wanted, allow_unused=True)
        for what, gradient in zip(("the first state", "some of the inputs"), gradients, strict=False):
            reached = gradient is not None and gradient.flatten(1).any(1).all()
            require(reached, f"After {STEPS} steps the output does not depend on {what} ({form}).")


@check_of(CELL_CHECKS)
def check_scan_equals_steps(case: CellCase) -> None:
    """`scan`, where the cell has it, gives what `step` gives, step by step."""
    if not case.make().scans:
        raise NotApplicable("the cell says `scans = False`")
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


@check_of(CELL_CHECKS)
def check_float64(case: CellCase) -> None:
    """`cell.double()` computes in double precision, to about the same output."""
    for fed in (True, False):
        cell = case.ready(fed)
        single, double = case.run(cell), run_cell(cell.double(), case.start().double(), case.inputs().double())
        kinds = {member.dtype for state in double for member in state}
        require(kinds == {torch.float64}, f"After cell.double() the state holds {' and '.join(map(str, kinds))}.")
        require_same_states(double, single, "States in double and in single precision", 1e-4)


@check_of(CELL_CHECKS)
def check_moves_to_device(case: CellCase) -> str:
    """The cell makes no tensor on the CPU when it runs elsewhere; it runs on a GPU where there is one."""
    for fed in (True, False):
        cell = case.ready(fed)
        with MadeTensors() as made:
            expected = case.run(cell)
        require(
            not made.by,
            f"The cell calls {' and '.join(made.by)} when it runs, without a device; use `new_zeros` or `device=`.",
        )
        if torch.cuda.is_available():
            found = run_cell(case.ready(fed).cuda(), case.start().cuda(), case.inputs().cuda())
            require_same_states(found, expected, "States on a GPU and on the CPU", 1e-3)
    return f"tried on cpu{' and cuda' if torch.cuda.is_available() else ''}"


@check_of(CELL_CHECKS)
def check_pickles(case: CellCase) -> None:
    """A copy pickled as for a worker process gives the same states."""
    for form, cell in case.forms().items():
        copied: Cell = pickle.loads(dumps(cell))
        require_same_states(case.run(copied), case.run(cell), f"States of a pickled copy and of the cell ({form})")


@check_of(CELL_CHECKS)
def check_other_sizes(case: CellCase) -> None:
    """Other sizes work; an input of another size than the state works, or is refused with an IcyError."""
    for inputs, hidden in ((5, 5), (13, 13), (3, 5)):
        for fed in (True, False):
            try:
                cell = case.make(fed, sizes=(inputs, hidden))
            except IcyError:
                require(fed and inputs != hidden, f"Sizes ({inputs}, {hidden}) are refused with fed={fed}.")
                continue
            state = run_cell(cell, case.numbers(BATCH, hidden), case.numbers(STEPS, BATCH, inputs))[-1]
            _require_shape(state[0], (BATCH, hidden), f"The output with sizes ({inputs}, {hidden}) and fed={fed}")


@check_of(CELL_CHECKS)
def check_every_family(case: CellCase) -> str:
    """Every family of icy that takes a cell works with this one."""
    families = _families(case.entry)
    for entry in families:
        representation = entry.representations[0] if entry.representations else "soft"
        task = Task(entry, MeaningSpace(2, 3), word_length=2, hidden_size=case.size, representation=representation)
        try:
            scores = ModelCase(task, case.seed).check_shape(BATCH)
            require(scores.isfinite().all(), "Some scores are infinite or NaN.")
        except Exception as error:
            sentence = str(error) if isinstance(error, CheckFailure | IcyError) else f"{type(error).__name__}: {error}"
            raise CheckFailure(f"In {entry.qualified}: {sentence}") from error
    return f"tried in {len(families)} families"


@check_of(CELL_CHECKS)
def check_stacked_equals_separate(case: CellCase) -> str:
    """Three replicates trained as one program equal the same three trained alone, as plain modules."""
    together = _learner(case, SEEDS)
    before = together.scores(_batches(case, SEEDS))
    _train(case, together, SEEDS)
    stacked = together.scores(_batches(case, SEEDS))
    for i, seed in enumerate(SEEDS):
        alone = _learner(case, [seed], "loop")
        _train(case, alone, [seed])
        found = alone.scores(_batches(case, [seed]))
        require_same_training(stacked[i : i + 1], found, before[i : i + 1], f"Replicate {i} in a stack and alone")
    return f"trains as: {together.engine}"


class _Net(nn.Module):
    """A cell with input and one without, started from the same numbers: [*stack, batch, E] to [..., 2 E]."""

    broadcasts = True

    def __init__(self, case: CellCase, seed: int) -> None:
        super().__init__()
        self.fed, self.unfed = case.make(seed=seed), case.make(False, seed=seed)

    def forward(self, x: Tensor) -> Tensor:
        fed, unfed = self.fed.start(x), self.unfed.start(x)
        for _ in range(STEPS):
            fed = self.fed.step(self.fed.project(x), fed)
            unfed = self.unfed.step(self.unfed.unfed(), unfed)
        return torch.cat([fed[0], unfed[0]], -1)


def _learner(case: CellCase, seeds: Sequence[int], engine: str = "auto") -> Learner:
    def loss(outputs: Tensor, targets: Tensor, noise: object) -> Tensor:
        return (outputs - targets).square().flatten(1).mean(1)

    with log_level(logging.ERROR, "icy.training"):
        nets = [_Net(case, seed) for seed in seeds]
        return make_learner(nets, seeds, loss, SETTINGS, CPU, _batches(case, seeds), engine)


def _batches(case: CellCase, seeds: Sequence[int]) -> Tensor:
    """Return a batch for each replicate, [replicate, batch, E]."""
    return torch.stack([case.numbers(BATCH, case.size, draw=seed) for seed in seeds])


def _train(case: CellCase, learner: Learner, seeds: Sequence[int], updates: int = 3) -> None:
    targets = torch.stack([case.numbers(BATCH, 2 * case.size, draw=1000 + seed) for seed in seeds])
    keys = torch.tensor([stream_key(seed, "testing", "noise") for seed in seeds], dtype=torch.int64, device="cpu")
    for _ in range(updates):
        learner.update(_batches(case, seeds), targets, keys)


def _families(cell: Entry) -> list[Entry]:
    """Return every family of icy that takes a cell, with this one."""
    found = {}
    for entry in registry.entries(*SIDES):
        if entry.cell is not None and entry.origin.startswith("icy."):
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
            f"{name} gives a state of {len(state)} tensors, and `start` one of {len(states[0])} ({what}).",
        )
        for i, member in enumerate(state):
            _require_shape(member, shape, f"Tensor {i} of the state that {name} gives ({what})")


def _in_another_loop(case: CellCase) -> OtherLoopCase:
    return OtherLoopCase(lambda seed: _Net(case, case.seed + seed), case.start(), (2 * case.size,))


CELL_CHECKS |= other_loop_checks(_in_another_loop)
