"""Speakers and listeners without learning: messages, scores, and games that they cannot play."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import icy
from icy.core.errors import IcyError, IncompatibleError
from icy.core.register import register_listener
from icy.core.registry import registry
from icy.s2b import Action, BatchedGame, Player, evaluate, play, record
from icy.s2b.players.listeners import NearestListener
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
def test_random_decisions_are_right_at_the_rate_of_chance(distractors: int) -> None:
    """The values are in s2b-facts 7.3."""
    game = BatchedGame(episodes=400, distractors=distractors)
    scores = play(game, "posdis", "random", range(400))
    share = 1 / (distractors + 2)
    assert np.mean(scores.zsct) == pytest.approx(share, abs=0.02)
    assert np.nanmean(scores.support) == pytest.approx(share, abs=0.02)


def test_always_no_is_right_in_games_without_the_target() -> None:
    assert accuracy("posdis", "always-no", ratio=0.5) == pytest.approx(0.5, abs=0.03)
    assert accuracy("posdis", "always-no", ratio=0.2) == pytest.approx(0.8, abs=0.03)
    with pytest.raises(IncompatibleError, match="so the game must be descriptive"):
        accuracy("posdis", "always-no", descriptive=False, distractors=1)


@pytest.mark.slow
def test_the_posdis_listener_reads_the_posdis_speaker_unpermuted() -> None:
    """It never decides none (s2b-facts 7.2), so it is wrong in every descriptive game without the target."""
    assert accuracy("posdis", "posdis", permutation=False, descriptive=False, distractors=3) == 1
    assert accuracy("posdis", "posdis", descriptive=False, distractors=3) < 0.5
    found = evaluate("posdis", "posdis", permutation=False, episodes=100, seeds=1).table()
    assert found["yes"][0] == 1
    assert found["zsct"][0] == found["kept"][0]


@pytest.mark.slow
def test_the_nearest_listener_needs_inference_with_several_samples() -> None:
    """With one sample the nearest number is the number itself; with more samples, sections distinguish values."""
    assert accuracy("posdis", "nearest") == 1
    assert accuracy("posdis", "nearest", representation="ohe") == 1
    assert accuracy("posdis", "nearest", samples=4) > 0.995
    assert accuracy("posdis", "nearest", "support", samples=4) < accuracy("posdis", "binding", "support", samples=4)
    assert accuracy("holistic", "nearest") < 0.6
    with pytest.raises(IncompatibleError, match="needs feedback"):
        accuracy("posdis", "nearest", feedback=False)


def test_nothing_is_stored_after_the_end_of_an_episode() -> None:
    listener, game = NearestListener(), BatchedGame(most=3, episodes=6)
    play(game, "posdis", listener, range(6))
    expected = game.games - (game.games == game.games.max())  # players do not act when all episodes have ended
    assert (~np.isnan(listener.numbers)).any(2).sum(1).tolist() == expected.tolist()


def test_the_cheating_language_needs_an_unpermuted_vocabulary() -> None:
    """The facts are in s2b-facts 7.4."""
    assert accuracy("digital", "digital", permutation=False, vocab_size=40) > 0.999
    assert accuracy("digital", "digital", vocab_size=40) == pytest.approx(0.5, abs=0.05)
    with pytest.raises(IncompatibleError, match="continuous stimuli"):
        accuracy("digital", "digital", representation="ohe")


def test_posdis_sends_values_also_in_several_rounds() -> None:
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
        ("posdis", {"length": 2}, "needs 3 tokens per game"),
        ("bosdis", {}, "a vocabulary of 15 tokens"),
        ("holistic", {"vocab_size": 1}, "at least two tokens"),
        ("holistic", {"length": 2}, "needs 3 tokens per game"),
    ],
)
def test_a_channel_that_is_too_small_raises_an_error(speaker: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(IncompatibleError, match=said):
        evaluate(speaker, "oracle", episodes=2, seeds=1, **given)


# -- custom players ----------------------------------------------------------------------------------------------------


class Yes(Player):
    """Listener that always decides yes."""

    def acting(self, seen: Any) -> Action:
        return Action(decision=np.zeros(self.seat.episodes, dtype=int))


def test_a_custom_player_plays_by_name_or_as_an_object() -> None:
    register_listener("yes", source="a test")(Yes)
    try:
        assert "listener/yes" in icy.list_players("*yes")
        named = evaluate("posdis", "yes", episodes=5, seeds=1)
        own = evaluate("posdis", Yes(), episodes=5, seeds=1)
        assert named.table().equals(own.table())
        assert (named.listener, own.listener) == ("yes", "Yes")
    finally:
        registry._entries.pop(("listener", "yes"))


def test_acting_must_return_an_action() -> None:
    class Wrong(Player):
        def acting(self, seen: Any) -> Any:
            return np.zeros(self.seat.episodes)

    with pytest.raises(IcyError, match="must return an Action, not ndarray"):
        evaluate("posdis", Wrong(), episodes=2, seeds=1)


def test_players_without_privileges_cannot_use_the_game() -> None:
    class Curious(Player):
        def acting(self, seen: Any) -> Action:
            return Action(decision=self.game.answer)

    with pytest.raises(IcyError, match="uses the game; set `privileged = True`"):
        evaluate("posdis", Curious(), episodes=2, seeds=1)
