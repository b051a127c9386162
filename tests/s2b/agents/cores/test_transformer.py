"""The window and the position encoding of the Transformer core."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from icy.s2b.agents.cores.transformer import Layer, TransformerCore, rotations


def test_a_layer_attends_to_its_window_only() -> None:
    torch.manual_seed(0)
    core = TransformerCore(5, capacity=2, size=8, layers=1, heads=2)
    xs = torch.randn(6, 1, 5, requires_grad=True)
    ys, _ = core.unroll(xs, core.start(1))
    (gradient,) = torch.autograd.grad(ys[4, 0, 0], xs)
    assert [bool(g.any()) for g in gradient] == [False, False, True, True, True, False]


def test_only_distances_between_steps_matter() -> None:
    torch.manual_seed(0)
    core = TransformerCore(5, capacity=2, size=8, layers=1, heads=2).double()
    xs = torch.randn(9, 1, 5).double()
    once, _ = core.unroll(xs[3:], core.start(1))
    later, _ = core.unroll(xs, core.start(1))
    assert_close(later[5:], once[2:])  # the same three steps are in the window, at other places of the episode


def test_a_layer_equals_masked_attention_over_the_episode() -> None:
    torch.manual_seed(0)
    core = TransformerCore(4, capacity=9, size=8, layers=1, heads=1).double()
    layer = core.layers[0]
    assert isinstance(layer, Layer)
    xs = torch.randn(3, 1, 4).double()
    ys, _ = core.unroll(xs, core.start(1))
    x = core.embed(xs)[:, 0]
    q, k, v = layer.project(layer.before(x)).chunk(3, -1)
    angle = rotations(torch.arange(3), 8)
    turned = [
        torch.view_as_complex(torch.stack(p.chunk(2, -1), -1)) * torch.polar(angle * 0 + 1, angle) for p in (q, k)
    ]
    scores = (turned[0] @ turned[1].conj().mT).real / 8**0.5
    weights = scores.masked_fill(torch.ones(3, 3).triu(1) > 0, -torch.inf).softmax(-1)
    x = x + layer.out(weights @ v)
    x = x + layer.neurons(layer.between(x))
    assert_close(ys[:, 0], core.last(x))
