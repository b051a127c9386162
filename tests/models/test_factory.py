"""Making models by name, and mistakes in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from torch import nn

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.core.registry import registry
from icy.languages.meanings import MeaningSpace
from icy.models import create_receiver, create_sender
from icy.models.factory import create


def test_mistakes_are_answered_in_a_sentence() -> None:
    with pytest.raises(UnknownNameError, match="did you mean HierZero:GRU"):
        create_sender("HierZero:GRUU", "3x4")
    with pytest.raises(InvalidSettingError, match="hidden_size must be a whole number of at least 1, not 0"):
        create_sender("FC2L", "3x4", hidden_size=0)
    with pytest.raises(InvalidSettingError, match=r"has no option 'gate'; its options: .*shared_gate"):
        create_receiver("Hier:GRU", "3x4", gate=True)
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
