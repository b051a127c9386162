"""Transformers: against the library's modules run over the whole prefix at every step, and what a decoder must not see."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy.errors import IncompatibleError, InvalidSettingError
from icy.meanings import MeaningSpace
from icy.models import create_receiver, create_sender
from icy.models.attention import Cache, DecoderLayer, sinusoids
from icy.representations import one_hot

torch.set_num_threads(1)

A, K, L, V, E, BATCH = 3, 4, 6, 4, 16, 5
SPACE = MeaningSpace(A, K)


def sender(name: str, **options: Any) -> Any:
    torch.manual_seed(5)
    model = create_sender(name, SPACE, L, V, E, **options).double()
    shaken(model)
    return model


def shaken(model: nn.Module) -> None:
    """No parameter stays at zero or one, so that each is seen to do its work."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))


def some_meanings(count: int = BATCH) -> Tensor:
    return torch.randint(K, (count, A), generator=torch.Generator().manual_seed(1))


def some_messages(count: int = BATCH) -> Tensor:
    return torch.randint(V, (count, L), generator=torch.Generator().manual_seed(2))


# -- TransDec against the library --------------------------------------------------------------------------------------


def library_state(layer: DecoderLayer) -> dict[str, Tensor]:
    """The state of an nn.TransformerDecoderLayer with the weights of one of ours. What ours leaves out is random."""
    idle, idle_bias = torch.randn(2 * E, E).double(), torch.randn(2 * E).double()
    state = {
        "self_attn.in_proj_weight": torch.cat([layer.query.weight, layer.key.weight, layer.value.weight]),
        "self_attn.in_proj_bias": torch.cat([layer.query.bias, idle_bias[:E], layer.value.bias]),
        "multihead_attn.in_proj_weight": torch.cat([idle, layer.crossed_value.weight]),
        "multihead_attn.in_proj_bias": torch.cat([idle_bias, layer.crossed_value.bias]),
    }
    for theirs, mine in {
        "self_attn.out_proj": layer.out,
        "multihead_attn.out_proj": layer.crossed_out,
        "linear1": layer.widen,
        "linear2": layer.narrow,
        **{f"norm{i}": getattr(layer, f"norm{i}") for i in (1, 2, 3)},
    }.items():
        state |= {f"{theirs}.weight": mine.weight, f"{theirs}.bias": mine.bias}
    return state


def library_decoder(layers: int) -> nn.TransformerDecoder:
    layer = nn.TransformerDecoderLayer(E, 1, 4 * E, dropout=0, batch_first=True).double()
    return nn.TransformerDecoder(layer, layers)


def position_waves() -> Tensor:
    waves = torch.empty(L, E).double()
    for t in range(L):
        for i in range(0, E, 2):
            waves[t, i] = math.sin(t / 10000 ** (i / E))
            waves[t, i + 1] = math.cos(t / 10000 ** (i / E))
    return waves


def plain_scores(model: Any, feed_back: Any) -> Tensor:
    """The published program: the whole prefix again at every step."""
    decoder = library_decoder(len(model.layers))
    state = {f"layers.{i}.{name}": t for i, layer in enumerate(model.layers) for name, t in library_state(layer).items()}
    meanings, embed = some_meanings(), model.feedback.embed
    memory = torch.stack([model.embed.weight[a * K + meanings[:, a]] for a in range(A)]).sum(0).unsqueeze(1)
    seen, scores = one_hot(torch.full((BATCH, 1), V), V + 1, torch.float64), []
    for t in range(1, L + 1):
        x = (embed(seen) if isinstance(embed, nn.Linear) else seen @ embed.weight) + position_waves()[:t]
        mask = nn.Transformer.generate_square_subsequent_mask(t, dtype=torch.float64)
        y = torch.func.functional_call(decoder, state, (x, memory), {"tgt_mask": mask})
        scores.append(model.out(y[:, -1]))
        seen = torch.cat([seen, feed_back(scores[-1]).unsqueeze(1)], 1)
    return torch.stack(scores, 1)


def assert_same(found: Tensor, expected: Tensor, model: nn.Module) -> None:
    """Equal scores, and equal gradients of every parameter for some loss of them."""
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(3), dtype=found.dtype)
    mine = torch.autograd.grad((weight * found).sum(), list(model.parameters()), retain_graph=True)
    plain = torch.autograd.grad((weight * expected).sum(), list(model.parameters()))
    for a, b in zip(mine, plain, strict=True):
        assert b.any()
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("layers", [1, 2])
def test_transdec_is_the_librarys_decoder_over_the_whole_prefix(layers: int) -> None:
    model = sender(f"TransDecSoft{'2L' if layers == 2 else ''}")
    assert len(model.layers) == layers
    assert_same(model(some_meanings()), plain_scores(model, lambda scores: scores.softmax(-1)), model)
