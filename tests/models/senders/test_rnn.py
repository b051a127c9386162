"""Recurrent senders, against plain loops."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.models.helpers import (
    BATCH,
    LIBRARY,
    E,
    L,
    Plain,
    V,
    assert_same,
    assert_same_everywhere,
    make,
    plain_sru,
    some_meanings,
    sru_model,
    summed_embedding,
)


@pytest.mark.parametrize("family", ["RNNZero", "RNNAutoReg"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", LIBRARY)
def test_senders_are_plain_loops(kind: str, layers: int, family: str) -> None:
    model, meanings = make("sender", f"{family}{'2L' if layers == 2 else ''}:{kind}"), some_meanings()
    cells = [Plain(layer, kind) for layer in model.net.layers]
    start = [summed_embedding(model, meanings), torch.zeros(BATCH, E)]
    states = [cell.start(h) for cell, h in zip(cells, start, strict=False)]
    fed, scores = F.one_hot(torch.full((BATCH,), V), V + 1).float(), []
    for _ in range(L):
        x = (
            torch.zeros(BATCH, E)
            if family == "RNNZero"
            else F.linear(fed, model.feedback.embed.weight, model.feedback.embed.bias)
        )
        for i, cell in enumerate(cells):
            states[i] = cell(x, states[i])
            x = states[i][0]
        scores.append(model.out(x))
        fed = scores[-1].softmax(-1)
    assert_same(model(meanings), torch.stack(scores, 1), model)


@pytest.mark.usefixtures("scanning")
@pytest.mark.parametrize("name", ["RNNZero:SRU", "RNNZero2L:SRU"])
def test_rnn_zero_of_srus_is_a_plain_loop(name: str) -> None:
    model, meanings = sru_model("sender", name), some_meanings()
    x, c = torch.zeros(BATCH, L, E), summed_embedding(model, meanings)
    for layer in model.net.layers:
        x, _ = plain_sru(layer, x, c, tanh=True)
        c = torch.zeros_like(c)
    assert_same_everywhere(model(meanings), model.out(x), *model.parameters())


@pytest.mark.parametrize("layers", [1, 2])
def test_rnn_autoreg_of_srus_is_a_plain_loop(layers: int) -> None:
    model, meanings = sru_model("sender", f"RNNAutoReg{'2L' if layers == 2 else ''}:SRU"), some_meanings()
    states = [summed_embedding(model, meanings), torch.zeros(BATCH, E)][:layers]
    fed, scores = F.one_hot(torch.full((BATCH,), V), V + 1).float(), []
    for _ in range(L):
        x = F.linear(fed, model.feedback.embed.weight, model.feedback.embed.bias).unsqueeze(1)
        for i, layer in enumerate(model.net.layers):
            x, states[i] = plain_sru(layer, x, states[i])
        scores.append(model.out(x.squeeze(1)))
        fed = scores[-1].softmax(-1)
    assert_same_everywhere(model(meanings), torch.stack(scores, 1), *model.parameters())
