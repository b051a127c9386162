"""Options for the settings of the game, and the games that they make."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import click

from icy.cli.exit_codes import Interrupted
from icy.cli.options import (
    FORMATS,
    SPREADS,
    Decorator,
    Several,
    SpecOptions,
    file_option,
    given_by_user,
    plugin_option,
    together,
)
from icy.cli.output import paper_options
from icy.core.checks import parse_whole
from icy.core.errors import InvalidSettingError, quoted
from icy.core.progress import progress as core_progress
from icy.core.progress import silence
from icy.core.text import counted
from icy.s2b.settings import COMPATS, GameSettings

if TYPE_CHECKING:
    import pandas as pd


SWEPT = ("shots", "samples", "distractors")
PUBLISHED = {"dimensions": 3, "least": 2, "most": 5, "distractors": 0}  # in the tables of MetaRG24
OF = SpecOptions(GameSettings)


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


def game_options(several: bool = False) -> Decorator:
    """Add an option per setting of the game; with `several`, the options in SWEPT take lists."""
    swept: dict[str, Any] = {"cls": Several} if several else {"type": click.IntRange(min=0)}
    also = " Several values: 1,2,4." if several else ""
    return together(
        *(OF.option(name, help=OF.described(name) + also, metavar="N", **swept) for name in SWEPT),
        click.option("--values", type=Values(), metavar="N|N-M", default="2-5", show_default=True,
                     help="Numbers of values of a dimension, V_min-V_max."),
        *map(OF.option, ("dimensions", "rounds", "vocab_size", "length")),
        click.option("--ratio", type=Ratio(), metavar="SHARE|even", default=0.5, show_default=True,
                     help="How often the listener of a descriptive game sees the target's meaning; even: 1 in K + 2."),
        *map(OF.option, ("query", "query_order", "query_of", "view", "representation", "truncate", "masks")),
        *(
            OF.option(name, f"--{name.replace('_', '-')}/--no-{name.replace('_', '-')}", show_default=True)
            for name in ("descriptive", "feedback", "permutation", "distinct", "listener_messages")
        ),
        *map(OF.option, ("threshold", "kind", "games", "split", "space_seed")),
        click.option("--compat", type=click.Choice(list(COMPATS)), help="Play as the authors' program does."),
    )  # fmt: skip


def settings_of(ctx: click.Context, given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the game from the command line."""
    chosen = given_by_user(ctx, given)
    if "values" in chosen:
        chosen["least"], chosen["most"] = chosen.pop("values")
    return chosen


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


def measured(episodes: int, seeds: int, row: str = "seed") -> Decorator:
    """Add the options of measurements: episodes and seeds, with these defaults, and a file with a row per `row`."""
    return together(
        click.option("--episodes", type=int, default=episodes, show_default=True, help="Number of episodes per seed."),
        click.option(
            "--seeds", cls=Several, default=seeds, show_default=True, help="Number of seeds, from 123, or a list."
        ),
        file_option(f"Write a row per {row}, as csv or parquet."),
    )


output_options = together(
    paper_options,
    click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True),
    click.option(
        "--spread", type=click.Choice(SPREADS), default="sd", show_default=True, help="Spread over seeds or episodes."
    ),
)
plugins_and_quiet = together(
    plugin_option, click.option("--quiet", "-q", is_flag=True, help="Print no progress and no remarks.")
)


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
