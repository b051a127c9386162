"""Banks: number of looks, separate looks for evaluations, and the images of the world."""

from __future__ import annotations

import torch
from torch import Tensor

from icy.core.noise import counter_hash
from icy.games import World, make_world
from icy.games.worlds import Bank, Shape


class Loud(World):
    """A world with looks that are not images: the value and a number computed from the key."""

    attributes = ("a",)
    values = (("a1", "a2"),)
    shape = (2,)

    def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
        return torch.cat([objects.float(), (keys % 10_007).float()[..., None] - 5000.5], -1)


def looks_of(world: World, key_bit: int, obj: tuple[int, ...] = (2, 1, 0, 1), count: int = 400) -> Tensor:
    """Return the different looks of an object under many keys."""
    keys = counter_hash(torch.tensor(3), torch.arange(count)) & ~1 | key_bit
    return world.observe(torch.tensor([obj]).expand(count, -1), keys).flatten(1).unique(dim=0)


def test_training_and_evaluations_have_different_looks() -> None:
    world = make_world("shape", canvas=16, bank=8)
    training, evaluation = looks_of(world, 0), looks_of(world, 1)
    assert (len(training), len(evaluation)) == (8, 2)
    assert not {str(one.tolist()) for one in training} & {str(one.tolist()) for one in evaluation}


def test_images_of_a_bank_equal_images_of_the_world() -> None:
    class Counted(Shape):
        """Records its looks."""

        def observe(self, objects: Tensor, keys: Tensor) -> Tensor:
            seen.append(super().observe(objects, keys))
            return seen[-1]

    seen: list[Tensor] = []
    bank = Bank(Counted(canvas=16), 1)
    found = bank.observe(torch.tensor([[0, 0, 0, 0], [4, 5, 2, 2]]), torch.tensor([2, 3]))
    every = torch.cat(seen)
    assert len(every) == 540
    assert torch.equal(found, every[[0, 539]])  # first object: look of training; last: of evaluations
    assert next(iter(bank._banks.values())).dtype == torch.uint8
    bank.observe(torch.tensor([[0, 0, 0, 0]]), torch.tensor([5]))
    assert sum(map(len, seen)) == 540  # each look was drawn once


def test_images_of_a_bank_show_their_color() -> None:
    bank = make_world("shape", canvas=16, bank=2)
    objects = torch.cartesian_prod(*(torch.arange(size) for size in bank.sizes))
    images = bank.observe(objects, torch.zeros(270, dtype=torch.long))
    brightest = images.flatten(2).amax(2)
    assert (brightest[objects[:, 1] == 1].argmax(1) == 2).all()  # blue figures are blue
    assert images.shape == (270, 3, 16, 16)


def test_looks_that_are_not_images_are_not_rounded() -> None:
    bank = Bank(Loud(), 4)
    looks = looks_of(bank, 0, (1,))
    assert len(looks) == 4
    assert (looks[:, 0] == 1).all()
    assert looks[:, 1].abs().max() > 1
