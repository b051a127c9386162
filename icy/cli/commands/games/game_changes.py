"""Options that `icy games eval`, `show` and `language` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from icy.cli.options import Assignment, agents_option, assigned, plugin_files, together
from icy.core.registry import registry

if TYPE_CHECKING:
    from icy.games.comparison import GameOverrides

game_options = together(
    agents_option("representation=qt"),
    click.option("--world", default=None, metavar="NAME",
                 help="World of agents that know the rules.  [default: the trained agents' world, or thing]"),
    click.option("--world-options", "world_options", multiple=True, type=Assignment(), metavar="NAME=VALUE",
                 help="An argument of the world, as in canvas=32; repeatable."),
    click.option("--game", "turn", multiple=True, type=Assignment(), metavar="NAME=VALUE",
                 help="A setting of turns that replaces the agents' own, as in rule_length=4, targets=5, "
                      "distractor_kind=near; repeatable. See icy.games.TurnSettings."),
    plugin_files,
    click.option("--quiet", "-q", is_flag=True, help="Print no progress and no remarks."),
)  # fmt: skip


def changes_of(given: dict[str, Any], count: int | None = None) -> GameOverrides:
    """Take the options of the game out of a command's arguments, and load plug-in files."""
    from icy.games.comparison import GameOverrides

    registry.load_files(given.pop("plugin"))
    turns = assigned("--game", given.pop("turn"))
    options = assigned("--world-options", given.pop("world_options"))
    return GameOverrides(given.pop("world"), options, turns, count)
