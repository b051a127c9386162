"""Addressing of the DCEM equals values computed by hand (s2b-facts 10.5)."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from icy.s2b.agents.cores.core import Parts
from icy.s2b.agents.cores.dcem import DCEM, Reader, nearest, weights
from icy.s2b.agents.cores.entries import view


def test_weights_are_proportional_to_the_inverse_distance() -> None:
    there = torch.tensor([True, True, False])
    assert_close(weights(torch.tensor([0.9, 0.5, 1.0]), there), torch.tensor([10 / 12, 2 / 12, 0.0]))
    assert_close(weights(torch.tensor([1.0, 0.5, 0.5]), there)[0], torch.tensor(1.0))  # exact match: all the weight
    assert weights(torch.tensor([1.0, 0.5]), torch.zeros(2, dtype=torch.bool)).tolist() == [0.0, 0.0]


def test_the_nearest_entries_are_read_and_ties_go_to_the_newest() -> None:
    cosines = torch.tensor([0.1, 0.7, 0.7000001, 0.9, 0.7, 1.0]).view(1, 1, 1, -1)
    earlier = torch.tensor([True, True, True, True, True, False]).view(1, 1, 1, -1)
    near, which, there = nearest(cosines, earlier, 3)
    assert which.flatten().tolist() == [3, 4, 2]
    assert_close(near.flatten(), torch.tensor([0.9, 0.7, 0.7]))
    assert there.all()
    _, which, there = nearest(cosines, earlier & (torch.arange(6) < 2), 3)
    assert which.flatten()[:2].tolist() == [1, 0]
    assert there.flatten().tolist() == [True, True, False]


def test_a_message_retrieves_the_stimuli_of_similar_messages() -> None:
    reader = Reader(2, 1, heads=1, nearest=2, hidden=2)
    with torch.no_grad():  # the query is the input; attention averages the values of equal scores
        for layer in (reader.query[0], reader.query[2]):
            layer.weight.copy_(torch.eye(2))
            layer.bias.zero_()
        reader.attend.weight.copy_(torch.tensor([[0.0], [0.0], [1.0]]))
        reader.attend.bias.zero_()
        reader.out.weight.fill_(1.0)
        reader.out.bias.zero_()
    keys = torch.tensor([[[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [9.0, 9.0]]])
    values = torch.tensor([[[5.0], [7.0], [100.0], [0.0]]])
    asked = torch.tensor([[[1.0, 0.0]]])
    found = reader(asked, keys, values, view(torch.tensor([3]), None, 1, 3))
    assert_close(found, torch.tensor([[[5.0]]]), atol=1e-3, rtol=0)  # the match is exact, so its weight is nearly 1
    asked = torch.tensor([[[2.0, 1.0]]])  # cosines 0.8944 and 0.8944 with the first two, as both are 26.6 degrees away
    found = reader(asked, keys, values, view(torch.tensor([3]), None, 1, 3))
    assert_close(found, torch.tensor([[[6.0]]]), atol=1e-3, rtol=0)


def test_reading_an_empty_memory_returns_zeros() -> None:
    core = DCEM(7, Parts(2, 3, 1), capacity=4)
    _, state = core.step(torch.randn(2, 7), core.start(2))
    assert not state[4].any()
    _, state = core.step(torch.randn(2, 7), state)
    assert state[4].any()


def test_entries_of_both_memories_include_the_flags() -> None:
    seen, heard = DCEM(7, Parts(2, 3, 1)).split(torch.arange(7.0))
    assert seen.tolist() == [0, 1, 5]
    assert heard.tolist() == [2, 3, 4, 5]
