"""Thing: its vectors, sizes and names."""

from __future__ import annotations

import torch

from icy.games import make_world


def test_vectors_equal_the_paper() -> None:
    world = make_world("thing")
    assert (world.shape, world.sizes, world.objects) == ((270,), (10,) * 5, 100_000)
    seen = world.observe(torch.tensor([[0, 3, 9, 0, 1]]), torch.tensor([0]))[0].view(5, 54)
    assert seen.nonzero().tolist() == [[0, 0], [1, 13], [2, 29], [3, 30], [4, 41]]
    assert seen.unique().tolist() == [0.0, 1.0]


def test_every_value_has_its_own_entry_and_four_entries_are_unused() -> None:
    world = make_world("thing", attributes=2, values=3)
    objects = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    seen = world.observe(objects, torch.zeros(9, dtype=torch.long))
    assert seen.shape == (9, 20)
    assert seen.any(0).tolist() == [True] * 3 + [False] * 7 + [False] * 3 + [True] * 3 + [False] * 4
    assert (seen.sum(1) == 2).all()


def test_concepts_have_names_and_numbers() -> None:
    world = make_world("thing", attributes=2, values=3)
    assert world.concepts == ("1.1", "1.2", "1.3", "2.1", "2.2", "2.3")
    assert world.first_concepts == (0, 3)


def test_looks_do_not_depend_on_keys() -> None:
    world, objects = make_world("thing"), torch.zeros(4, 5, dtype=torch.long)
    seen = world.observe(objects, torch.arange(4))
    assert (seen == seen[:1]).all()
