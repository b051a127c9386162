"""`icy s2b eval`, `language` and `stimuli`: score players, speakers' languages, and stimuli."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING

import click

from icy.cli import groups
from icy.cli.groups import command
from icy.cli.options import Assignments, file_option, permutations_option, plot_option
from icy.cli.output import checked_plot, checked_rows_file, joined, print_table, save_figure, write_rows
from icy.core.checks import number_or_text, seed_list
from icy.core.errors import InvalidSettingError
from icy.core.registry import LISTENER, SPEAKER, registry
from icy.core.text import counted
from icy.s2b.settings import GameSettings

from .game_options import (
    SWEPT,
    chance_text,
    counting,
    floors,
    game_options,
    measured,
    measuring,
    output_options,
    plugins_and_quiet,
    progress,
    settings_of,
)
from .players import ChosenPlayer, player_option, players_of, tables_of, varying, where_option

if TYPE_CHECKING:
    import pandas as pd


# -- eval --------------------------------------------------------------------------------------------------------------

EVAL_EPILOG = """\b
Examples:
  icy s2b eval
  icy s2b eval --listener binding --listener random --shots 1,2,4 --samples 1,4,16
  icy s2b eval --listener memory --samples 1,4
  icy s2b eval --listener mine --plugin mine.py --compat near32 --out scores.csv
"""


@command("eval", short_help="Evaluate pairs of players.", epilog=EVAL_EPILOG)
@player_option("speaker", "posdis", several=True)
@player_option("listener", "binding", several=True)
@where_option
@measured(episodes=64, seeds=5)
@game_options(several=True)
@output_options
@plugins_and_quiet
@click.pass_context
def eval_command(
    ctx: click.Context,
    /,
    speaker: tuple[str, ...],
    listener: tuple[str, ...],
    where: Assignments,
    episodes: int,
    seeds: int | str,
    format_: str,
    spread: str,
    out: str | None,
    quiet: bool,
    **given: object,
) -> None:
    """Evaluate pairs of players: one row per pair and game.

    The column "query" is the zero-shot compositional test accuracy (ZSCT), in percent. "says yes" is how often the
    listener says that it sees the target's meaning, and "is yes" is how often it sees it. "deaf" is the highest query
    score of the listeners that never listen, in the same games: only a higher score shows communication.
    """
    from icy.analysis.tables.s2b import with_deaf

    target = checked_rows_file(out)
    numbers = seed_list(seeds)
    pairs = product(players_of(speaker, SPEAKER, where), players_of(listener, LISTENER, where))
    tables = tables_of(pairs, settings_of(ctx, given), quiet)
    further = varying(tables)
    found: list[pd.DataFrame] = []

    def show() -> None:
        _print_evaluation(found, further, spread, format_)
        write_rows(joined(found), target, quiet)

    with measuring(found, len(tables), len(numbers) * episodes, show, quiet) as advance:
        for (speaks, listens), game in tables:
            rows = _evaluated(speaks, listens, game, further, episodes, numbers, advance)
            found.append(with_deaf(rows, floors(game, episodes, tuple(numbers))))


def _evaluated(
    speaker: ChosenPlayer,
    listener: ChosenPlayer,
    game: GameSettings,
    further: Sequence[str],
    episodes: int,
    seeds: Sequence[int],
    advance: Callable[[int], None],
) -> pd.DataFrame:
    from icy.s2b import evaluate

    rows = evaluate(
        speaker.player, listener.player, game, episodes=episodes, seeds=seeds, progress=counting(advance)
    ).table()
    facts = {"speaker": speaker.label, "listener": listener.label}
    facts |= {name: getattr(game, name) for name in (*SWEPT, *further)}
    return rows.assign(**facts, decisions=game.decisions, episodes=episodes)


def _print_evaluation(found: Sequence[pd.DataFrame], further: Sequence[str], spread: str, format_: str) -> None:
    from icy.analysis.tables.s2b import evaluation_table

    rows = joined(found)
    labels = {"speaker": "speaker", "listener": "listener", "shots": "S", "samples": "O", "distractors": "K"}
    labels |= {name: name for name in further}
    notes = [chance_text(rows)]
    if rows["illegal"].any():
        notes.append(f"illegal actions in an episode: {rows['illegal'].mean():.2f} on average")
    print_table(evaluation_table(rows, labels, spread, notes), format_)


# -- language ----------------------------------------------------------------------------------------------------------


@command(
    "language",
    short_help="Score the languages of frozen speakers.",
    epilog="\b\nExamples:\n  icy s2b language --speaker posdis --speaker bosdis --vocab-size 15",
)
@player_option("speaker", "posdis", several=True)
@where_option
@click.option("--metric", "-m", "metric", multiple=True, metavar="NAME", shell_complete=groups.metrics,
              help="Metric to compute; repeatable.  [default: topsim, posdis, bosdis, tre, hce, cbm]")  # fmt: skip
@click.option("--episodes", type=int, default=20, show_default=True, help="Number of episodes.")
@click.option("--seed", type=int, default=123, show_default=True, help="Seed of the episodes.")
@permutations_option
@game_options()
@output_options
@file_option("Write a row per episode, as csv or parquet.")
@plugins_and_quiet
@click.pass_context
def language_command(
    ctx: click.Context,
    /,
    speaker: tuple[str, ...],
    where: Assignments,
    metric: tuple[str, ...],
    episodes: int,
    seed: int,
    permutations: int | None,
    format_: str,
    spread: str,
    out: str | None,
    quiet: bool,
    **given: object,
) -> None:
    """Score the compositionality of speakers' languages; each speaker is frozen at the end of an episode."""
    from icy.analysis.tables.s2b import scores_table
    from icy.s2b.language_probe import LANGUAGE, probe_language

    target = checked_rows_file(out)
    metrics = [entry.name for entry in registry.match(list(metric or LANGUAGE), "metric")]
    tables = tables_of([(one,) for one in players_of(speaker, SPEAKER, where)], settings_of(ctx, given), quiet)
    further = varying(tables)
    found = []
    with progress(len(tables), quiet) as advance:
        for (player,), game in tables:
            rows = probe_language(
                player.player, game, metrics=metrics, episodes=episodes, seed=seed, permutations=permutations
            )
            facts = [f"{name}={getattr(game, name)}" for name in further]
            found.append(rows.assign(speaker=", ".join([player.label, *facts])))
            advance(1)
    print_table(scores_table(joined(found), "speaker", metrics, spread, "languages of frozen speakers"), format_)
    write_rows(joined(found), target, quiet)


# -- stimuli -----------------------------------------------------------------------------------------------------------


@command(
    "stimuli",
    short_help="Score and draw stimuli.",
    epilog="\b\nExamples:\n  icy s2b stimuli --values 5 --samples 5 --plot stimuli.png",
)
@click.option("--seed", type=int, default=123, show_default=True, help="Seed of the episodes, and of the drawn one.")
@click.option(
    "--rows",
    default="512",
    show_default=True,
    metavar="N|all|support",
    help="Stimuli to score: a number of draws, all stimuli of an episode, or its support.",
)
@click.option("--episodes", type=int, default=5, show_default=True, help="Number of episodes to score.")
@game_options()
@plot_option("Draw an episode's stimuli, as MetaRG22 figure 3.")
@output_options
@plugins_and_quiet
@click.pass_context
def stimuli_command(
    ctx: click.Context,
    /,
    seed: int,
    rows: str,
    episodes: int,
    plot: str | None,
    format_: str,
    spread: str,
    quiet: bool,
    **given: object,
) -> None:
    """Score how disentangled stimuli are, and draw an episode's stimuli."""
    from icy.analysis.plots.games import plot_stimuli
    from icy.analysis.tables.s2b import scores_table
    from icy.s2b.language_probe import CODE, disentanglement, sections_of

    figure = None if plot is None else checked_plot(plot)
    game = GameSettings.of(**settings_of(ctx, given))
    if game.representation != "scs":
        raise InvalidSettingError("One-hot stimuli have no densities; take representation scs to draw densities.")
    which = number_or_text(rows)
    scores = disentanglement(game, rows=which, episodes=episodes, seed=seed)
    scores = scores.assign(stimuli=f"{rows} drawn" if isinstance(which, int) else rows)
    print_table(scores_table(scores, "stimuli", CODE, spread, "disentanglement of stimuli"), format_)
    if figure is not None:
        sections = sections_of(game, seed)
        sizes = sections.spaces.sizes[0]
        title = f"seed {seed}: {'x'.join(map(str, sizes.tolist()))} values, {counted(game.samples, 'sample')} each"
        drawn = plot_stimuli(sizes, sections.means[0], sections.deviations[0], sections.samples[0], title)
        save_figure(drawn, figure, quiet)
