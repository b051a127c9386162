"""Receivers of the papers' program, against their formulas."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from tests.models.helpers import BATCH, A, K, L, V, assert_same, make, some_messages


def test_receivers_of_the_program_are_their_formulas() -> None:
    message, positions = some_messages(), torch.arange(L)
    fc1, fc2, mean = (make("receiver", name) for name in ("FC1L", "FC2Lv2", "MeanEmbeddings"))
    rows = positions * (V + 1) + message
    assert_same(fc1(message), F.embedding(rows, fc1.table.weight).sum(1).view(BATCH, A, K), fc1)
    hidden = torch.tanh(F.embedding(rows, fc2.table.weight).sum(1))
    assert_same(fc2(message), fc2.out(hidden).view(BATCH, A, K), fc2)
    hidden = torch.tanh(F.embedding(message, mean.embed.weight).mean(1))
    assert_same(mean(message), mean.out(hidden).view(BATCH, A, K), mean)
