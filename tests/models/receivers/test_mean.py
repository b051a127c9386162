"""Mean embeddings."""

from __future__ import annotations

import torch

from icy.core.representations import one_hot
from tests.models.helpers import V, make, some_messages


def test_mean_embeddings_ignores_the_start_symbol() -> None:
    model = make("receiver", "MeanEmbeddings")
    weights = one_hot(some_messages(), V + 1)
    starts = weights.clone()
    starts[..., V] += 3
    assert torch.equal(model(starts), model(weights))
