"""LSTM layers in compiled code equal PyTorch's layers, also with resets."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor

from icy.core import native
from icy.s2b.agents.cores.lstm import LSTM, PACKAGE, LSTMStack, library_for

pytestmark = pytest.mark.skipif(native.load(PACKAGE) is None, reason="compares compiled code")

STEPS, ROWS, WIDTH = 7, 5, 11


def inputs(seed: int = 0) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
    """Return inputs, the state before them, and a mask of steps that begin an episode."""
    torch.manual_seed(seed)
    state = tuple(torch.randn(ROWS, size, requires_grad=True) for size in (64, 64, 32, 32))
    return torch.randn(STEPS, ROWS, WIDTH, requires_grad=True), state, torch.rand(STEPS, ROWS) < 0.2


def results(stack: LSTMStack, resets: Tensor | None) -> list[Tensor]:
    """Return all outputs of a stack of layers, and all gradients."""
    xs, state, _ = inputs()
    ys, hs, after = stack(xs, state, resets)
    found = [ys, hs, *after]
    torch.manual_seed(1)
    loss = torch.stack([(part * torch.randn_like(part)).sum() for part in found]).sum()
    return [*found, *torch.autograd.grad(loss, [xs, *state, *stack.parameters()])]


@pytest.mark.parametrize("has_resets", [False, True])
def test_outputs_states_and_gradients_equal_those_of_pytorch(has_resets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = LSTMStack(WIDTH, (64, 32), relu=True)
    resets = inputs()[2] if has_resets else None
    assert library_for(stack.layers, torch.zeros(1, 1, WIDTH)) is not None
    compiled = results(stack, resets)
    monkeypatch.setenv(native.SETTING, native.OFF)
    assert library_for(stack.layers, torch.zeros(1, 1, WIDTH)) is None
    for mine, expected in zip(compiled, results(stack, resets), strict=True):
        torch.testing.assert_close(mine, expected)


def test_steps_give_the_same_bits_as_one_pass() -> None:
    core = LSTM(WIDTH, sizes=(64, 32))
    xs, state, resets = inputs()
    with torch.no_grad():
        together, after = core.unroll(xs, state, resets)
        each = []
        for t in range(STEPS):
            y, state = core.unroll(xs[t : t + 1], state, resets[t : t + 1])
            each.append(y)
    torch.testing.assert_close(torch.cat(each), together)  # products of the inputs may round differently
    torch.testing.assert_close(state, after)


def test_states_before_a_reset_do_not_matter_and_get_no_gradient() -> None:
    stack = LSTMStack(WIDTH, (32,))
    xs, state, _ = inputs()
    resets = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    resets[0, 2] = True
    h, c = state[2:]
    ys, _, _ = stack(xs, (h, c), resets)
    of_h, of_c = torch.autograd.grad(ys.sum(), [h, c])
    for gradient in (of_h, of_c):
        assert gradient[2].eq(0).all()
        assert gradient[[0, 1, 3, 4]].ne(0).all()
    other, _, _ = stack(xs, (torch.zeros_like(h), torch.ones_like(c)), resets)
    assert torch.equal(other[:, 2], ys[:, 2])


def test_changed_and_copied_weights_are_packed_again() -> None:
    stack = LSTMStack(WIDTH, (32,))
    xs, state, _ = inputs()
    before, _, _ = stack(xs, state[2:])
    copy = deepcopy(stack)
    with torch.no_grad():
        for weight in copy.parameters():
            weight.mul_(2)
    changed, _, _ = copy(xs, state[2:])
    assert not torch.allclose(changed, before)
    assert torch.equal(stack(xs, state[2:])[0], before)
    copy.load_state_dict(stack.state_dict())
    assert torch.equal(copy(xs, state[2:])[0], before)


def test_a_graph_can_be_differentiated_twice_in_turn() -> None:
    stack = LSTMStack(WIDTH, (32,))
    xs, state, resets = inputs()
    loss = stack(xs, state[2:], resets)[0].square().sum()
    first = torch.autograd.grad(loss, [xs, *stack.parameters()], retain_graph=True)
    again = torch.autograd.grad(loss, [xs, *stack.parameters()])
    assert all(map(torch.equal, first, again))


@pytest.mark.parametrize("turned", [False, True])
def test_inputs_and_gradients_that_are_not_contiguous_are_read_correctly(turned: bool) -> None:
    stack = LSTMStack(WIDTH, (32,))
    xs, state, resets = inputs()
    weight = torch.randn(32, ROWS, STEPS).permute(2, 1, 0)  # is the gradient of the outputs
    xs = xs.detach().transpose(0, 1).contiguous().transpose(0, 1).requires_grad_() if turned else xs
    resets = resets.mT.contiguous().mT if turned else resets
    ys, _, _ = stack(xs, state[2:], resets)
    expected = torch.autograd.grad(ys, [xs, *stack.parameters()], weight.contiguous(), retain_graph=True)
    for _ in range(5):
        found = torch.autograd.grad(ys, [xs, *stack.parameters()], weight, retain_graph=True)
        assert all(map(torch.equal, found, expected))


def test_other_inputs_run_in_pytorch() -> None:
    assert library_for(LSTMStack(WIDTH, (33,)).layers, torch.zeros(1, 1, WIDTH)) is None
    assert library_for(LSTMStack(WIDTH, (32,)).double().layers, torch.zeros(1, 1, WIDTH).double()) is None
    assert library_for(LSTMStack(WIDTH, (32,)).layers, torch.zeros(1, 1, WIDTH, device="meta")) is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert library_for(LSTMStack(WIDTH, (32,)).layers, torch.zeros(1, 1, WIDTH)) is None


@pytest.mark.parametrize("change", ["adam", "fused adam", "data", "loading"])
def test_changed_weights_are_read(change: str) -> None:
    """A fused Adam, and writes to `data`, do not change a tensor's version."""
    stack = LSTMStack(WIDTH, (32,))
    xs, state, _ = inputs()
    before, _, _ = stack(xs, state[2:])
    before.sum().backward()
    if change == "data":
        for weight in stack.parameters():
            weight.data.mul_(2)
    elif change == "loading":
        stack.load_state_dict({name: 2 * weight for name, weight in stack.state_dict().items()})
    else:
        torch.optim.Adam(stack.parameters(), 0.1, fused=change == "fused adam").step()
    again = LSTMStack(WIDTH, (32,))
    again.load_state_dict(stack.state_dict())
    with torch.no_grad():
        found, expected = stack(xs, state[2:])[0], again(xs, state[2:])[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert not torch.allclose(found, before)
