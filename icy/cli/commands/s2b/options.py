"""Options that the commands of `icy s2b` share."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icy.cli import completion
from icy.cli.options import (
    FORMATS,
    SPREADS,
    Assignment,
    Decorator,
    Several,
    SpecOptions,
    choice_of,
    given_by_user,
    plugin_option,
    together,
)
from icy.cli.output import note, paper_options, stderr
from icy.core.checks import parse_whole
from icy.core.errors import IncompatibleError, InvalidSettingError, quoted
from icy.core.fields import differing
from icy.core.registry import LISTENER, registry
from icy.core.text import counted
from icy.s2b.settings import COMPATS, GAME_KINDS, MASKS, ORDERS, OWNERS, QUERIES, SPLITS, VIEWS, GameSettings
from icy.s2b.stimuli import REPRESENTATIONS, TRUNCATIONS

if TYPE_CHECKING:
    import pandas as pd

    from icy.s2b.agents.saved_networks import SavedAgent
    from icy.s2b.players.interface import Player

SWEPT = ("shots", "samples", "distractors")
PUBLISHED = {"dimensions": 3, "least": 2, "most": 5, "distractors": 0}  # of the tables of MetaRG24

OF = SpecOptions(GameSettings)


class Values(click.ParamType):  # type: ignore[type-arg]
    """A number of values or a range, as in 5 or 2-5."""

    name = "values"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return the smallest and the largest number."""
        if isinstance(value, tuple):
            return value
        text, dash, end = str(value).partition("-")
        least, most = parse_whole(text), parse_whole(end if dash else text)
        if least is None or most is None:
            self.fail(f"{quoted(str(value))} is neither a number of values (5) nor a range (2-5).", param, ctx)
        return least, most


class Ratio(click.ParamType):  # type: ignore[type-arg]
    """A share from 0 to 1, or "even" for one over the number of decisions."""

    name = "ratio"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        """Return the share; None for "even"."""
        if value == "even":
            return None
        try:
            return float(value)
        except ValueError:
            self.fail(f"'{value}' is neither a share (0.5) nor 'even'.", param, ctx)


def game_options(several: bool = False) -> Decorator:
    """Add an option per setting of the game; with `several`, those of SWEPT take lists."""
    swept: dict[str, Any] = {"cls": Several} if several else {"type": click.IntRange(min=0)}
    also = " Several: 1,2,4." if several else ""
    described = {name: OF.described(name) for name in SWEPT}
    return together(
        *(
            click.option(
                f"--{name}", **swept, metavar="N", default=getattr(GameSettings, name), show_default=True,
                help=described[name] + also,
            )
            for name in SWEPT
        ),
        click.option("--values", type=Values(), metavar="N|N-M", default="2-5", show_default=True,
                     help="Numbers of values of a dimension, V_min-V_max."),
        OF.option("dimensions", type=int),
        OF.option("rounds", type=int),
        OF.option("vocab_size", type=int),
        OF.option("length", type=int),
        click.option("--ratio", type=Ratio(), metavar="SHARE|even", default=0.5, show_default=True,
                     help="How often the listener of a descriptive game sees the target's meaning; even: 1 in K + 2."),
        OF.option("query", type=click.Choice(QUERIES)),
        OF.option("query_order", type=click.Choice(ORDERS)),
        OF.option("query_of", type=click.Choice(OWNERS)),
        OF.option("view", type=click.Choice(VIEWS)),
        OF.option("representation", type=click.Choice(REPRESENTATIONS)),
        OF.option("truncate", type=click.Choice(TRUNCATIONS)),
        OF.option("masks", type=click.Choice(MASKS)),
        *(
            click.option(f"--{name.replace('_', '-')}/--no-{name.replace('_', '-')}", name,
                         default=getattr(GameSettings, name), show_default=True, help=OF.described(name))
            for name in ("descriptive", "feedback", "permutation", "distinct", "listener_messages")
        ),
        OF.option("threshold", type=int),
        OF.option("kind", type=click.Choice(GAME_KINDS)),
        OF.option("games", type=int),
        OF.option("split", type=click.Choice(SPLITS)),
        OF.option("space_seed", type=int),
        click.option("--compat", type=click.Choice(list(COMPATS)), help="Play as the authors' program does."),
    )  # fmt: skip


def player_option(role: str, default: str, several: bool = False, trained: bool = True) -> Decorator:
    """Add the option for the player in a role; with `trained`, also for one that was trained (`players_of`)."""
    also = "; or a results folder, or a file, of trained agents; their game is then the default" if trained else ""
    complete = completion.speakers if role == "speaker" else completion.listeners
    return click.option(
        f"--{role}", default=[default] if several else default, multiple=several, show_default=True, metavar="NAME",
        shell_complete=complete, help=f"See `icy list players`{also}" + ("; repeatable." if several else "."),
    )  # fmt: skip


where_option: Decorator = click.option(
    "--where",
    multiple=True,
    type=Assignment(),
    metavar="NAME=VALUE",
    help="Of the trained agents in a folder only these, as in seed=124 or model=pairs+ppo; repeatable.",
)


@dataclass(frozen=True, eq=False)
class Chosen:
    """A player that was asked for.

    Attributes:
        label: its name in tables.
        player: its registered name, or a trained player.
        role: "speaker" or "listener".
        game: the game in which it learned; None for a registered player.
        partner: the speaker that it learned to hear, if it is a listener that was trained.
    """

    label: str
    player: str | Player
    role: str
    game: GameSettings | None = None
    partner: str | None = None


def players_of(asked: Sequence[str], role: str, where: Sequence[tuple[str, Any]] = ()) -> list[Chosen]:
    """Return players of a role: registered ones by name, and trained ones from their files.

    Raises:
        IcyError: an unknown name, or files without such players.
    """
    found: dict[str, Chosen] = {}
    for name in asked:
        if _is_kept(name, role):
            from icy.s2b.agents.saved_networks import kept_agents  # imports torch

            for agent in kept_agents(name, **choice_of(where)):
                label = agent.label if agent.label not in found else f"{agent.label}, {name}"
                found[label] = _trained(agent, role, label)
        else:
            found |= {entry.name: Chosen(entry.name, entry.name, role) for entry in registry.match([name], role)}
    return list(found.values())


def player_of(asked: str, role: str, where: Sequence[tuple[str, Any]] = ()) -> Chosen:
    """Return the one player that a name or a file stands for. Errors as for `players_of`, and if there are several."""
    if not _is_kept(asked, role):
        return Chosen(asked, asked, role)
    from icy.s2b.agents.saved_networks import one_agent  # imports torch

    agent = one_agent(asked, **choice_of(where))
    return _trained(agent, role, agent.label)


def _trained(agent: SavedAgent, role: str, label: str) -> Chosen:
    return Chosen(label, agent.player(role), role, agent.game, agent.card["grammar"] if role == LISTENER else None)


def _is_kept(name: str, role: str) -> bool:
    """Whether a name is that of a file or folder of trained agents, there or not, and of no registered player."""
    path = Path(name)
    is_path = path.is_absolute() or name.startswith((".", "~")) or path.suffix in (".safetensors", ".parquet")
    return registry.find(role, name) is None and (is_path or path.is_dir())


def measured(episodes: int, seeds: int, row: str = "seed") -> Decorator:
    """Add the options of what is measured over episodes and seeds, by default so many, and written a row per `row`."""
    return together(
        click.option("--episodes", type=int, default=episodes, show_default=True, help="Number of episodes per seed."),
        click.option("--seeds", cls=Several, default=seeds, show_default=True, help="How many, from 123, or which."),
        click.option(
            "--out", "-o", type=click.Path(), metavar="FILE", help=f"Write a row per {row}, as csv or parquet."
        ),
    )


shown = together(
    paper_options,
    click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True),
    click.option(
        "--spread", type=click.Choice(SPREADS), default="sd", show_default=True, help="Spread over seeds or episodes."
    ),
)

plugins_and_quiet = together(
    plugin_option, click.option("--quiet", "-q", is_flag=True, help="No progress, no remarks.")
)


def settings_of(ctx: click.Context, given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the game that the user gave."""
    chosen = given_by_user(ctx, given)
    if "values" in chosen:
        chosen["least"], chosen["most"] = chosen.pop("values")
    return chosen


def games_of(chosen: Mapping[str, Any], learned: GameSettings | None = None) -> list[GameSettings]:
    """Return the games of all combinations of swept settings; settings that are not accepted are reported here.

    Args:
        chosen: the settings that the user gave.
        learned: the game in which an agent learned, which has the other settings; by default the usual ones.
    """
    lists = {name: _numbers(name, chosen[name]) for name in SWEPT if name in chosen}
    made = GameSettings.of if learned is None else learned.changed
    return [made(**{**chosen, **dict(zip(lists, one, strict=True))}) for one in product(*lists.values())]


def _numbers(name: str, given: int | str) -> list[int]:
    found = [parse_whole(part.strip()) for part in str(given).split(",")]
    numbers = [number for number in found if number is not None]
    if len(numbers) < len(found):
        raise InvalidSettingError(f"--{name} is a whole number, or several (1,2,4); not '{given}'.")
    return list(dict.fromkeys(numbers))


Table = tuple[tuple[Chosen, ...], GameSettings]  # players, and the game that they play


def tables_of(groups: Iterable[tuple[Chosen, ...]], chosen: Mapping[str, Any], quiet: bool = False) -> list[Table]:
    """Return the players of each table and their game: that in which a trained one learned, with the user's changes.

    The listener's game goes before the speaker's. Registered players play the games of all trained ones. The settings
    in which a game differs from the one that a trained player learned are printed.

    Args:
        groups: players that play together.
        chosen: the settings of the game that the user gave.
        quiet: whether nothing is printed.

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


def _require_playable(player: Chosen, game: GameSettings) -> None:
    """Seat a player at an episode of a game, which raises an error if it cannot play it."""
    from icy.s2b.game import BatchedGame
    from icy.s2b.players.interface import seated

    table = BatchedGame(game)
    table.reset(seeds=[0])
    try:
        seated(player.player, player.role, table)
    except IncompatibleError as error:
        if player.game is None:  # the message names the needs of a registered player
            raise
        raise IncompatibleError(f"{player.label} cannot play this game. {error}") from error


def _differences(group: tuple[Chosen, ...], game: GameSettings) -> Iterator[str]:
    """Yield how a game differs from those in which its trained players learned."""
    for player in group:
        if player.game is not None and player.game != game:
            now, then = differing(game, player.game), differing(player.game, game)
            yield f"{player.label} learned with {_spelled(then)}; this game has {_spelled(now)}."
    speaker, listener = group[0], group[-1]
    if listener.partner is not None and listener.partner != speaker.player and not _learned_together(speaker, listener):
        yield f"{listener.label} learned with the speaker '{listener.partner}', and hears '{speaker.label}' here."


def _learned_together(speaker: Chosen, listener: Chosen) -> bool:
    return speaker.game is not None and speaker.label == listener.label


def _spelled(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def varying(tables: Sequence[Table]) -> list[str]:
    """Return the settings, apart from SWEPT, in which the games of some tables differ."""
    games = [game for _, game in tables]
    names = [field.name for field in fields(GameSettings) if field.name not in SWEPT]
    return [name for name in names if len({getattr(game, name) for game in games}) > 1]


def as_published(games: Sequence[GameSettings]) -> list[tuple[int, int]]:
    """Return shots S and samples O of the games that are like those of MetaRG24's tables."""
    same = [g for g in games if all(getattr(g, name) == value for name, value in PUBLISHED.items())]
    return [(g.shots, g.samples) for g in same]


def load(plugin: Sequence[str]) -> None:
    """Load plug-in files."""
    for file in plugin:
        registry.load_file(file)


@contextlib.contextmanager
def progress(total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, and yield a function that advances it."""
    console = stderr()
    if quiet or not console.is_terminal:
        yield lambda more: None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bars:
        task = bars.add_task("playing", total=total)
        yield lambda more: bars.advance(task, more)


def counting(told: Callable[[int], None]) -> Callable[[int, int], None]:
    """Convert a function that advances a bar to a progress callback, which gets the total done so far."""
    before = 0

    def count(done: int, total: int) -> None:
        nonlocal before
        told(done - before)
        before = done

    return count


@functools.cache
def floors(game: GameSettings, episodes: int, seeds: tuple[int, ...]) -> pd.DataFrame:
    """Return what those score in a game who never listen, whoever plays it; see `icy.s2b.never_listening`."""
    from icy.s2b import never_listening

    return never_listening(game, episodes=episodes, seeds=seeds)


def chance_text(rows: pd.DataFrame) -> str:
    """Return what guessing scores in the games of some rows, and of how many episodes they are."""
    chance = ", ".join(f"{100 / n:.1f} % with {counted(n, 'answer')}" for n in sorted(rows["decisions"].unique()))
    return f"chance: {chance}; {counted(rows['episodes'].iloc[0], 'episode')} per seed"
