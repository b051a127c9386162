"""Recurrent receivers, against the library's."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from icy.core.representations import one_hot
from tests.models.helpers import (
    BATCH,
    A,
    E,
    K,
    L,
    V,
    assert_same,
    assert_same_everywhere,
    make,
    plain_sru,
    some_messages,
    sru_model,
)


@pytest.mark.parametrize("layers", [1, 2])
def test_rnn_receiver_is_the_librarys(layers: int) -> None:
    model = make("receiver", f"RNN{layers}L:GRU")
    library = nn.GRU(E, E, layers, batch_first=True)
    weights = {f"{n}_l{i}": p for i, layer in enumerate(model.net.layers) for n, p in layer.named_parameters()}
    library.load_state_dict(weights)
    message = some_messages()
    last = library(F.embedding(message, model.embed.weight))[0][:, -1]
    assert_same(model(message), model.out(last).view(BATCH, A, K), model)


@pytest.mark.usefixtures("scanning")
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", ["RNN1L:SRU", "RNN2L:SRU"])
def test_rnn_receiver_of_srus_reads_the_last_state(name: str, soft: bool) -> None:
    model = sru_model("receiver", name)
    message = torch.rand(BATCH, L, V + 1).softmax(-1).requires_grad_() if soft else some_messages()
    x, c = (message if soft else one_hot(message, V + 1)) @ model.embed.weight, torch.zeros(BATCH, E)
    for layer in model.net.layers:
        x, c = plain_sru(layer, x, torch.zeros_like(c))
    expected = model.out(c).view(BATCH, A, K)
    assert_same_everywhere(model(message), expected, *model.parameters(), *([message] if soft else []))
