"""Speakers and listeners without learning: messages, scores, and games that they cannot play."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import icy
from icy.core.errors import IcyError, IncompatibleError
from icy.core.register import register_listener
from icy.core.registry import LISTENER, registry
from icy.s2b import Action, BatchedGame, GameSettings, Player, Seen, evaluate, play, record
from icy.s2b.episodes import deal
from icy.s2b.players.binding import Memory, evidence
from icy.s2b.players.deaf import Deaf
from icy.s2b.players.listeners import NearestListener

# -- a helper for the accuracy of a speaker and a listener -------------------------------------------------------------


def accuracy(speaker: str, listener: str, phase: str = "zsct", episodes: int = 150, **given: Any) -> float:
    return float(evaluate(speaker, listener, episodes=episodes, seeds=1, **given).table()[phase][0])


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


# -- the binding listener: memory and inference ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"samples": 4}, {"samples": 4, "shots": 2, "distractors": 2}, {"samples": 16}])
def test_memory_and_inference_solve_the_query(given: dict[str, Any]) -> None:
    """In the query every value has already occurred with its token."""
    assert accuracy("posdis", "binding", episodes=60, **given) > 0.995
    assert 0.8 < accuracy("posdis", "binding", "support", episodes=60, **given) < 0.99


@pytest.mark.slow
def test_binding_learns_from_success_in_games_without_feedback() -> None:
    assert accuracy("posdis", "binding", feedback=False) > 0.98
    assert accuracy("posdis", "binding", representation="ohe") == 1
    assert accuracy("posdis", "binding", length=1, rounds=3) == 1


@pytest.mark.slow
def test_binding_is_at_chance_with_languages_without_parts() -> None:
    assert accuracy("holistic", "binding") == pytest.approx(0.5, abs=0.06)
    assert accuracy("random", "binding") == pytest.approx(0.5, abs=0.06)


@pytest.mark.slow
def test_decisions_of_binding_do_not_depend_on_other_episodes() -> None:
    together = record("posdis", "binding", episodes=12, samples=4)
    alone = record("posdis", "binding", episodes=3, samples=4)
    columns = ["episode", "game", "decision", "said", "heard"]
    assert together[columns].head(len(alone)).equals(alone[columns])


def test_the_memory_infers_the_number_of_values_and_tokens() -> None:
    """At O = 1 a value has one number, so two numbers in the same half exclude a dimension of two values."""
    memory = Memory(1, 1, np.array([2, 3, 4, 5]), 6, samples=1)
    rows = np.array([0])
    memory.see(rows, np.array([[-0.9]]))
    memory.see(rows, np.array([[-0.9]]))
    assert memory.seen[0, 0] == 1
    memory.see(rows, np.array([[-0.4]]))
    weights = memory._weights(rows)[0, 0]
    assert weights[0] < 1e-9
    assert weights.sum() == pytest.approx(1)
    memory.bind(rows, np.array([[-0.9]]), np.array([[3]]))
    assert memory.ratio(rows, np.array([[-0.9]]), np.array([[3]]))[0] > 100
    assert memory.ratio(rows, np.array([[-0.4]]), np.array([[3]]))[0] < 1e-9
    memory.forget(np.ones(1, dtype=bool))
    assert memory.seen[0, 0] == 0
    assert np.isnan(memory.numbers).all()


def test_evidence_is_an_integral() -> None:
    """The evidence of one number integrates to 1 over a section, because nearly all of each density lies in it."""
    place = (np.arange(400) + 0.5) / 400
    density = np.exp(evidence(np.stack([np.ones(400), place, place**2], -1)))
    assert density.mean() == pytest.approx(1, abs=2e-3)


# -- listeners that ignore messages, and the schedule under which they are at chance -----------------------------------


SEEDS = np.arange(40)


# -- schedules of the query --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"samples": 4}, {"samples": 3, "query": "tss", "query_order": "index"}])
def test_the_two_schedules_swap_the_stimuli_of_the_players_in_the_query(given: dict[str, Any]) -> None:
    of = {owner: deal(GameSettings(query_of=owner, **given), SEEDS) for owner in ("listener", "speaker")}
    one, other = of["listener"], of["speaker"]
    query = one.query
    assert (query == other.query).all()
    assert (one.answer == other.answer).all()
    assert (one.speaker_numbers[~query] == other.speaker_numbers[~query]).all()
    assert (one.listener_numbers[~query] == other.listener_numbers[~query]).all()
    assert (one.speaker_numbers[query] == other.listener_numbers[query]).all()
    assert (one.listener_numbers[query] == other.speaker_numbers[query]).all()
    assert (one.speaker_numbers[query] != other.speaker_numbers[query]).any()


def test_the_listener_sees_each_stimulus_of_the_query_once() -> None:
    dealt = deal(GameSettings(samples=2), SEEDS)
    for first, count in zip(dealt.first, dealt.games, strict=True):
        games = np.arange(first, first + count)
        shown = dealt.listener_numbers[games[dealt.query[games]], 0]
        assert len(np.unique(shown)) == len(shown)


def test_with_distractors_the_listener_sees_the_scheduled_stimulus_as_target_or_distractor() -> None:
    settings = GameSettings(distractors=3, samples=2, shots=2)
    dealt, other = deal(settings, np.arange(200)), deal(replace(settings, query_of="speaker"), np.arange(200))
    scheduled, there = other.speaker_numbers[:, :1], dealt.answer < settings.slots
    shown = (dealt.listener_numbers == scheduled).any(1)
    assert shown[dealt.query].mean() > 0.97  # a substitute of the target may have a distractor's meaning
    same = dealt.listener_numbers // 2 == dealt.speaker_numbers[:, :1] // 2
    assert (same.sum(1) == there).all()  # one stimulus has the target's meaning, or none
    assert (same.argmax(1) == dealt.answer)[there].all()
    meant = dealt.listener_numbers[np.arange(len(there)), dealt.answer % 4] == scheduled[:, 0]
    assert meant[dealt.query & there].mean() == pytest.approx(1 / 4, abs=0.03)


def test_query_of_does_not_change_common_games() -> None:
    one, other = (
        deal(GameSettings(kind="common", games=20, split="all", query_of=o), SEEDS) for o in ("listener", "speaker")
    )
    assert (one.listener_numbers == other.listener_numbers).all()


# -- scores without listening ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "shots", "listener", "expected"),
    [
        (3, 1, "novelty", 0.894),  # from an earlier measurement with 2000 episodes
        (5, 1, "novelty", 0.792),
        (3, 4, "novelty", 0.960),
        (5, 4, "novelty", 0.927),
        (3, 2, "order", 1.0),
        (5, 4, "order", 1.0),
    ],
)
def test_listeners_that_ignore_messages_score_high_on_the_authors_schedule(
    most: int, shots: int, listener: str, expected: float
) -> None:
    found = accuracy("posdis", listener, most=most, shots=shots, compat="near32", episodes=500)
    assert found == pytest.approx(expected, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"most": 3}, {"shots": 4}, {"samples": 4}, {"query": "tss", "shots": 2}])
@pytest.mark.parametrize("listener", ["novelty", "novelty-meaning", "order"])
def test_listeners_that_ignore_messages_are_at_chance_on_the_listeners_schedule(
    listener: str, given: dict[str, Any]
) -> None:
    assert accuracy("posdis", listener, episodes=800, **given) == pytest.approx(0.5, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"most": 3}, {"shots": 4}, {"samples": 4}])
def test_binding_is_right_under_both_schedules(given: dict[str, Any]) -> None:
    for owner in ("listener", "speaker"):
        assert accuracy("posdis", "binding", query_of=owner, **given) >= 0.999


@pytest.mark.slow
def test_novelty_of_meanings_needs_inferred_numbers_of_values() -> None:
    """With samples no stimulus occurs twice; only its meaning shows that it is not new."""
    given: dict[str, Any] = {"most": 5, "samples": 4, "compat": "near32", "episodes": 500}
    assert accuracy("posdis", "novelty", **given) < 0.62
    assert accuracy("posdis", "novelty-meaning", **given) > 0.74


def test_novelty_equals_a_loop_over_games() -> None:
    game = BatchedGame(GameSettings(query_of="speaker"), episodes=3)
    shown: dict[int, set[bytes]] = {episode: set() for episode in range(3)}

    def watch(game: BatchedGame, turn: Any, said: Action, heard: Action) -> None:
        seen: Seen = turn.listener
        for episode in range(3):
            stimulus = seen.stimulus[episode, 0].tobytes()
            if seen.may_decide[episode]:
                assert heard.decision is not None
                assert heard.decision[episode] == (stimulus in shown[episode])
            if seen.round[episode] == 2:
                shown[episode].add(stimulus)

    play(game, "posdis", "novelty", [1, 2, 3], watch)
    assert all(shown.values())


@pytest.mark.parametrize("listener", ["novelty", "novelty-meaning", "order"])
def test_listeners_that_need_feedback_refuse_games_without_it(listener: str) -> None:
    with pytest.raises(IncompatibleError, match="a game with feedback=True"):
        evaluate("posdis", listener, feedback=False, episodes=1, seeds=1)


# -- deaf twins --------------------------------------------------------------------------------------------------------


class Ears(Player):
    """Player that records whether it received a token."""

    heard = False

    def acting(self, seen: Seen) -> Action:
        self.heard = self.heard or bool(seen.message.any())
        return Action(decision=np.zeros(self.seat.episodes, dtype=int))


@pytest.mark.slow
def test_a_deaf_twin_gets_no_messages_and_is_at_chance() -> None:
    ears = Ears()
    evaluate("posdis", ears, episodes=2, seeds=1)
    assert ears.heard
    ears.heard = False
    evaluate("posdis", Deaf(ears), episodes=2, seeds=1)
    assert not ears.heard
    deaf = Deaf(registry.get("binding", LISTENER).create())
    found = evaluate("posdis", deaf, episodes=600, seeds=1)
    assert float(found.table()["zsct"][0]) == pytest.approx(0.5, abs=0.015)
