"""Advantages equal values computed by hand."""

from __future__ import annotations

import pytest
import torch

from icy.s2b.agents.dealt import generalized_advantages

REWARDS = torch.tensor([[1.0, -2.0, 1.0], [1.0, 1.0, 9.0]])
VALUES = torch.tensor([[0.5, 0.25, 2.0], [1.0, 0.0, 9.0]])
THERE = torch.tensor([[True, True, True], [True, True, False]])


def test_advantages_equal_hand_computed_values() -> None:
    # errors of the first row, from the last: 1 - 2; -2 + 2 / 2 - 1/4; 1 + 1/8 - 1/2; each adds 1/4 of the later ones
    first = [0.625 - 0.25 * 1.5, -1.25 - 0.25, -1.0]
    second = [0.0 + 0.25 * 1.0, 1.0, 0.0]  # values after the end of the episode do not count
    found = generalized_advantages(REWARDS, VALUES, THERE, discount=0.5, trace=0.5)
    assert found.tolist() == [first, second]


def test_without_discount_the_advantage_is_reward_minus_value() -> None:
    assert torch.equal(generalized_advantages(REWARDS, VALUES, THERE, 0.0, 0.9), (REWARDS - VALUES) * THERE)


def test_with_a_full_trace_and_zero_values_the_advantage_is_the_return() -> None:
    found = generalized_advantages(REWARDS, torch.zeros_like(VALUES), THERE, discount=0.9)
    assert found.tolist() == [
        pytest.approx([1 - 1.8 + 0.81, -2 + 0.9, 1.0]), pytest.approx([1.9, 1.0, 0.0])
    ]  # fmt: skip
