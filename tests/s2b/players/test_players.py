"""Speakers and listeners without learning: what they say, score, and cannot play."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icy.core.errors import IncompatibleError
from icy.s2b import BatchedGame, evaluate, play, record
from icy.s2b.players.nearest import NearestListener
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
    with pytest.raises(IncompatibleError, match="Only a descriptive game"):
        accuracy("posdis", "always-no", descriptive=False, distractors=1)


@pytest.mark.slow
def test_the_posdis_listener_reads_the_posdis_speaker_unpermuted() -> None:
    """s2b-facts 7.2: it never answers none, so it is wrong on every descriptive negative."""
    assert accuracy("posdis", "posdis", permutation=False, descriptive=False, distractors=3) == 1
    assert accuracy("posdis", "posdis", descriptive=False, distractors=3) < 0.5
    found = evaluate("posdis", "posdis", permutation=False, episodes=100, seeds=1).table()
    assert found["yes"][0] == 1
    assert found["zsct"][0] == found["kept"][0]


@pytest.mark.slow
def test_memory_without_inference() -> None:
    """With one sample the nearest number is the number itself; with more, sections keep values apart."""
    assert accuracy("posdis", "nearest") == 1
    assert accuracy("posdis", "nearest", representation="ohe") == 1
    assert accuracy("posdis", "nearest", samples=4) > 0.995
    assert accuracy("posdis", "nearest", "support", samples=4) < accuracy("posdis", "binding", "support", samples=4)
    assert accuracy("holistic", "nearest") < 0.6
    with pytest.raises(IncompatibleError, match="needs feedback"):
        accuracy("posdis", "nearest", feedback=False)


def test_an_episode_that_has_ended_teaches_nothing_more() -> None:
    listener, game = NearestListener(), BatchedGame(most=3, episodes=6)
    play(game, "posdis", listener, range(6))
    expected = game.games - (game.games == game.games.max())  # nobody acts once all have ended
    assert (~np.isnan(listener.numbers)).any(2).sum(1).tolist() == expected.tolist()


def test_the_cheating_language_needs_an_unpermuted_vocabulary() -> None:
    """s2b-facts 7.4."""
    assert accuracy("digital", "digital", permutation=False, vocab_size=40) > 0.999
    assert accuracy("digital", "digital", vocab_size=40) == pytest.approx(0.5, abs=0.05)
    with pytest.raises(IncompatibleError, match="continuous stimuli"):
        accuracy("digital", "digital", representation="ohe")


def test_posdis_says_values_and_the_channel_carries_them_in_parts() -> None:
    games = record("posdis", "oracle", episodes=5, length=4)
    said = [f"{a + 1} {b + 1} {c + 1} 0" for a, b, c in games[["meaning_0", "meaning_1", "meaning_2"]].to_numpy()]
    assert games["said"].tolist() == said
    parts = record("posdis", "binding", episodes=5, length=1, rounds=3)
    said = [f"{a + 1} {b + 1} {c + 1}" for a, b, c in parts[["meaning_0", "meaning_1", "meaning_2"]].to_numpy()]
    assert parts["said"].tolist() == said


@pytest.mark.parametrize(
    ("speaker", "given", "said"),
    [
        ("posdis", {"vocab_size": 4}, "a vocabulary of 5 tokens"),
        ("posdis", {"length": 2}, "messages of 3 tokens"),
        ("bosdis", {}, "a vocabulary of 15 tokens"),
        ("holistic", {"vocab_size": 1}, "at least two tokens"),
        ("holistic", {"length": 2}, "messages of 3 tokens"),
    ],
)
def test_a_channel_too_narrow_for_a_language_is_reported(speaker: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(IncompatibleError, match=said):
        evaluate(speaker, "oracle", episodes=2, seeds=1, **given)
