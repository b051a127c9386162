"""Feed-forward models of both sides, against their formulas."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from icy.core.representations import one_hot
from tests.models.helpers import BATCH, A, K, L, V, assert_same, make, some_meanings, some_messages


def test_senders_are_their_formulas() -> None:
    meanings, fc1, fc2 = some_meanings(), make("sender", "FC1L"), make("sender", "FC2L")
    flat = F.one_hot(meanings, K).flatten(1).float()
    assert_same(fc1(meanings), F.linear(flat, fc1.out.weight, fc1.out.bias).view(BATCH, L, V + 1), fc1)
    hidden = torch.tanh(F.linear(flat, fc2.hidden.weight, fc2.hidden.bias))
    assert_same(fc2(meanings), F.linear(hidden, fc2.out.weight, fc2.out.bias).view(BATCH, L, V + 1), fc2)


def test_receivers_are_their_formulas() -> None:
    message = some_messages()
    models = {name: make("receiver", name) for name in ("FC2L", "FC", "FC1L", "FC2Lv2", "MeanEmbeddings")}
    rows = torch.arange(L) * (V + 1) + message

    def embedded(name: str) -> Tensor:
        return torch.tanh(F.embedding(message, models[name].embed.weight)).flatten(1)

    def answers(name: str, hidden: Tensor) -> Tensor:
        return F.linear(hidden, models[name].out.weight, models[name].out.bias)

    layer = models["FC"].hidden
    expected = {
        "FC2L": answers("FC2L", embedded("FC2L")),
        "FC": answers("FC", torch.tanh(F.linear(embedded("FC"), layer.weight, layer.bias))),
        "FC1L": F.embedding(rows, models["FC1L"].table.weight).sum(1),
        "FC2Lv2": answers("FC2Lv2", torch.tanh(F.embedding(rows, models["FC2Lv2"].table.weight).sum(1))),
        "MeanEmbeddings": answers(
            "MeanEmbeddings", torch.tanh(F.embedding(message, models["MeanEmbeddings"].embed.weight).mean(1))
        ),
    }
    for name, scores in expected.items():
        assert_same(models[name](message), scores.view(BATCH, A, K), models[name])


def test_mean_embeddings_ignores_the_start_symbol() -> None:
    model, weights = make("receiver", "MeanEmbeddings"), one_hot(some_messages(), V + 1)
    starts = weights.clone()
    starts[..., V] += 3
    assert torch.equal(model(starts), model(weights))
