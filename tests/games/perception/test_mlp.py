"""The feed-forward perception: one hidden layer, for objects of any shape."""

from __future__ import annotations

import torch
from torch import nn
from torch.func import functional_call

from icy.core.registry import PERCEPTION, registry
from icy.games.perception.mlp import MLP


def test_registered_names() -> None:
    assert [entry.name for entry in registry.entries(PERCEPTION)] == ["conv4", "mlp"]


def test_mlp_is_two_linear_layers_with_a_relu() -> None:
    perception, objects = MLP((2, 3), 5, hidden=7), torch.rand(4, 2, 3)
    plain = nn.Sequential(nn.Flatten(), nn.Linear(6, 7), nn.ReLU(), nn.Linear(7, 5))
    plain.load_state_dict(dict(zip(plain.state_dict(), perception.state_dict().values(), strict=True)))
    torch.testing.assert_close(perception(objects), plain(objects))
    assert MLP((270,), 60).hidden.weight.shape == (60, 270)


def test_a_stack_equals_single_models() -> None:
    several, objects = [MLP((2, 3), 5) for _ in range(3)], torch.rand(3, 4, 2, 3)
    stacked = {
        n: torch.stack([dict(p.named_parameters())[n] for p in several]) for n, _ in several[0].named_parameters()
    }
    together = functional_call(several[0], stacked, objects)
    expected = [perception(seen) for perception, seen in zip(several, objects, strict=True)]
    torch.testing.assert_close(together, torch.stack(expected))
