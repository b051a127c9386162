"""`icy s2b eoa`: how easily new listeners acquire the languages of speakers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from icy.cli.groups import command
from icy.cli.options import Assignments, SpecOptions, together
from icy.cli.output import checked_rows_file, joined, print_table, write_rows
from icy.core.checks import seed_list
from icy.core.registry import SPEAKER
from icy.core.text import counted
from icy.s2b.agents.acquisition import LOSSES, AcquisitionSettings, ease_of_acquisition
from icy.s2b.settings import GameSettings

from .game_options import (
    SWEPT,
    as_published,
    counting,
    game_options,
    measured,
    measuring,
    output_options,
    plugins_and_quiet,
    settings_of,
)
from .players import ChosenPlayer, player_option, players_of, tables_of, varying, where_option

if TYPE_CHECKING:
    import pandas as pd

EPILOG = """\b
Examples:
  icy s2b eoa
  icy s2b eoa --speaker posdis,bosdis,holistic --vocab-size 15 --shots 1,2 --samples 4
  icy s2b eoa --speaker results/pairs --where seed=124 --values 2-3
  icy s2b eoa --speaker mine --plugin mine.py --learning-rate 0.003 --out rows.csv
"""
OF = SpecOptions(AcquisitionSettings)
CHANCE = 0.5  # also for a listener that hears nothing, exactly
LABELS = {"speaker": "speaker", "shots": "S", "samples": "O"}
LEARNING = ("epochs", "batch", "learning_rate", "width", "hidden", "loss", "impatient")

learning_options = together(
    *map(OF.option, ("epochs", "batch", "learning_rate", "width", "hidden")),
    OF.option("loss", type=click.Choice(LOSSES)),
    OF.option("impatient", "--impatient/--patient"),
)


@command("eoa", short_help="Measure how easily languages are acquired.", epilog=EPILOG)
@player_option("speaker", "posdis", several=True)
@where_option
@measured(episodes=20, seeds=3, row="episode")
@learning_options
@game_options(several=True)
@output_options
@plugins_and_quiet
@click.pass_context
def eoa_command(
    ctx: click.Context,
    /,
    speaker: tuple[str, ...],
    where: Assignments,
    episodes: int,
    seeds: int | str,
    format_: str,
    spread: str,
    out: str | None,
    quiet: bool,
    **given: Any,
) -> None:
    """Measure how easily new listeners acquire the languages of speakers (EoA): one row per speaker and game.

    In each episode the speaker is frozen. A new listener without memory is trained on its messages about the stimuli of
    the support, and evaluated on the stimuli of the query. It plays without distractors, so a listener that hears
    nothing is right in half of all games.
    """
    target = checked_rows_file(out)
    settings = AcquisitionSettings(**{name: given.pop(name) for name in LEARNING})
    numbers = seed_list(seeds)
    words = [word for given_at_once in speaker for word in given_at_once.split(",")]
    rows = tables_of([(one,) for one in players_of(words, SPEAKER, where)], settings_of(ctx, given), quiet)
    further = varying(rows)
    games = list(dict.fromkeys(game for _, game in rows))
    found: list[pd.DataFrame] = []

    def show() -> None:
        _print_acquired(found, games, further, settings, spread, format_)
        write_rows(joined(found), target, quiet)

    with measuring(found, len(rows), len(numbers) * episodes, show, quiet) as advance:
        for (player,), game in rows:
            found.append(_acquired(player, game, further, episodes, numbers, settings, advance))


def _acquired(
    speaker: ChosenPlayer,
    game: GameSettings,
    further: Sequence[str],
    episodes: int,
    seeds: Sequence[int],
    settings: AcquisitionSettings,
    advance: Callable[[int], None],
) -> pd.DataFrame:
    parts = [
        ease_of_acquisition(
            speaker.player, game, episodes=episodes, seed=seed, settings=settings, progress=counting(advance)
        ).assign(seed=seed)
        for seed in seeds
    ]
    facts = {"speaker": speaker.label, **{name: getattr(game, name) for name in (*SWEPT, *further)}}
    return joined(parts).assign(**facts, episodes=episodes)


def _print_acquired(
    found: Sequence[pd.DataFrame],
    games: Sequence[GameSettings],
    further: Sequence[str],
    settings: AcquisitionSettings,
    spread: str,
    format_: str,
) -> None:
    from icy.analysis.tables.s2b import evaluation_table, published_acquisition

    measures = ["zsct", "support", "yes"]
    rows = joined(found)
    labels = LABELS | {name: name for name in further}
    means = rows.groupby([*labels, "seed"], sort=False)[measures].mean().reset_index()
    means = means.assign(deaf=CHANCE, kept=CHANCE)
    beside = [] if further else published_acquisition(as_published(games))
    notes = [
        "query, support: accuracy of a new listener without memory for each episode, trained on the support alone; a "
        "listener that hears nothing is right in exactly half of its games",
        f"{counted(rows['episodes'].iloc[0], 'episode')} per seed; {counted(settings.epochs, 'epoch')}, batches of "
        f"{settings.batch}, learning rate {settings.learning_rate:g}",
    ]
    if beside:
        notes.append("MetaRG24: published values of pairs that learned both sides; ± standard deviation over 3 seeds")
    print_table(evaluation_table(means, labels, spread, notes, further=beside, title="ease of acquisition"), format_)
