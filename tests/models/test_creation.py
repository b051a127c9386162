"""Making models by name, and mistakes in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.core.registry import registry
from icy.languages.meanings import MeaningSpace
from icy.models import create_receiver, create_sender, creation
from icy.models.creation import create


def test_mistakes_are_answered_in_a_sentence() -> None:
    with pytest.raises(UnknownNameError, match="did you mean HierZero:GRU"):
        create_sender("HierZero:GRUU", "3x4")
    with pytest.raises(InvalidSettingError, match="hidden_size must be a whole number of at least 1, not 0"):
        create_sender("FC2L", "3x4", hidden_size=0)
    with pytest.raises(InvalidSettingError, match=r"has no option 'gate'; its options: .*shared_gate"):
        create_receiver("Hier:GRU", "3x4", gate=True)
    with pytest.raises(InvalidSettingError, match="has no option 'space'; its options: none"):
        create(registry.get("FC2L", "sender"), "3x4", 6, 4, 8, space=3)  # type: ignore[call-arg]
    with pytest.raises(UnknownNameError, match="representation"):
        create_sender("RNNAutoReg:GRU", "3x4", representation="sofd")


def test_a_model_without_feedback_takes_any_representation() -> None:
    create_sender("FC2L", "3x4", 6, 4, 8, representation="soft")
    with pytest.raises(UnknownNameError):
        create_sender("FC2L", "3x4", 6, 4, 8, representation="none such")


def test_a_factory_that_takes_anything_is_told_the_representation() -> None:
    told: list[Any] = []

    def factory(space: MeaningSpace, length: int, vocab: int, hidden: int, **more: Any) -> nn.Module:
        told.append(more["representation"].name)
        return nn.Linear(1, 1)

    entry = replace(registry.get("FC1L", "sender"), factory=factory)
    create(entry, "3x4", 6, 4, 8, representation="gumb")
    assert told == ["gumb"]


@pytest.mark.parametrize("hidden", [100_000_000, 2**31 - 1])
@pytest.mark.parametrize("model", ["FC2L", "RNNZero:GRU"])
def test_a_model_that_is_too_large_is_refused_before_it_is_made(model: str, hidden: int) -> None:
    with pytest.raises(
        InvalidSettingError, match=f"{model} with a hidden size of {hidden} .* take a smaller hidden size"
    ):
        create_sender(model, "3x4", 6, hidden_size=hidden)


def test_the_check_of_a_large_model_draws_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    plain = create_sender("RNNZero:GRU", "2x3", 4, hidden_size=8)
    monkeypatch.setattr(creation, "LARGE", 1)
    torch.manual_seed(1)
    checked = create_sender("RNNZero:GRU", "2x3", 4, hidden_size=8)
    assert all((a == b).all() for a, b in zip(plain.parameters(), checked.parameters(), strict=True))
