"""Options, progress and remarks of commands that play many episodes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from icy.cli.exit_codes import Interrupted
from icy.cli.options import (
    FORMATS,
    SPREADS,
    Decorator,
    Several,
    file_option,
    plugin_option,
    together,
)
from icy.cli.output import paper_options
from icy.core.progress import progress as core_progress
from icy.core.progress import silence
from icy.core.text import counted
from icy.s2b.settings import GameSettings

if TYPE_CHECKING:
    import pandas as pd


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
