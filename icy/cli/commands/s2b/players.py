"""Players that a command names, registered or trained, and the games that they play."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icy.cli import groups
from icy.cli.options import Assignments, Decorator, agents_option, choice_of
from icy.cli.output import note
from icy.core.errors import IncompatibleError
from icy.core.fields import changed_fields
from icy.core.registry import LISTENER, registry
from icy.s2b.settings import GameSettings

from .game_options import SWEPT, games_of

if TYPE_CHECKING:
    from icy.s2b.agents.saved_networks import SavedAgent
    from icy.s2b.players.interface import Player

where_option = agents_option("model=pairs+ppo")


def player_option(role: str, default: str, several: bool = False, trained: bool = True) -> Decorator:
    """Add the option for the player in a role; with `trained`, also for a trained player (`players_of`)."""
    also = "; or a results folder or a file of trained agents, which sets the default game" if trained else ""
    complete = groups.speakers if role == "speaker" else groups.listeners
    return click.option(
        f"--{role}", default=[default] if several else default, multiple=several, show_default=True, metavar="NAME",
        shell_complete=complete, help=f"See `icy list players`{also}" + ("; repeatable." if several else "."),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ChosenPlayer:
    """A player named by an option.

    Attributes:
        label: name in tables.
        player: registered name, or a trained player.
        role: "speaker" or "listener".
        game: the game in which a trained player learned; None for a registered player.
        partner: the speaker that a trained listener learned with; None for other players.
    """

    label: str
    player: str | Player
    role: str
    game: GameSettings | None = None
    partner: str | None = None


Table = tuple[tuple[ChosenPlayer, ...], GameSettings]  # players, and the game that they play


def players_of(names: Sequence[str], role: str, where: Assignments = ()) -> list[ChosenPlayer]:
    """Return players of a role: registered players by name, and trained players from their files.

    Raises:
        IcyError: an unknown name, or files without players of this role.
    """
    found: dict[str, ChosenPlayer] = {}
    for name in names:
        if _is_saved(name, role):
            from icy.s2b.agents.saved_networks import SavedAgent  # imports torch

            for agent in SavedAgent.find(name, **choice_of(where)):
                label = agent.label if agent.label not in found else f"{agent.label}, {name}"
                found[label] = _trained(agent, role, label)
        else:
            found |= {entry.name: ChosenPlayer(entry.name, entry.name, role) for entry in registry.match([name], role)}
    return list(found.values())


def player_of(name: str, role: str, where: Assignments = ()) -> ChosenPlayer:
    """Return the player with this name or file. Errors as for `players_of`; several players are an error too."""
    if not _is_saved(name, role):
        return ChosenPlayer(name, name, role)
    from icy.s2b.agents.saved_networks import one_agent  # imports torch

    agent = one_agent(name, **choice_of(where))
    return _trained(agent, role, agent.label)


def _trained(agent: SavedAgent, role: str, label: str) -> ChosenPlayer:
    return ChosenPlayer(
        label, agent.player(role), role, agent.game, agent.card["grammar"] if role == LISTENER else None
    )


def _is_saved(name: str, role: str) -> bool:
    """Return whether a name is the path of trained agents, existing or not, and not a registered player."""
    path = Path(name)
    is_path = path.is_absolute() or name.startswith((".", "~")) or path.suffix in (".safetensors", ".parquet")
    return registry.find(role, name) is None and (is_path or path.is_dir())


def tables_of(
    groups: Iterable[tuple[ChosenPlayer, ...]], chosen: Mapping[str, object], quiet: bool = False
) -> list[Table]:
    """Return the players of each table and their game: the game of a trained player, with the user's changes.

    The listener's game has precedence over the speaker's. Registered players play the games of all trained players.
    If a trained player learned in a different game, the differences are printed.

    Args:
        groups: groups of players that play together.
        chosen: the settings of the game from the command line.
        quiet: whether to print nothing.

    Raises:
        IncompatibleError: a player cannot play this game.
        InvalidSettingError: settings that are not accepted.
    """
    groups = list(groups)
    own = [next((one.game for one in reversed(group) if one.game is not None), None) for group in groups]
    all_games: list[GameSettings | None] = [game for game in dict.fromkeys(own) if game is not None]
    found: list[Table] = []
    for group, learned in zip(groups, own, strict=True):
        bases = all_games or [None] if learned is None else [learned]
        games = dict.fromkeys(game for base in bases for game in games_of(chosen, base))
        found += [(group, game) for game in games]
    for group, game in found:
        for player in group:
            _require_playable(player, game)
    if not quiet:
        for sentence in dict.fromkeys(text for group, game in found for text in _differences(group, game)):
            note(sentence)
    return found


def _require_playable(player: ChosenPlayer, game: GameSettings) -> None:
    """Raise an error if a player cannot play a game, by seating the player at an episode of the game."""
    from icy.s2b.game import BatchedGame
    from icy.s2b.players.interface import seated

    table = BatchedGame(game)
    table.reset(seeds=[0])
    try:
        seated(player.player, player.role, table)
    except IncompatibleError as error:
        if player.game is None:  # the error names the needs of a registered player
            raise
        raise IncompatibleError(f"{player.label} cannot play this game. {error}") from error


def _differences(group: tuple[ChosenPlayer, ...], game: GameSettings) -> Iterator[str]:
    """Yield the differences between a game and the games in which its trained players learned."""
    for player in group:
        if player.game is not None and player.game != game:
            now, then = changed_fields(game, player.game), changed_fields(player.game, game)
            yield f"{player.label} learned with {_spelled(then)}; this game has {_spelled(now)}."
    speaker, listener = group[0], group[-1]
    if listener.partner is not None and listener.partner != speaker.player and not _learned_together(speaker, listener):
        yield f"{listener.label} learned with the speaker '{listener.partner}', and hears '{speaker.label}' here."


def _learned_together(speaker: ChosenPlayer, listener: ChosenPlayer) -> bool:
    return speaker.game is not None and speaker.label == listener.label


def _spelled(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def varying(tables: Sequence[Table]) -> list[str]:
    """Return the settings, apart from SWEPT, that differ between the games of some tables."""
    games = [game for _, game in tables]
    names = [field.name for field in fields(GameSettings) if field.name not in SWEPT]
    return [name for name in names if len({getattr(game, name) for game in games}) > 1]
