"""Settings of a game, and those that do not go together."""

from __future__ import annotations

from typing import Any

import pytest

from icy.core.errors import IcyError
from icy.s2b import BatchedGame, GameSettings
from icy.s2b.settings import NEAR32


def test_compat_is_a_set_of_named_departures() -> None:
    ours, theirs = GameSettings(), GameSettings.of(compat="near32")
    changed = {name for name in vars(ours) if getattr(ours, name) != getattr(theirs, name)}
    assert changed == {name for departure in NEAR32.values() for name in departure.settings}
    assert GameSettings.of(compat="near32", query="all").query == "all"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dimensions": 1}, "threshold=2 is above the number of dimensions, 1"),
        ({"distractors": 4}, "4 stimuli are needed in addition to the target"),
        ({"least": 4, "most": 3}, "least=4, must not be above the largest, most=3"),
        ({"query": "tss", "dimensions": 2, "samples": 4}, "the query has no plain values"),
        ({"ratio": 1.5}, "must be from 0 to 1"),
        ({"ratio": "x"}, "must be from 0 to 1"),
        ({"descriptive": 2}, "True or False"),
        ({"descriptive": False}, "only one answer"),
        ({"threshold": 1}, "cannot show every value"),
        ({"games": 5}, "settings of common games"),
        ({"kind": "common", "dimensions": 1, "least": 2, "most": 2, "split": "all", "distractors": 1}, "2 stimuli are"),
        ({"shots": 0}, "shots"),
        ({"shots": 10**9}, "shots must be at most 1,000"),
        ({"vocab_size": 0}, "vocab_size"),
        ({"most": 200, "dimensions": 3}, "more than 1,000,000 meanings"),
        ({"samples": 2, "representation": "ohe"}, "One-hot stimuli"),
        ({"view": "ful"}, "did you mean full"),
        ({"shot": 1}, "did you mean shots"),
        ({"compat": "near"}, "did you mean near32"),
    ],
)
def test_impossible_settings_are_errors_in_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(IcyError, match=said):
        BatchedGame(**given)
