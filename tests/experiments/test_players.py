"""Players of S2B, and the games that they play."""

from __future__ import annotations

import re
from dataclasses import replace

import click
import pytest

from icy.cli.commands.s2b import s2b_command
from icy.core.errors import IcyError, IncompatibleError, UnknownNameError
from icy.core.registry import LISTENER, SPEAKER, registry
from icy.experiments.players import ChosenPlayer, player_of, players_of, tables_of, varying
from icy.s2b import GameSettings


@pytest.mark.parametrize("name", ["play", "eval", "language", "record", "stimuli"])
def test_options_are_the_settings_of_the_game(name: str) -> None:
    options = {p.name: p for p in s2b_command.commands[name].params if isinstance(p, click.Option)}
    assert vars(GameSettings()).keys() - {"least", "most"} <= set(options)
    assert all(option.help for name, option in options.items() if name not in ("format_", "episodes"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/no/folder", "The file or folder /no/folder does not exist"),
        ("./none", "The file or folder none does not exist"),
        ("none.safetensors", "none.safetensors cannot be read"),
        ("none", "No listener is called 'none'"),
    ],
)
def test_a_path_where_nothing_is_is_not_taken_for_a_name(name: str, said: str) -> None:
    for players in (players_of, _one):
        with pytest.raises(IcyError, match=said):
            players([name], LISTENER)


SMALL = GameSettings(most=3, samples=2)
LARGE = GameSettings(most=4, dimensions=2, threshold=2)


def trained(label: str, game: GameSettings, role: str = LISTENER, partner: str = "posdis") -> ChosenPlayer:
    """Return a stand-in for a trained player of a game."""
    return ChosenPlayer(
        label, "random" if role == LISTENER else "posdis", role, game, partner if role == LISTENER else None
    )


POSDIS, BINDING = ChosenPlayer("posdis", "posdis", SPEAKER), ChosenPlayer("binding", "binding", LISTENER)


def games_played(*groups: tuple[ChosenPlayer, ...], **chosen: object) -> list[tuple[str, GameSettings]]:
    return [(group[-1].label, game) for group, game in tables_of(groups, chosen)]


def test_a_trained_player_plays_the_game_it_learned_in() -> None:
    a, b = trained("a", SMALL), trained("b", LARGE)
    assert games_played((POSDIS, a), (POSDIS, b)) == [("a", SMALL), ("b", LARGE)]
    assert games_played((POSDIS, BINDING)) == [("binding", GameSettings())]
    speaker = trained("c", SMALL, SPEAKER)
    assert games_played((speaker, BINDING), (speaker, b)) == [("binding", SMALL), ("b", LARGE)]
    assert games_played((speaker,), (POSDIS,)) == [("c", SMALL), ("posdis", SMALL)]


def test_registered_players_play_the_games_of_all_trained_ones() -> None:
    found = games_played((POSDIS, trained("a", SMALL)), (POSDIS, trained("b", LARGE)), (POSDIS, BINDING))
    assert found[2:] == [("binding", SMALL), ("binding", LARGE)]
    assert varying([((), SMALL), ((), LARGE)]) == ["dimensions", "most", "vocab_size", "length"]


def test_options_change_the_game_of_a_trained_player(caplog: pytest.LogCaptureFixture) -> None:
    a = trained("a", SMALL)
    found = games_played((POSDIS, a), shots="1,2", least=3)
    assert found == [("a", replace(SMALL, least=3)), ("a", replace(SMALL, least=3, shots=2))]
    assert caplog.messages == [
        "a learned with least=2; this game has least=3.",
        "a learned with least=2, shots=1; this game has least=3, shots=2.",
    ]
    ((_, near),) = games_played((POSDIS, a), compat="near32", query="all")
    assert (near.query, near.masks, near.samples, near.vocab_size) == ("all", "near32", 2, 4)
    with pytest.raises(UnknownNameError, match="near32"):
        SMALL.changed(compat="near3")


def test_another_partner_is_printed(caplog: pytest.LogCaptureFixture) -> None:
    tables_of([(POSDIS, trained("a", SMALL, partner="holistic"))], {})
    assert caplog.messages == ["a learned with the speaker 'holistic', and hears 'posdis' here."]
    caplog.clear()
    tables_of([(trained("p", SMALL, SPEAKER), trained("p", SMALL, partner="learned"))], {})
    assert not caplog.messages


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        pytest.param({"feedback": False}, "p, seed 1 cannot play this game. An attention", marks=pytest.mark.slow),
        ({"most": 9}, "needs a token per value"),
    ],
)
def test_a_player_that_cannot_play_is_an_error_before_any_game(changes: dict[str, int], why: str) -> None:
    agent = ChosenPlayer("p, seed 1", "memory", LISTENER, GameSettings(most=3))
    with pytest.raises(IncompatibleError, match=re.escape(why)):
        tables_of([(POSDIS, agent)], {**changes, "vocab_size": 5})


def _one(names: list[str], role: str) -> object:
    player = player_of(names[0], role).player
    return registry.get(player, role) if isinstance(player, str) else player
