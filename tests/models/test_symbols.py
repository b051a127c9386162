"""Symbols fed back to a sender."""

from __future__ import annotations

import pytest
import torch

from tests.models.helpers import V, make, some_meanings


@pytest.mark.parametrize("name", ["RNNAutoReg:LSTM", "HierAutoReg:GRU"])
def test_the_first_input_is_the_symbol_v(name: str) -> None:
    model, meanings = make("sender", name), some_meanings()
    before = model(meanings)[:, 0].detach()
    with torch.no_grad():
        model.feedback.embed.weight[:, :V] += 1
        assert torch.equal(model(meanings)[:, 0], before)
        model.feedback.embed.weight[:, V] += 1
        assert not torch.allclose(model(meanings)[:, 0], before)
