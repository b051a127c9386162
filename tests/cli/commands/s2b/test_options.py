"""Options of `icy s2b`."""

from __future__ import annotations

import click
import pytest

from icy.cli.commands.s2b import s2b_command
from icy.cli.commands.s2b.options import player_of, players_of
from icy.core.errors import IcyError
from icy.core.registry import LISTENER, registry
from icy.s2b import GameSettings


@pytest.mark.parametrize("name", ["play", "eval", "language", "record", "stimuli"])
def test_options_are_the_settings_of_the_game(name: str) -> None:
    options = {p.name: p for p in s2b_command.commands[name].params if isinstance(p, click.Option)}
    assert vars(GameSettings()).keys() - {"least", "most"} <= set(options)
    assert all(option.help for name, option in options.items() if name not in ("format_", "episodes"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/no/folder", "no file or folder /no/folder"),
        ("./none", "no file or folder none"),
        ("none.safetensors", "none.safetensors cannot be read"),
        ("none", "No listener is called 'none'"),
    ],
)
def test_a_path_where_nothing_is_is_not_taken_for_a_name(name: str, said: str) -> None:
    for players in (players_of, _one):
        with pytest.raises(IcyError, match=said):
            players([name], LISTENER)


def _one(names: list[str], role: str) -> object:
    player = player_of(names[0], role)
    return registry.get(player, role) if isinstance(player, str) else player
