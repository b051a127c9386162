"""The binding listener: memory and inference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER, registry
from icy.s2b import Action, BatchedGame, GameSettings, Player, Seen, evaluate, record
from icy.s2b.episodes import deal
from icy.s2b.evaluation import play
from icy.s2b.players.binding import Memory, evidence
from icy.s2b.players.deaf import Deaf
from tests.s2b.players.helpers import accuracy


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
    memory.forget(rows)
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
