"""Addressing of the DNC equals values computed by hand from the equations of Graves et al. 2016."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.testing import assert_close

from icy.s2b.agents.cores.dnc import DNC, allocation, content, link_after, usage_after


def row(*numbers: float) -> Tensor:
    return torch.tensor([numbers], dtype=torch.float64)


def test_slots_are_allocated_in_order_of_usage() -> None:
    # slot 1 is free to 0.8; slot 3 gets 0.75 of the remaining 0.2; slot 0 gets half of the rest
    assert_close(allocation(row(0.5, 0.2, 1.0, 0.25)), row(0.025, 0.8, 0.0, 0.15), atol=1e-5, rtol=0)


def test_unused_slots_are_allocated_in_order_despite_rounding_errors() -> None:
    assert allocation(row(1e-9, 0.0, 2e-9))[0].argmax() == 0


def test_writing_raises_usage_and_a_free_gate_lowers_it() -> None:
    found = usage_after(row(0.5, 0.0), row(0.2, 1.0), row(1.0, 0.0)[None], row(0.5))
    assert_close(found, row(0.3, 1.0))  # (0.5 + 0.2 - 0.1) * (1 - 0.5), and 1


def test_links_follow_the_order_of_writing() -> None:
    link, precedence = torch.zeros(1, 3, 3, dtype=torch.float64), row(0, 0, 0)
    for writing in (row(1, 0, 0), row(0, 1, 0), row(0, 0, 1)):
        link = link_after(link, precedence, writing)
        precedence = (1 - writing.sum()) * precedence + writing
    assert link[0].tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    again = link_after(link, precedence, row(0, 1, 0))  # writing to slot 1 again removes its old links
    assert again[0].tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    partly = link_after(link, row(0, 0, 0.8), row(0.5, 0.25, 0))
    expected = [[0, 0, 0.4], [0.25, 0, 0.2], [0, 0.75, 0]]
    assert_close(partly[0], torch.tensor(expected, dtype=torch.float64))


def test_content_weights_depend_on_cosine_and_strength() -> None:
    memory = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]], dtype=torch.float64)
    found = content(memory, row(2.0, 0.0)[None], row(0.0))
    sharp = 1 + math.log(2)  # 1 + log(1 + e^0)
    assert_close(found, row(math.exp(sharp), 1.0)[None] / (math.exp(sharp) + 1))


def test_open_gates_write_slot_after_slot() -> None:
    core = DNC(4, controller=3, slots=5, slot=2, reads=1).double()
    assert core.widths == [2, 1, 2, 1, 2, 2, 1, 1, 1, 3]
    with torch.no_grad():
        core.interface.weight.zero_()
        core.interface.bias.copy_(torch.tensor([0, 0, 0, 0, 0, 0, 0, 0, 7, -3, -60, 60, 60, 0, 0, 0]))
        _, state = core.unroll(torch.randn(3, 1, 4).double(), core.start(1))
    memory, usage, precedence, link, writing, _ = state[-6:]
    assert_close(memory[0], torch.tensor([[7, -3]] * 3 + [[0, 0]] * 2).double(), atol=1e-4, rtol=0)
    assert_close(
        usage[0], torch.tensor([1, 1, 0, 0, 0]).double(), atol=1e-4, rtol=0
    )  # the last write counts from the next step
    assert_close(writing, row(0, 0, 1, 0, 0), atol=1e-4, rtol=0)
    assert_close(precedence, writing)
    expected = torch.zeros(5, 5, dtype=torch.float64)
    expected[1, 0] = expected[2, 1] = 1
    assert_close(link[0], expected, atol=1e-4, rtol=0)
