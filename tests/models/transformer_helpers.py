"""The library's pre-norm layers with the weights of icy's."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from tests.models.helpers import E, L


def shaken(model: nn.Module) -> None:
    """No parameter stays at zero or one, so that each is seen to do its work."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))


def position_waves() -> Tensor:
    waves = torch.empty(L, E).double()
    for t in range(L):
        for i in range(0, E, 2):
            waves[t, i] = math.sin(t / 10000 ** (i / E))
            waves[t, i + 1] = math.cos(t / 10000 ** (i / E))
    return waves


def assert_same(found: Tensor, expected: Tensor, model: nn.Module) -> None:
    """Equal scores, and equal gradients of every parameter for some loss of them."""
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(3), dtype=found.dtype)
    mine = torch.autograd.grad((weight * found).sum(), list(model.parameters()), retain_graph=True)
    plain = torch.autograd.grad((weight * expected).sum(), list(model.parameters()))
    for a, b in zip(mine, plain, strict=True):
        assert b.any()
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-7)


def plain_pre_norm(layers: Any, x: Tensor, causal: bool) -> Tensor:
    """nn.TransformerEncoder with the weights of ours."""
    length, heads = x.shape[1], layers[0].attention.heads
    layer = nn.TransformerEncoderLayer(E, heads, 4 * E, 0, "gelu", batch_first=True, norm_first=True).double()
    encoder = nn.TransformerEncoder(layer, len(layers), enable_nested_tensor=False)
    state = {}
    for i, layer in enumerate(layers):
        by_head = layer.attention.project.weight.view(heads, 3, E // heads, E)
        state |= {
            f"layers.{i}.self_attn.in_proj_weight": by_head.transpose(0, 1).reshape(3 * E, E),
            f"layers.{i}.self_attn.in_proj_bias": torch.zeros(3 * E).double(),
        }
        for theirs, mine in {
            "self_attn.out_proj": layer.attention.out,
            "linear1": layer.widen,
            "linear2": layer.narrow,
            "norm1": layer.norm1,
            "norm2": layer.norm2,
        }.items():
            state |= {f"layers.{i}.{theirs}.weight": mine.weight, f"layers.{i}.{theirs}.bias": mine.bias}
    mask = nn.Transformer.generate_square_subsequent_mask(length, dtype=torch.float64) if causal else None
    return torch.func.functional_call(encoder, state, (x,), {"mask": mask})
