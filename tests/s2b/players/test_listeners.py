"""Listeners that know what comes out, and the cheating ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icy.core.errors import IncompatibleError
from icy.s2b import BatchedGame, evaluate, play
from tests.s2b.players.helpers import accuracy


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"samples": 4, "shots": 2},
        {"distractors": 3},
        {"distractors": 2, "samples": 3, "view": "partial"},
        {"feedback": False},
        {"kind": "common", "split": "query", "games": 5},
        {"descriptive": False, "distractors": 2},
        {"compat": "near32"},
    ],
)
def test_the_oracle_is_always_right(given: dict[str, Any]) -> None:
    found = evaluate("posdis", "oracle", episodes=100, seeds=2, **given).table()
    assert found["zsct"].tolist() == [1, 1]
    assert found["illegal"].tolist() == [0, 0]
    assert found["kept"].equals(found["yes"])


@pytest.mark.parametrize("distractors", [0, 1, 3])
def test_random_is_right_in_one_of_all_decisions(distractors: int) -> None:
    """s2b-facts 7.3."""
    game = BatchedGame(episodes=400, distractors=distractors)
    scores = play(game, "posdis", "random", range(400))
    share = 1 / (distractors + 2)
    assert np.mean(scores.zsct) == pytest.approx(share, abs=0.02)
    assert np.nanmean(scores.support) == pytest.approx(share, abs=0.02)


def test_always_no_is_right_where_the_target_is_not_there() -> None:
    assert accuracy("posdis", "always-no", ratio=0.5) == pytest.approx(0.5, abs=0.03)
    assert accuracy("posdis", "always-no", ratio=0.2) == pytest.approx(0.8, abs=0.03)
    with pytest.raises(IncompatibleError, match="not descriptive"):
        accuracy("posdis", "always-no", descriptive=False, distractors=1)


@pytest.mark.slow
def test_the_posdis_listener_reads_the_posdis_speaker_unpermuted() -> None:
    """s2b-facts 7.2: it never answers none, so it is wrong on every descriptive negative."""
    assert accuracy("posdis", "posdis", permutation=False, descriptive=False, distractors=3) == 1
    assert accuracy("posdis", "posdis", descriptive=False, distractors=3) < 0.5
    found = evaluate("posdis", "posdis", permutation=False, episodes=100, seeds=1).table()
    assert found["yes"][0] == 1
    assert found["zsct"][0] == found["kept"][0]
