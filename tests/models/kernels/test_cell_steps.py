"""Fused steps of cells: their hand-written gradients."""

from __future__ import annotations

import pytest
import torch

from icy.models.kernels import cell_steps as fused
from tests.models.cell_helpers import assert_close, check_gradients, double


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
