"""`icy s2b record`: write games to a file, a row per game."""

from __future__ import annotations

import click

from icy.cli.groups import command
from icy.cli.options import Assignments, file_option
from icy.cli.output import note
from icy.core.errors import StoreError
from icy.core.registry import LISTENER, SPEAKER
from icy.core.text import counted

from .game_options import counting, game_options, plugins_and_quiet, progress, settings_of
from .players import player_of, player_option, tables_of, where_option


@command(
    "record",
    short_help="Write a row per game to a file.",
    epilog="\b\nExamples:\n  icy s2b record --listener binding --episodes 100 -o games.parquet",
)
@player_option("speaker", "posdis")
@player_option("listener", "binding")
@where_option
@click.option("--episodes", type=int, default=64, show_default=True, help="Number of episodes.")
@click.option("--seed", type=int, default=123, show_default=True, help="Seed of the episodes.")
@game_options()
@file_option("File to write, as parquet.", required=True)
@plugins_and_quiet
@click.pass_context
def record_command(
    ctx: click.Context,
    /,
    speaker: str,
    listener: str,
    where: Assignments,
    episodes: int,
    seed: int,
    out: str,
    quiet: bool,
    **given: object,
) -> None:
    """Play episodes with two players, and write one row per game: stimuli, messages and decisions."""
    from icy.s2b.evaluation import checked_target, record, write

    target = checked_target(out)
    pair = player_of(speaker, SPEAKER, where), player_of(listener, LISTENER, where)
    (((speaks, listens), game),) = tables_of([pair], settings_of(ctx, given), quiet)
    with progress(episodes, quiet) as advance:
        games = record(speaks.player, listens.player, game, episodes=episodes, seed=seed, progress=counting(advance))
    try:
        write(games, target)
    except OSError as error:
        raise StoreError(f"Cannot write {target}: {error.strerror or error}.") from error
    if not quiet:
        note(f"Written: {target}, {counted(len(games), 'game')} of {counted(episodes, 'episode')}.")
