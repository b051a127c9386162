"""The convolutional receiver, against the library's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from icy.core.representations import one_hot
from icy.models import create_receiver
from tests.models.helpers import BATCH, SPACE, A, E, K, V, assert_same


def plain_cnn(model: Any, weights: Tensor) -> Tensor:
    """The receiver by the library's convolution and pooling, channels before positions."""
    x = (weights @ model.embed.weight).mT
    for block in model.blocks:
        kernel = block.weight.permute(2, 1, 0)  # out, in, position
        x = F.relu(F.max_pool1d(F.conv1d(x, kernel, block.bias, padding=1), 2))
    return model.out(x.mT.flatten(1)).view(len(weights), A, K)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("length", "blocks"), [(1, 0), (4, 0), (5, 1), (6, 1), (9, 1), (11, 2), (20, 3)])
@pytest.mark.parametrize("soft", [False, True])
def test_cnn_is_the_librarys(length: int, blocks: int, soft: bool) -> None:
    torch.manual_seed(5)
    model: Any = create_receiver("CNN", SPACE, length, V, E)
    assert len(model.blocks) == blocks
    tokens = torch.randint(V, (BATCH, length))
    weights = torch.randn(BATCH, length, V + 1).softmax(-1) if soft else one_hot(tokens, V + 1)
    weights.requires_grad_()
    expected = plain_cnn(model, weights)
    found = model(weights if soft else tokens)
    assert_same(found, expected, model)
    if soft:
        (mine,) = torch.autograd.grad(model(weights).square().sum(), weights)
        (plain,) = torch.autograd.grad(plain_cnn(model, weights).square().sum(), weights)
        torch.testing.assert_close(mine, plain, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("length", [11, 20])
def test_a_stack_of_cnns_equals_each(length: int) -> None:
    torch.manual_seed(5)
    models: list[Any] = [create_receiver("CNN", SPACE, length, V, E) for _ in range(3)]
    message = torch.randint(V, (3, BATCH, length))
    names = [name for name, _ in models[0].named_parameters()]
    stacked = {name: torch.stack([model.get_parameter(name).detach() for model in models]) for name in names}
    for parameter in stacked.values():
        parameter.requires_grad_()
    together = torch.func.functional_call(models[0], stacked, (message,))
    together.square().sum().backward()
    for i, model in enumerate(models):
        alone = model(message[i])
        torch.testing.assert_close(together[i], alone, atol=2e-6, rtol=0)
        alone.square().sum().backward()
        for name in names:
            torch.testing.assert_close(stacked[name].grad[i], model.get_parameter(name).grad, atol=2e-5, rtol=1e-4)  # type: ignore[index]
