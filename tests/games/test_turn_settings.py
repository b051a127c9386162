"""Settings of turns: rejected values, and the meaning of "auto"."""

from __future__ import annotations

from typing import Any

import pytest

from icy.games import TurnSettings


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
