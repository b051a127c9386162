"""Players that a command names, the options of the games that they play, and these games."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from icy.cli.exit_codes import Interrupted
from icy.cli.options import (
    Assignments,
    Decorator,
    Several,
    Spread,
    agents_where,
    choice_of,
    fields_of,
    together,
)
from icy.cli.output import note
from icy.core.checks import parse_whole
from icy.core.errors import IncompatibleError, InvalidSettingError, quoted
from icy.core.fields import changed_fields
from icy.core.progress import progress as core_progress
from icy.core.progress import silence
from icy.core.registry import LISTENER, SPEAKER, registry
from icy.core.text import counted
from icy.s2b.settings import COMPATS, GameSettings

if TYPE_CHECKING:
    import pandas as pd

    from icy.s2b.agents.saved_networks import SavedAgent
    from icy.s2b.players.interface import Player


PARTNERS = {SPEAKER: "posdis", LISTENER: "binding"}  # of text models
SWEPT = ("shots", "samples", "distractors")
PUBLISHED = {"dimensions": 3, "least": 2, "most": 5, "distractors": 0}  # in the tables of MetaRG24
OF = fields_of(GameSettings)
TRAINED = "; or a results folder or a file of trained agents, which sets the default game."


class Values(click.ParamType):  # type: ignore[type-arg]
    """A number of values or a range, as in 5 or 2-5."""

    name = "values"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return the smallest and the largest number."""
        if isinstance(value, tuple):
            return value
        text, dash, end = str(value).partition("-")
        least, most = parse_whole(text), parse_whole(end if dash else text)
        if least is None or most is None:
            self.fail(f"{quoted(str(value))} is not a number of values (5) or a range (2-5).", param, ctx)
        return least, most


class Ratio(click.ParamType):  # type: ignore[type-arg]
    """A share from 0 to 1, or "even" for 1 / (number of decisions)."""

    name = "ratio"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        """Return the share; None for "even"."""
        if value == "even":
            return None
        try:
            return float(str(value))
        except ValueError:
            self.fail(f"'{value}' is not a share (0.5) or 'even'.", param, ctx)


def _game_options(several: bool) -> Decorator:
    """Add an option per setting of the game; with `several`, the options in SWEPT take lists."""
    swept: dict[str, Any] = {"cls": Several} if several else {"type": click.IntRange(min=0)}
    also = " Several values: 1,2,4." if several else ""
    usual = (
        *("dimensions", "rounds", "vocab_size", "length", "query", "query_order", "query_of", "view"),
        *("representation", "truncate", "masks"),
    )
    return together(
        *(OF[name].option(help=OF[name].text + also, metavar="N", **swept) for name in SWEPT),
        click.option("--values", type=Values(), metavar="N|N-M", default="2-5", show_default=True,
                     help="Numbers of values of a dimension, V_min-V_max."),
        click.option("--ratio", type=Ratio(), metavar="SHARE|even", default=0.5, show_default=True,
                     help="How often the listener of a descriptive game sees the target's meaning; even: 1 in K + 2."),
        *(OF[name].option() for name in usual),
        *(
            OF[name].option(f"--{name.replace('_', '-')}/--no-{name.replace('_', '-')}", show_default=True)
            for name in ("descriptive", "feedback", "permutation", "distinct", "listener_messages")
        ),
        *(OF[name].option() for name in ("threshold", "kind", "games", "split", "space_seed")),
        click.option("--compat", type=click.Choice(list(COMPATS)), help="Play as the authors' program does."),
    )  # fmt: skip


Game = Annotated[dict[str, Any], _game_options(several=False)]
Games = Annotated[dict[str, Any], _game_options(several=True)]


def settings_of(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the game from those on the command line."""
    if "values" not in chosen:
        return chosen
    least, most = chosen["values"]
    return {**{name: value for name, value in chosen.items() if name != "values"}, "least": least, "most": most}


def games_of(chosen: Mapping[str, Any], learned: GameSettings | None = None) -> list[GameSettings]:
    """Return the games of all combinations of swept settings; settings that are not accepted are reported here.

    Args:
        chosen: the settings from the command line.
        learned: the game in which an agent learned; its settings replace the usual defaults.
    """
    lists = {name: _numbers(name, chosen[name]) for name in SWEPT if name in chosen}
    made = GameSettings.of if learned is None else learned.changed
    return [made(**{**chosen, **dict(zip(lists, one, strict=True))}) for one in product(*lists.values())]


def _numbers(name: str, given: int | str) -> list[int]:
    found = [parse_whole(part.strip()) for part in str(given).split(",")]
    numbers = [number for number in found if number is not None]
    if len(numbers) < len(found):
        raise InvalidSettingError(f"--{name} must be a whole number, or several (1,2,4), not '{given}'.")
    return list(dict.fromkeys(numbers))


def as_published(games: Sequence[GameSettings]) -> list[tuple[int, int]]:
    """Return the shots S and samples O of the games that have the settings of MetaRG24's tables."""
    same = [g for g in games if all(getattr(g, name) == value for name, value in PUBLISHED.items())]
    return [(g.shots, g.samples) for g in same]


# -- options, progress and remarks of commands that play many episodes -------------------------------------------------


def _named(role: str, more: str) -> dict[str, Any]:
    """Return the metadata of the option for the player in a role."""
    return {
        "flags": (f"--{role}",),
        "metavar": "NAME",
        "completes": f"{role}s",
        "help": f"See `icy list players`{more}",
    }


Speaker = Annotated[str, _named(SPEAKER, TRAINED)]
Listener = Annotated[str, _named(LISTENER, TRAINED)]
Speakers = Annotated[tuple[str, ...], _named(SPEAKER, f"{TRAINED[:-1]}; repeatable.")]
Listeners = Annotated[tuple[str, ...], _named(LISTENER, f"{TRAINED[:-1]}; repeatable.")]
RegisteredSpeaker = Annotated[str | None, _named(SPEAKER, f".  [default: {PARTNERS[SPEAKER]}]")]
RegisteredListener = Annotated[str | None, _named(LISTENER, f".  [default: {PARTNERS[LISTENER]}]")]
Where = Annotated[Assignments, agents_where("model=pairs+ppo")]
Seeds = Annotated[int | str, {"cls": Several, "help": "Number of seeds, from 123, or a list."}]
Episodes = Annotated[int, {"help": "Number of episodes per seed."}]
SpreadOfEpisodes = Annotated[Spread, {"help": "Spread over seeds or episodes."}]


@contextlib.contextmanager
def progress(total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show the progress of long work, and yield a function to call with the number of further steps."""
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        report(done, total)

    with silence(quiet), core_progress("episodes") as report:
        yield advance


def counting(advance: Callable[[int], None]) -> Callable[[int, int], None]:
    """Convert a function that advances a bar to a progress callback, which gets the total done so far."""
    before = 0

    def count(done: int, total: int) -> None:
        nonlocal before
        advance(done - before)
        before = done

    return count


@contextlib.contextmanager
def measuring(
    found: Sequence[object], rows: int, episodes: int, show: Callable[[], None], quiet: bool
) -> Iterator[Callable[[int], None]]:
    """Show the progress of measuring `rows` of some episodes each, then the rows; after Ctrl-C, the measured rows."""
    try:
        with progress(rows * episodes, quiet) as advance:
            yield advance
    except KeyboardInterrupt:
        if found:
            show()
        raise Interrupted(f"{len(found)} of {counted(rows, 'row')} measured.") from None
    show()


@functools.cache
def floors(game: GameSettings, episodes: int, seeds: tuple[int, ...]) -> pd.DataFrame:
    """Return the scores of listeners that never listen, in a game; see `icy.s2b.never_listening`."""
    from icy.s2b import never_listening

    return never_listening(game, episodes=episodes, seeds=seeds)


def chance_text(rows: pd.DataFrame) -> str:
    """Return a sentence with the chance level of the games in `rows` and the number of episodes."""
    chance = ", ".join(f"{100 / n:.1f} % with {counted(n, 'answer')}" for n in sorted(rows["decisions"].unique()))
    return f"chance: {chance}; {counted(rows['episodes'].iloc[0], 'episode')} per seed"


# -- players -----------------------------------------------------------------------------------------------------------


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
    together = speaker.game is not None and speaker.label == listener.label  # when they learned
    if listener.partner is not None and listener.partner != speaker.player and not together:
        yield f"{listener.label} learned with the speaker '{listener.partner}', and hears '{speaker.label}' here."


def _spelled(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def varying(tables: Sequence[Table]) -> list[str]:
    """Return the settings, apart from SWEPT, that differ between the games of some tables."""
    games = [game for _, game in tables]
    names = [field.name for field in fields(GameSettings) if field.name not in SWEPT]
    return [name for name in names if len({getattr(game, name) for game in games}) > 1]
