"""The convolutional perception: the same as PyTorch's layers, alone and in a stack."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from icy.core.errors import IncompatibleError
from icy.games.perception.conv4 import Conv4
from icy.training.stack import Stack

CPU = torch.device("cpu")
SHAPE = (3, 16, 20)


def plain(channels: int = 8, blocks: int = 3) -> nn.Sequential:
    """Conv4 from modules of PyTorch, with the blocks of Mu and Goodman (2021)."""
    layers: list[nn.Module] = []
    for i in range(blocks):
        layers += [nn.Conv2d(channels if i else 3, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)]
        layers += [nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * 2 * 2, 5))


def ours(like: nn.Sequential) -> Conv4:
    perception = Conv4(SHAPE, 5, channels=8, blocks=3)
    with torch.no_grad():
        for parameter, other in zip(perception.parameters(), like.parameters(), strict=True):
            parameter.copy_(other.view_as(parameter))
    return perception


def images(*count: int, seed: int = 0) -> Tensor:
    return torch.rand(*count, *SHAPE, generator=torch.Generator().manual_seed(seed))


def several(count: int = 3) -> list[nn.Module]:
    torch.manual_seed(0)
    return [Conv4(SHAPE, 5, channels=8, blocks=3) for _ in range(count)]


def test_conv4_equals_layers_of_pytorch() -> None:
    torch.manual_seed(0)
    reference = plain()
    perception = ours(reference)
    for seed in range(3):  # their statistics change the running averages
        seen, expected = perception(images(6, seed=seed)), reference(images(6, seed=seed))
        torch.testing.assert_close(seen, expected)
    seen.square().sum().backward()
    expected.square().sum().backward()
    for parameter, other in zip(perception.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, other.grad)
    torch.testing.assert_close(perception.eval()(images(1)), reference.eval()(images(1)))


def test_published_sizes() -> None:
    assert Conv4((3, 64, 64), 60).out.weight.shape == (60, 1024)
    assert Conv4((3, 32, 32), 60).out.weight.shape == (60, 256)


def trained(stack: Stack, places: list[int], engine: str) -> tuple[Tensor, Tensor]:
    """The vectors of the last of three batches, and the final running means of the last block."""
    keys = torch.zeros(len(places), dtype=torch.long)
    for seed in range(3):
        found = stack.forward([images(3, 6, seed=seed)[places]], engine, keys)
    found.square().sum().backward()
    return found, torch.stack([stack.state(i)["blocks.2.norm.mean"] for i in range(len(places))])


def test_a_stack_equals_single_models_with_running_averages() -> None:
    models = several()
    together, means = trained(Stack(copy.deepcopy(models), CPU, [0, 1, 2]), [0, 1, 2], "broadcast")
    by_loop, same_means = trained(Stack(copy.deepcopy(models), CPU, [0, 1, 2]), [0, 1, 2], "loop")
    torch.testing.assert_close(by_loop, together)
    torch.testing.assert_close(same_means, means)
    for i, model in enumerate(models):
        for seed in range(3):
            found = model(images(3, 6, seed=seed)[i])
        torch.testing.assert_close(together[i], found)
        torch.testing.assert_close(means[i], model.get_buffer("blocks.2.norm.mean"))


def test_a_replicate_does_not_depend_on_its_stack() -> None:
    models = several()
    stack = Stack(copy.deepcopy(models), CPU, [0, 1, 2])
    together, means = trained(stack, [0, 1, 2], "broadcast")
    for i, model in enumerate(models):
        alone = Stack([copy.deepcopy(model)] * 2, CPU, [i] * 2)  # of two: stacks of one use other matrix products
        found, mean = trained(alone, [i, i], "broadcast")
        assert torch.equal(together[i], found[0])
        assert torch.equal(means[i], mean[0])
        for name, gradients in stack.gradients.items():
            assert torch.equal(gradients[i], alone.gradients[name][0]), name
    assert (means != 0).all()


def test_evaluation_uses_the_running_averages_of_remaining_replicates() -> None:
    models = several()
    stack = Stack(copy.deepcopy(models), CPU, [0, 1, 2])
    trained(stack, [0, 1, 2], "broadcast")
    objects = images(3, 4, seed=9)
    whole = stack.forward([objects], "broadcast")
    assert torch.equal(stack.forward([objects[[2, 1]]], "broadcast", which=[2, 1]), whole[[2, 1]])
    before = stack.state(2)
    stack.keep([2, 0, 2])
    assert torch.equal(stack.forward([objects[[2, 0, 2]]], "broadcast"), whole[[2, 0, 2]])
    assert all(torch.equal(value, before[name]) for name, value in stack.state(0).items())
    stack.forward([objects], "broadcast", torch.zeros(3, dtype=torch.long))  # each with its own averages
    assert not torch.equal(stack.state(0)["blocks.0.norm.mean"], stack.state(2)["blocks.0.norm.mean"])


def test_a_state_can_be_loaded_again() -> None:
    stack, other = (Stack(several(), CPU, [0, 1, 2]) for _ in range(2))
    trained(stack, [0, 1, 2], "broadcast")
    for place in range(3):
        other.load(place, stack.state(place))
    objects = images(3, 4, seed=9)
    assert torch.equal(other.forward([objects], "broadcast"), stack.forward([objects], "broadcast"))


@pytest.mark.parametrize("shape", [(270,), (3, 8, 64), (3, 64, 8)])
def test_other_shapes_are_rejected(shape: tuple[int, ...]) -> None:
    with pytest.raises(IncompatibleError, match=r"at least 16x16 pixels.*take the perception mlp"):
        Conv4(shape, 5)
