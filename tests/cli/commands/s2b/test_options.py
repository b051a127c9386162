"""Options of `icy s2b`."""

from __future__ import annotations

import click
import pytest

from icy.cli.commands.s2b import s2b_command
from icy.s2b import GameSettings


@pytest.mark.parametrize("name", ["play", "eval", "language", "record", "stimuli"])
def test_options_are_the_settings_of_the_game(name: str) -> None:
    options = {p.name: p for p in s2b_command.commands[name].params if isinstance(p, click.Option)}
    assert vars(GameSettings()).keys() - {"least", "most"} <= set(options)
    assert all(option.help for name, option in options.items() if name not in ("format_", "episodes"))
