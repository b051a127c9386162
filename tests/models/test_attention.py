"""Attention: the cache, and the waves of positions."""

from __future__ import annotations

import pytest
import torch

from icy.models.attention import Cache, sinusoids
from tests.models.helpers import E, L
from tests.models.transformer_helpers import position_waves


def test_positions_are_the_waves() -> None:
    torch.testing.assert_close(sinusoids(L, torch.empty(E).double()), position_waves())
    assert sinusoids(3, torch.empty(5)).shape == (3, 5)


@pytest.mark.parametrize("width", [4, 8])
def test_the_cache_is_attention_over_stacked_rows(width: int) -> None:
    torch.manual_seed(0)
    queries = torch.randn(L, 3, 4, dtype=torch.float64, requires_grad=True)
    rows = torch.randn(L, 3, width, dtype=torch.float64, requires_grad=True)
    cache, found, expected = Cache(L), [], []
    for t in range(L):
        found.append(cache.attend(queries[t], rows[t]))
        keys, values = rows[: t + 1, :, :4], rows[: t + 1, :, -4:]
        weights = (keys * queries[t]).sum(-1).softmax(0)
        expected.append((weights.unsqueeze(-1) * values).sum(0))
    for of in (range(L), range(L - 2), [1, 4]):  # some steps' results may not be used
        losses = [sum(((t + 1) * steps[t]).sin().sum() for t in of) for steps in (found, expected)]
        for leaf in (queries, rows):
            mine, plain = (torch.autograd.grad(loss, leaf, retain_graph=True)[0] for loss in losses)  # type: ignore[arg-type]
            torch.testing.assert_close(mine, plain)
