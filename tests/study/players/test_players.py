"""Simulated players: their memory and their guesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from icy.core.errors import InvalidSettingError
from icy.core.registry import STUDY_PLAYER, registry
from icy.study.game import StudyGame, StudyGameSettings, dataset, instance_of
from icy.study.players.player import MOST_VIEWS, Item, PlayedGame, StudyPlayer, StudySeat, play
from icy.study.players.simulated import Composer, FamilyComposer
from tests.study.game.helpers import game_of

PLAYERS = ("random-letters", "constant", "memoriser", "composer", "family", "careless")


def made(name: str, **options: Any) -> StudyPlayer:
    player: StudyPlayer = registry.get(name, STUDY_PLAYER).create(**options)
    return player


def taught(player: StudyPlayer, known: Mapping[Item, str], name: str = "synth") -> StudyPlayer:
    player.begin(StudySeat(dataset(name), 0))
    for item, code in known.items():
        player.learn(item, code)
    return player


def right(played: PlayedGame) -> list[bool]:
    return [trial.correct for trial in played.state.trials if trial.held_out is not None]


KNOWN: dict[Item, str] = {(0, 0): "abcd", (0, 1): "abca", (1, 0): "bbcd"}


def test_a_memoriser_copies_the_nearest() -> None:
    player = taught(made("memoriser"), KNOWN)
    assert player.answer((0, 1)) == "abca"
    assert {player.answer((1, 1)) for _ in range(20)} == {"abca", "bbcd"}
    assert {player.answer((2, 2)) for _ in range(30)} == set(KNOWN.values())


def test_a_composer_puts_words_together() -> None:
    player = taught(made("composer"), KNOWN)
    assert player.answer((1, 1)) == "bbca"
    assert player.answer((2, 1)).endswith("ca")


def test_a_composer_uses_the_most_frequent_words() -> None:
    player = taught(Composer(), {(0, 0): "aabb", (0, 1): "aacc", (0, 2): "ddbb", (1, 1): "bbcc"})
    assert player.answer((1, 0)) == "bbbb"
    assert player.guess((0, 1)) == "aacc"


def test_a_family_composer_fits_permuted_letters() -> None:
    words = (("ab", "cd", "dd"), ("ba", "cc", "bd"))
    code = lambda item: "".join((words[0][item[0]] + words[1][item[1]])[i] for i in (3, 0, 2, 1))  # noqa: E731
    player = taught(FamilyComposer(), {item: code(item) for item in ((0, 1), (1, 0), (0, 2), (2, 0))})
    assert player.answer((0, 0)) == code((0, 0))
    assert player.answer((2, 1)) == code((2, 1))


def test_a_family_composer_fits_orders_of_words() -> None:
    words = (("ab", "cd", "dd"), ("ba", "cc", "bd"))
    swapped = (True, False, True)
    code = lambda item: "".join(  # noqa: E731
        (words[1][item[1]], words[0][item[0]]) if swapped[item[1]] else (words[0][item[0]], words[1][item[1]])
    )
    player = taught(FamilyComposer(), {item: code(item) for item in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1))})
    assert [player.answer((i, i)) for i in range(3)] == [code((i, i)) for i in range(3)]


@pytest.mark.parametrize("name", ["synth", "eng"])
def test_ceilings_of_the_clean_preset(name: str) -> None:
    for grammar, player, expected in (
        ("concat", "composer", 1.0), ("concat", "family", 1.0), ("perm", "family", 1.0), ("shufdet", "family", 1.0),
        ("concat", "memoriser", 0.0), ("perm", "composer", None),
    ):  # fmt: skip
        settings = StudyGameSettings(dataset=name, grammar=grammar)
        shares = []
        for number in range(4):
            played = play(StudyGame(settings, instance_of(settings, number), number), made(player), number)
            shares += right(played)
        share = sum(shares) / len(shares)
        assert share == expected if expected is not None else share < 0.5


def test_the_order_of_cards_bounds_what_the_published_service_could_measure() -> None:
    """A perfect composer gets one of three held-out items of synth, and two with feedback (spycodes-facts 5)."""
    full = [right(play(game_of("published", s), made("composer"), s)) for s in range(5)]
    verdict = [right(play(game_of("published", s, held_out_feedback="verdict"), made("composer"), s)) for s in range(5)]
    assert {tuple(one) for one in full} == {(True, False, True)}
    assert {one[0] for one in verdict} == {True}
    assert sum(map(sum, verdict)) <= 6  # 5, and at most one lucky guess of the word for blue


def test_players_of_all_cards_reach_the_maximum() -> None:
    for name, score in (("eng", 1030), ("synth", 246)):
        played = play(game_of(dataset=name), made("composer", adds=True), 0)
        assert played.state.score > 0.99 * score - 10  # the player adds all cards before the first item
        assert played.state.added == played.game.settings.cap - 2


def test_players_study_every_new_card() -> None:
    played = play(game_of(dataset="eng"), made("memoriser"), 0)
    assert 8 <= played.state.views <= sum(range(2, 9))  # every new card refills the bag
    assert sum(n > 0 for n in played.state.exposures) >= 8
    assert all(trial.correct for trial in played.state.trials if trial.held_out is None)


def test_the_number_of_views_in_a_row_is_limited() -> None:
    class Greedy(Composer):
        def looks(self, cards: int, seen: int) -> bool:
            return True

    played = play(game_of(examples=2, held_out_at=(1,)), Greedy(), 0)
    assert played.state.views == 2 * MOST_VIEWS * 2


def test_invalid_answers_are_an_error() -> None:
    class Mute(Composer):
        def answer(self, item: Item) -> str:
            return ""

    with pytest.raises(InvalidSettingError, match="A simulated player answered ''"):
        play(game_of(), Mute(), 0)


def test_careless_players_score_less_with_higher_probabilities_of_mistakes() -> None:
    scores = [
        sum(play(game_of(seed=s), made("careless", **options), s).state.score for s in range(5))
        for options in ({"slip": 0, "lapse": 0, "looking": 1, "forgetting": 0}, {}, {"slip": 0.3, "lapse": 0.5})
    ]
    assert scores[0] == 5 * 170
    assert scores[0] > scores[1] > scores[2]
    with pytest.raises(InvalidSettingError, match="probability slip"):
        made("careless", slip=2)


def test_a_log_replays_to_the_same_state() -> None:
    for name in PLAYERS:
        played = play(game_of(dataset="eng", grammar="rot"), made(name), 3)
        assert played.game.replay(played.events) == played.state
        assert played.state.phase == "closed"
