"""Floors of the recall task equal expected accuracies."""

from __future__ import annotations

import pytest

from icy.s2b import RecallSettings
from icy.s2b.agents.recall_job import recall_floors

USUAL = sum(1 / d for d in (2, 3, 4, 5)) / 4  # how often the first value is right: 0.3208


def test_the_floor_without_memory_is_the_frequency_of_the_first_value() -> None:
    found = recall_floors(RecallSettings(), 300)
    assert found["no_memory"] == pytest.approx(USUAL, abs=0.03)
    assert found["no_memory"] < found["one_game"] < 0.8


def test_a_one_hot_stimulus_can_be_recalled_without_earlier_games() -> None:
    assert recall_floors(RecallSettings(representation="ohe"), 20)["one_game"] == 1


def test_a_space_of_one_size_can_be_recalled_without_earlier_games() -> None:
    found = recall_floors(RecallSettings(least=3, most=3), 20)
    assert found["no_memory"] == pytest.approx(1 / 3, abs=0.08)
    assert found["one_game"] > 0.98  # the sections of values are then always the same
