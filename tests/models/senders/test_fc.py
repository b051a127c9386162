"""Feed-forward models of both sides, against their formulas."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from tests.models.helpers import BATCH, A, K, L, V, assert_same, make, some_meanings, some_messages


def test_feed_forward_models_are_their_formulas() -> None:
    meanings, message = some_meanings(), some_messages()
    flat = F.one_hot(meanings, K).flatten(1).float()
    fc1, fc2 = make("sender", "FC1L"), make("sender", "FC2L")
    assert_same(fc1(meanings), F.linear(flat, fc1.out.weight, fc1.out.bias).view(BATCH, L, V + 1), fc1)
    hidden = torch.tanh(F.linear(flat, fc2.hidden.weight, fc2.hidden.bias))
    assert_same(fc2(meanings), F.linear(hidden, fc2.out.weight, fc2.out.bias).view(BATCH, L, V + 1), fc2)
    for name in ("FC2L", "FC"):
        model = make("receiver", name)
        hidden = torch.tanh(F.embedding(message, model.embed.weight)).flatten(1)
        if name == "FC":
            hidden = torch.tanh(F.linear(hidden, model.hidden.weight, model.hidden.bias))
        assert_same(model(message), F.linear(hidden, model.out.weight, model.out.bias).view(BATCH, A, K), model)
