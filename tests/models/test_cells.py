"""Recurrent cells: against PyTorch's, against the DARTS formulas written out, and stacks of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from icy.core.errors import IncompatibleError
from icy.models.cells import Cell, DGRecvCell, DGSendCell, GRUCell, LSTMCell, MinGRUCell, RNNCell, SRUCell, State
from icy.models.kernels import cell_steps as fused
from icy.models.kernels import sru_scan as scan
from icy.models.kernels.sru_scan import sru_scan

# -- random tensors, gradients and the formulas of the SRU for tests of cells ------------------------------------------


INPUTS, HIDDEN, BATCH = 3, 5, 4


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), requires_grad=True)


def gradients(loss: Tensor, *of: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, of))


def assert_close(found: Tensor, expected: Tensor, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=0)


# -- the SRU -----------------------------------------------------------------------------------------------------------


def sru_by_the_book(
    x: Tensor, weight: Tensor, v: Tensor, bias: Tensor, c: Tensor, activation: str = "identity"
) -> tuple[Tensor, Tensor]:
    """The formulas as they stand, step by step: h of every step and the last c, for x [..., step, batch, inputs].

    A fourth block of the weight is what the highway passes on; without it, it passes x on.
    """
    outputs = []
    for t in range(x.shape[-3]):
        candidate, f, r, *passed = (x[..., t, :, :] @ weight).split(c.shape[-1], -1)
        f = torch.sigmoid(f + v[..., :1, :] * c + bias[..., :1, :])
        r = torch.sigmoid(r + v[..., 1:, :] * c + bias[..., 1:, :])
        c = f * c + (1 - f) * candidate
        shown = torch.tanh(c) if activation == "tanh" else c
        outputs.append(r * shown + (1 - r) * (passed[0] if passed else x[..., t, :, :]))
    return torch.stack(outputs, -3), c


# -- the fused functions -----------------------------------------------------------------------------------------------


def check_gradients(function: Callable[..., Any], *inputs: Tensor) -> bool:
    """Against finite differences; not for an undefined gradient, which autograd never hands to these nodes."""
    found: bool = torch.autograd.gradcheck(function, inputs, check_undefined_grad=False)
    return found


def double(*shape: int, seed: int = 0) -> Tensor:
    return random(*shape, seed=seed).detach().double().requires_grad_()


LIBRARY: list[tuple[Callable[..., Cell], Callable[..., nn.Module]]] = [
    (RNNCell, nn.RNNCell),
    (GRUCell, nn.GRUCell),
    (LSTMCell, nn.LSTMCell),
]
CELLS: list[Callable[..., Cell]] = [RNNCell, GRUCell, LSTMCell, DGSendCell, DGRecvCell, MinGRUCell]


def initial_state(cell: Cell) -> State:
    """A state whose every member is random."""
    h = random(BATCH, HIDDEN, seed=1)
    return (h, random(BATCH, HIDDEN, seed=2)) if isinstance(cell, LSTMCell) else (h,)


@pytest.mark.parametrize(("mine", "theirs"), LIBRARY)
def test_cells_equal_the_librarys(mine: Callable[..., Cell], theirs: Callable[..., nn.Module]) -> None:
    cell, reference = mine(INPUTS, HIDDEN), theirs(INPUTS, HIDDEN)
    cell.load_state_dict(reference.state_dict())
    x, state = random(BATCH, INPUTS), initial_state(cell)
    found = cell.step(cell.project(x), state)
    output = reference(x, state if len(state) == 2 else state[0])
    expected = output if isinstance(output, tuple) else (output,)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b)
    weights = [random(BATCH, HIDDEN, seed=3 + i) for i in range(len(found))]
    losses = [sum((w * a).sum() for w, a in zip(weights, result, strict=True)) for result in (found, expected)]
    of_mine, of_theirs = dict(cell.named_parameters()), dict(reference.named_parameters())
    assert set(of_mine) == set(of_theirs)
    mine_at = gradients(losses[0], x, *state, *(of_mine[name] for name in of_theirs))
    theirs_at = gradients(losses[1], x, *state, *of_theirs.values())
    for a, b in zip(mine_at, theirs_at, strict=True):
        assert_close(a, b, 1e-5)


@pytest.mark.parametrize(("mine", "theirs"), LIBRARY)
def test_cells_are_initialised_as_the_librarys(mine: Callable[..., Cell], theirs: Callable[..., nn.Module]) -> None:
    bound = HIDDEN**-0.5
    for parameter in mine(50, HIDDEN).parameters():
        assert parameter.abs().max() <= bound
    found, expected = (nn.utils.parameters_to_vector(c(50, HIDDEN).parameters()).std().item() for c in (mine, theirs))
    assert found == pytest.approx(expected, rel=0.2)


def darts_by_the_book(kind: str, x: Tensor, h: Tensor, w_0: Tensor, w: list[Tensor]) -> Tensor:
    """The cells written out, from the description in the papers' program."""

    def node(previous: Tensor, product: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        c, g = product[:, :HIDDEN], product[:, HIDDEN:]
        return previous + torch.sigmoid(c) * (f(g) - previous)

    s_0 = node(h, torch.cat([x, h], 1) @ w_0, torch.tanh)
    if kind == "dgsend":
        return node(s_0, s_0 @ w[0], lambda g: g)
    s_1 = node(s_0, s_0 @ w[0], torch.tanh)
    s_2 = node(s_0, s_0 @ w[1], torch.tanh)
    s_3 = node(s_0, s_0 @ w[2], lambda g: g)
    s_4 = node(s_2, s_2 @ w[3], torch.relu)
    return (s_1 + s_2 + s_3 + s_4) / 4


@pytest.mark.parametrize(("kind", "mine", "nodes"), [("dgsend", DGSendCell, 1), ("dgrecv", DGRecvCell, 4)])
def test_darts_cells_follow_their_formulas(kind: str, mine: Callable[..., Any], nodes: int) -> None:
    cell = mine(INPUTS, HIDDEN)
    w = [getattr(cell, f"weight_{i + 1}") for i in range(nodes)]
    x, h = random(BATCH, INPUTS), random(BATCH, HIDDEN, seed=1)
    (found,) = cell.step(cell.project(x), (h,))
    expected = darts_by_the_book(kind, x, h, torch.cat([cell.weight_x, cell.weight_h]), w)
    assert_close(found, expected)
    weight = random(BATCH, HIDDEN, seed=3)
    of = (x, h, cell.weight_x, cell.weight_h, *w)
    found_at, expected_at = gradients((weight * found).sum(), *of), gradients((weight * expected).sum(), *of)
    for a, b in zip(found_at, expected_at, strict=True):
        assert_close(a, b, 1e-5)


@pytest.mark.parametrize("mine", [DGSendCell, DGRecvCell])
@pytest.mark.parametrize("fed", [True, False])
def test_darts_cells_are_xavier_uniform_as_one_matrix(mine: Callable[..., Any], fed: bool) -> None:
    cell = mine(60, 40, fed=fed)
    first = cell.weight_h if not fed else torch.cat([cell.weight_x, cell.weight_h])
    assert first.abs().max() <= (6 / (60 + 40 + 80)) ** 0.5
    assert first.abs().max() > 0.98 * (6 / (60 + 40 + 80)) ** 0.5
    assert 0.98 * (6 / 120) ** 0.5 < cell.weight_1.abs().max() <= (6 / 120) ** 0.5
    assert not [name for name, _ in cell.named_parameters() if "bias" in name]


@pytest.mark.parametrize("mine", CELLS)
def test_unfed_equals_a_zero_input(mine: Callable[..., Cell]) -> None:
    fed, unfed = mine(INPUTS, HIDDEN), mine(INPUTS, HIDDEN, fed=False)
    weights = fed.state_dict()
    left_out = {name: weights.pop(name) for name in ("weight_ih", "weight_x") if name in weights}
    unfed.load_state_dict(weights)
    state = initial_state(fed)
    by_zero = fed.step(fed.project(torch.zeros(BATCH, INPUTS)), state)
    for a, b, c in zip(unfed.step(unfed.unfed(), state), by_zero, fed.step(fed.unfed(), state), strict=True):
        assert_close(a, b)
        assert_close(c, b)
    (matrix,) = left_out.values()
    assert unfed.inert == matrix.numel()
    assert fed.inert == 0


@pytest.mark.parametrize("mine", CELLS)
def test_project_is_weigh_and_a_constant(mine: Callable[..., Cell]) -> None:
    cell, x = mine(INPUTS, HIDDEN), random(BATCH, INPUTS)
    constant = cell.project(torch.zeros(1, INPUTS))
    assert_close(cell.weigh(x) + constant, cell.project(x))
    assert cell.project(x).shape == (BATCH, cell.gate_blocks * HIDDEN)


@pytest.mark.parametrize("mine", CELLS)
def test_start_holds_h_and_zeros(mine: Callable[..., Cell]) -> None:
    h = random(BATCH, HIDDEN)
    first, *rest = mine(INPUTS, HIDDEN).start(h)
    assert torch.equal(first, h)
    assert all(not member.any() for member in rest)
    assert len(rest) == (mine is LSTMCell)


@pytest.mark.parametrize("fed", [True, False])
@pytest.mark.parametrize("mine", CELLS)
def test_a_stack_of_cells_equals_each(mine: Callable[..., Cell], fed: bool) -> None:
    cells = [mine(INPUTS, HIDDEN, fed=fed) for _ in range(3)]
    x = random(3, BATCH, INPUTS)
    states = [initial_state(cell) for cell in cells]

    def steps(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, ...]:
        for _ in range(2):
            state = cell.step(cell.project(x) if fed else cell.unfed(), state)
        return state

    class Steps(nn.Module):
        def __init__(self, cell: Cell) -> None:
            super().__init__()
            self.cell = cell

        def forward(self, x: Tensor, state: State) -> State:
            return steps(self.cell, x, state)

    stacked = {f"cell.{n}": torch.stack([dict(c.named_parameters())[n] for c in cells]) for n in cells[0].state_dict()}
    together = tuple(torch.stack(members) for members in zip(*states, strict=True))
    found = torch.func.functional_call(Steps(cells[0]), stacked, (x, together))
    for i, cell in enumerate(cells):
        for member, expected in zip(found, steps(cell, x[i], states[i]), strict=True):
            assert_close(member[i], expected)


# -- the SRU -----------------------------------------------------------------------------------------------------------


def an_sru(fed: bool = True, activation: str = "identity") -> SRUCell:
    """With biases that are not zero, as they are after some training."""
    torch.manual_seed(4)
    cell = SRUCell(HIDDEN, HIDDEN, fed=fed)
    nn.init.normal_(cell.bias)
    cell.activation = activation
    return cell


def assert_same_gradients(found: Tensor, expected: Tensor, *of: Tensor) -> None:
    assert_close(found, expected)
    weight = random(*found.shape, seed=3)
    for a, b in zip(gradients((weight * found).sum(), *of), gradients((weight * expected).sum(), *of), strict=True):
        assert_close(a, b, 1e-5)


@pytest.mark.parametrize("activation", ["identity", "tanh"])
@pytest.mark.parametrize("way", ["step", "scan"])
def test_sru_follows_its_formulas(way: str, activation: str) -> None:
    cell, steps = an_sru(activation=activation), 4
    x, c = random(steps, BATCH, HIDDEN), random(BATCH, HIDDEN, seed=1)
    expected, last = sru_by_the_book(x, cell.weight.mT, cell.state_weight, cell.bias, c, activation)
    of = (x, c, cell.weight, cell.state_weight, cell.bias)
    if way == "scan":
        assert_same_gradients(cell.scan(x, None, cell.start(c), steps), expected, *of)
        return
    outputs, state = [], cell.start(c)
    for gates in cell.project(x):
        state = cell.step(gates, state)
        outputs.append(state[0])
    both = torch.stack([*outputs, state[1]]), torch.cat([expected, last.unsqueeze(0)])
    assert_same_gradients(*both, *of)


@pytest.mark.parametrize("way", ["step", "scan"])
def test_sru_without_input_follows_its_formulas(way: str) -> None:
    cell, steps, c = an_sru(fed=False), 4, random(BATCH, HIDDEN, seed=1)
    cell.drive_unfed_net()
    zeros, no_weight = torch.zeros(steps, BATCH, HIDDEN), torch.zeros(HIDDEN, 3 * HIDDEN)
    expected, _ = sru_by_the_book(zeros, no_weight, cell.state_weight, cell.bias, c, "tanh")
    outputs, state = [], cell.start(c)
    for _ in range(steps):
        state = cell.step(cell.unfed(), state)
        outputs.append(state[0])
    found = cell.scan(None, None, cell.start(c), steps) if way == "scan" else torch.stack(outputs)
    assert_same_gradients(found, expected, c, cell.state_weight, cell.bias)


@pytest.mark.parametrize("way", ["step", "scan"])
def test_an_sru_of_which_only_the_state_is_read_keeps_its_numbers(way: str) -> None:
    cell, steps = an_sru(), 4
    x, c = random(steps, BATCH, HIDDEN), random(BATCH, HIDDEN, seed=1)
    _, expected = sru_by_the_book(x, cell.weight.mT, cell.state_weight, cell.bias, c)
    expected_at = gradients(expected.sum(), x, c)
    cell.keep_state_only()
    assert [tuple(p.shape) for p in cell.parameters()] == [(2 * HIDDEN, HIDDEN), (1, HIDDEN), (1, HIDDEN)]
    assert cell.inert == HIDDEN**2 + 2 * HIDDEN
    state = cell.start(c)
    for gates in cell.project(x):
        state = cell.step(gates, state)
    found = cell.scan(x, None, cell.start(c), steps) if way == "scan" else state[0]
    assert_close(found, expected)
    for a, b in zip(gradients(found.sum(), x, c), expected_at, strict=True):
        assert_close(a, b, 1e-5)


def test_sru_parts() -> None:
    cell, x = an_sru(), random(BATCH, HIDDEN)
    assert_close(cell.weigh(x) + cell.project(torch.zeros(1, HIDDEN)), cell.project(x))
    assert_close(cell.project(torch.zeros(1, HIDDEN)), cell.unfed())
    assert all(torch.equal(member, x) for member in cell.start(x))
    assert SRUCell(1, HIDDEN, fed=False).inert == 3 * HIDDEN
    assert sum(p.numel() for p in SRUCell(128, 128).parameters()) == 49_664  # as published
    with pytest.raises(IncompatibleError, match="needs an input size equal to the hidden size; not 3 and 5"):
        SRUCell(3, 5)


def test_sru_is_initialised_as_published() -> None:
    cell, half = SRUCell(80, 80), 0.5**0.5
    candidate, *gates = cell.weight.split(80)
    for part, bound in ((candidate, (3 / 80) ** 0.5), *((g, (3 / 80) ** 0.5 * half) for g in gates)):
        assert 0.98 * bound < part.abs().max() <= bound
    assert 0.9 * 3**0.5 * half < cell.state_weight.abs().max() <= 3**0.5 * half
    assert not cell.bias.any()


# -- the minGRU, against a plain loop ----------------------------------------------------------------------------------


def test_min_gru_is_a_plain_loop() -> None:
    cell, steps = MinGRUCell(INPUTS, HIDDEN), 3
    x, h = random(steps, BATCH, INPUTS), random(BATCH, HIDDEN, seed=1)
    found: State = (h,)
    for gates in cell.project(x):
        found = cell.step(gates, found)
    weight_z, weight_h = cell.weight_ih.split(HIDDEN)
    bias_z, bias_h = cell.bias.split(HIDDEN)
    expected = h
    for t in range(steps):
        z = torch.sigmoid(x[t] @ weight_z.T + bias_z)
        expected = (1 - z) * expected + z * (x[t] @ weight_h.T + bias_h)
    assert_close(found[0], expected)
    weight, of = random(BATCH, HIDDEN, seed=3), (x, h, cell.weight_ih, cell.bias)
    found_at, expected_at = gradients((weight * found[0]).sum(), *of), gradients((weight * expected).sum(), *of)
    for a, b in zip(found_at, expected_at, strict=True):
        assert_close(a, b)


def test_min_gru_without_input_decays_to_a_constant() -> None:
    cell, h = MinGRUCell(1, HIDDEN, fed=False), random(BATCH, HIDDEN, seed=1)
    z, towards = torch.sigmoid(cell.bias[:HIDDEN]), cell.bias[HIDDEN:]
    state: State = (h,)
    for _ in range(7):
        state = cell.step(cell.unfed(), state)
    expected = towards + (1 - z) ** 7 * (h - towards)
    assert_close(state[0], expected)
    weight = random(BATCH, HIDDEN, seed=3)
    found_at = gradients((weight * state[0]).sum(), h, cell.bias)
    expected_at = gradients((weight * expected).sum(), h, cell.bias)
    for a, b in zip(found_at, expected_at, strict=True):
        assert_close(a, b)


@pytest.mark.parametrize("fed", [True, False])
def test_min_gru_is_initialised_by_its_state(fed: bool) -> None:
    cell = MinGRUCell(60 if fed else 1, 60, fed=fed)
    assert all(0.9 * 60**-0.5 < p.abs().max() <= 60**-0.5 for p in cell.parameters())


# -- fused steps of cells: their hand-written gradients ----------------------------------------------------------------


@pytest.mark.parametrize("lead", [(), (2,)])
@pytest.mark.parametrize("rows", [3, 1])
def test_gradients_of_the_gru_step(lead: tuple[int, ...], rows: int) -> None:
    inputs = double(*lead, rows, 6), double(*lead, 3, 6, seed=1), double(*lead, 3, 2, seed=2)
    assert check_gradients(lambda *x: fused.gru_step(*x), *inputs)


@pytest.mark.parametrize("used", [slice(0, 2), slice(0, 1), slice(1, 2)])
def test_gradients_of_the_lstm_step(used: slice) -> None:
    inputs = double(2, 3, 8), double(2, 3, 2, seed=1)
    assert check_gradients(lambda *x: fused.lstm_step(*x)[used], *inputs)


@pytest.mark.parametrize("kind", ["identity", "tanh", "relu"])
def test_gradients_of_the_highway_step(kind: str) -> None:
    inputs = double(2, 3, 4), double(2, 3, 2, seed=1)
    assert check_gradients(lambda *x: fused.highway_step(*x, kind), *inputs)


def test_gradients_of_mix_and_tanh() -> None:
    inputs = double(2, 3, 4), double(2, 3, 4, seed=1), double(2, 3, 1, seed=2)
    assert check_gradients(fused.mix, *inputs)
    assert check_gradients(fused.tanh, inputs[0])


def test_tanh_to_float_precision() -> None:
    x = torch.linspace(-20, 20, 10_001)
    assert_close(fused.tanh(x), torch.tanh(x), 2.5e-7)
    assert fused.tanh(torch.tensor([torch.inf, -torch.inf])).tolist() == [1, -1]
    assert torch.isnan(fused.tanh(torch.tensor(torch.nan)))
    assert torch.equal(fused.tanh(x.double()), torch.tanh(x.double()))


# -- the SRU over a whole sequence: its numbers and its hand-written gradients -----------------------------------------


BLOCKS = {"unfed": 0, "no r": 2, "unfed, no r": 0, "passes x on": 3, "passes a product on": 4}


@pytest.mark.native
@pytest.mark.parametrize(  # slabs of one step, of four and a rest, of all
    ("in_cache", "activation"), [(1, "tanh"), (18, "identity"), (18, "tanh"), (2**14, "identity")]
)
@pytest.mark.parametrize("lead", [(), (2,)])
@pytest.mark.parametrize("case", BLOCKS)
def test_sru_scan(
    case: str, lead: tuple[int, ...], in_cache: int, activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "IN_CACHE", in_cache)
    size, batch, steps, blocks = 2, 2, 5, BLOCKS[case]
    gates, inputs = 1 if "no r" in case else 2, 4 if blocks == 4 else size
    bias, v, c = (double(*lead, rows, size, seed=i) for i, rows in enumerate((gates, gates, batch)))
    fed = [double(*lead, steps, batch, inputs, seed=3), double(*lead, inputs, blocks * size, seed=4)] if blocks else []

    def run(*of: Tensor) -> Tensor:
        x, matrix = of[3:] or (None, None)
        return sru_scan(x, matrix, of[0], of[1], of[2], steps, activation)

    assert check_gradients(run, bias, v, c, *fed)
    x, matrix = fed or (c.new_zeros(*lead, steps, batch, size), c.new_zeros(*lead, size, 3 * size))
    if gates == 1:  # r, of which nothing is read
        bias, v = bias.repeat_interleave(2, -2), v.repeat_interleave(2, -2)
        matrix = torch.cat([matrix[..., : 2 * size], matrix[..., :size]], -1)
    h, last = sru_by_the_book(x, matrix, v, bias, c, activation)
    found = run(bias[..., :gates, :], v[..., :gates, :], c, *fed)
    assert_close(found, last if gates == 1 else h, 1e-12)


def test_an_sru_scan_shares_inputs_without_a_replicate_axis() -> None:
    x, matrix = double(4, 2, 3), double(2, 3, 9, seed=1)
    bias, v, c = double(2, 2, 3, seed=2), double(2, 2, 3, seed=3), double(2, 2, 3, seed=4)
    shared = sru_scan(x, matrix, bias, v, c, 4, "identity")
    assert torch.equal(shared, sru_scan(x.expand(2, -1, -1, -1), matrix, bias, v, c, 4, "identity"))
