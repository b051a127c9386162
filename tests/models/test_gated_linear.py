"""The minGRU, against a plain loop."""

from __future__ import annotations

import pytest
import torch

from icy.models.cells import MinGRUCell, State
from tests.models.cell_helpers import BATCH, HIDDEN, INPUTS, assert_close, gradients, random


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
