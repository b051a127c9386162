"""Senders as players."""

from __future__ import annotations

import pytest

from icy.config.settings import TrainingSettings
from icy.core.registry import registry
from icy.study.game import dataset
from icy.study.players.player import StudySeat, play
from icy.study.players.zoo import BETWEEN_CHECKS, ZooPlayer
from tests.study.game.helpers import game_of

PACE = 5


def sender(name: str = "FC2L") -> ZooPlayer:
    return ZooPlayer(registry.get(name, "sender"), PACE, TrainingSettings(batch_size=16), hidden=16)


def test_a_sender_memorizes_all_cards() -> None:
    game = game_of(grammar="perm")
    player = sender()
    player.begin(StudySeat(game.settings.content, 1))
    for meaning in game.order:
        player.learn(divmod(meaning, 3), game.codes[meaning])
    assert not player.exact()
    assert player.converge(4000)
    assert player.updates % BETWEEN_CHECKS == 0
    assert player.predict_codes(game.order) == [game.codes[m] for m in game.order]


def test_convergence_stops_at_the_limit() -> None:
    player = sender()
    player.begin(StudySeat(dataset("synth"), 0))
    player.learn((0, 0), "abcd")
    player.learn((0, 0), "dcba")  # the code has changed
    assert player.known == [0]
    assert not player.converge(1)
    assert player.updates == 1


def test_games_depend_on_the_seed() -> None:
    game = game_of(dataset="eng")
    first, again = (play(game, sender(), game.seed) for _ in range(2))
    assert first.events == again.events
    assert first.events != play(game, sender(), game.seed + 1).events


def test_a_second_game_starts_from_initial_weights() -> None:
    game, player = game_of(examples=12, held_out_at=(9,)), sender()
    first = play(game, player, 0)
    assert play(game, player, 0).events == first.events
    assert player.updates == 12 * PACE


def test_an_untrained_sender_answers_in_letters() -> None:
    player = sender()
    player.begin(StudySeat(dataset("synth"), 0))
    text = player.answer((2, 2))
    assert len(text) == 4
    assert set(text) <= set("abcd")
    assert player.updates == 0  # there is nothing to learn from


@pytest.mark.parametrize("name", ["HierZero:GRU", "Hashtable"])
def test_other_senders(name: str) -> None:
    game = game_of(examples=6, held_out_at=(5,))
    played = play(game, sender(name), 0)
    assert played.state.phase == "closed"


def test_parameters_are_counted() -> None:
    small, large = (sender().parameters(dataset(name)) for name in ("synth", "eng"))
    assert set(small) == {"true", "published"}
    assert 0 < small["true"] < large["true"]
