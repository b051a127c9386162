"""Options that the commands of `icy s2b` share."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
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
from icy.cli.output import paper_options, stderr
from icy.core.checks import parse_whole
from icy.core.errors import quoted
from icy.core.registry import registry
from icy.core.text import counted
from icy.s2b.settings import COMPATS, GAME_KINDS, MASKS, ORDERS, OWNERS, QUERIES, SPLITS, VIEWS, GameSettings
from icy.s2b.stimuli import REPRESENTATIONS, TRUNCATIONS

if TYPE_CHECKING:
    import pandas as pd

    from icy.s2b.players.base import Player

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
    also = "; or a results folder, or a file, of trained agents" if trained else ""
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


def players_of(
    asked: Sequence[str], role: str, where: Sequence[tuple[str, Any]] = ()
) -> list[tuple[str, str | Player]]:
    """Return players of a role with their labels: registered ones by name, and trained ones from their files.

    Raises:
        IcyError: an unknown name, or files without such players.
    """
    found: dict[str, str | Player] = {}
    for name in asked:
        if _is_kept(name, role):
            from icy.s2b.agents.kept import kept_agents  # imports torch

            for agent in kept_agents(name, **choice_of(where)):
                label = agent.label if agent.label not in found else f"{agent.label}, {name}"
                found[label] = agent.player(role)
        else:
            found |= {entry.name: entry.name for entry in registry.match([name], role)}
    return list(found.items())


def player_of(asked: str, role: str, where: Sequence[tuple[str, Any]] = ()) -> str | Player:
    """Return the one player that a name or a file stands for. Errors as for `players_of`, and if there are several."""
    if not _is_kept(asked, role):
        return asked
    from icy.s2b.agents.kept import one_agent  # imports torch

    return one_agent(asked, **choice_of(where)).player(role)


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
