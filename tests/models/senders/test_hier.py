"""Hierarchical senders, against their formulas."""

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
    between,
    make,
    some_meanings,
    summed_embedding,
)


@pytest.mark.parametrize("family", ["HierZero", "HierAutoReg"])
@pytest.mark.parametrize("kind", LIBRARY)
def test_senders_are_their_formulas(kind: str, family: str) -> None:
    model = make("sender", f"{family}:{kind}")
    upper_cell, lower_cell = Plain(model.upper, kind), Plain(model.lower, kind)
    meanings, zero = some_meanings(), torch.zeros(BATCH, 1)
    u, low = upper_cell.start(summed_embedding(model, meanings)), lower_cell.start(torch.zeros(BATCH, E))
    s, scores, fed = torch.ones(BATCH, 1), [], F.one_hot(torch.full((BATCH,), V), V + 1).float()
    for _ in range(L):
        u = between(s, upper_cell(zero, u), u)
        embed = None if family == "HierZero" else model.feedback.embed
        x = zero if embed is None else F.linear(fed, embed.weight, embed.bias)
        low = lower_cell(x, between(s, u, low))
        s = torch.sigmoid(model.stop.score(low[0]))
        scores.append(model.out(low[0]))
        fed = scores[-1].softmax(-1)
    assert_same(model(meanings), torch.stack(scores, 1), model)
