"""The transformer receiver, against the library's layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from icy.core.representations import one_hot
from icy.models import create_receiver
from tests.models.helpers import BATCH, SPACE, A, E, K, L, V, some_messages
from tests.models.transformer_helpers import assert_same, plain_pre_norm, position_waves, shaken


@pytest.mark.parametrize("soft", [False, True])
def test_the_receiver_is_the_librarys_layers(soft: bool) -> None:
    torch.manual_seed(5)
    model: Any = create_receiver("Transformer", SPACE, L, V, E, layers=3).double()
    shaken(model)
    weights = torch.rand(BATCH, L, V + 1).double().softmax(-1) if soft else one_hot(some_messages(), V + 1).double()
    y = plain_pre_norm(model.layers, weights @ model.embed.weight + position_waves(), causal=False)
    expected = model.out(F.layer_norm(y, [E], model.norm.weight, model.norm.bias).mean(1)).view(BATCH, A, K)
    assert_same(model(weights if soft else some_messages()), expected, model)
