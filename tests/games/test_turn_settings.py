"""Settings of turns: rejected values, and the meaning of "auto"."""

from __future__ import annotations

from typing import Any

import pytest

from icy.core.errors import IcyError
from icy.games import TurnSettings


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rule_length": 0}, "rule length must be a whole number, at least 1"),
        ({"targets": 0}, "number of targets"),
        ({"distractors": 0}, "number of distractors"),
        ({"targets": 10**9}, "at most 10000"),
        ({"distractor_kind": "nearest"}, "did you mean near"),
        ({"rule_sampling": "first"}, "way to draw rules"),
        ({"rules": "formula"}, "did you mean formulas"),
        ({"held_out": 1.0}, "training needs some rules"),
        ({"held_out": -0.1}, "at least 0"),
        ({"held_out": "half"}, "must be a number"),
        ({"same_objects": 1}, "same_objects must be True or False, not 1"),
        ({"repeat_target": "no"}, "repeat_target must be True or False"),
        ({"rules": "formulas", "rule_length": 2}, "Formulas do not have a rule length"),
    ],
)
def test_invalid_values_are_rejected(given: dict[str, Any], said: str) -> None:
    with pytest.raises(IcyError, match=said):
        TurnSettings(**given)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, "uniform"),
        ({"rule_length": 2}, "near"),
        ({"rule_length": 2, "distractor_kind": "uniform"}, "uniform"),
        ({"rules": "formulas"}, "groups"),
    ],
)
def test_distractors_are_uniform_for_one_concept_and_near_for_more(given: dict[str, Any], kind: str) -> None:
    assert TurnSettings(**given).drawn_distractors == kind
