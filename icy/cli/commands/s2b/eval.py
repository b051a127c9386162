"""`icy s2b eval`, `language`, `stimuli` and `eoa`: score players, speakers' languages, and stimuli."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import click

from icy.cli.options import (
    OutFile,
    Permutations,
    PlotFile,
    Quiet,
    TableFormat,
    command,
    fields_of,
    plugin_option,
    together,
)
from icy.cli.output import checked_plot, checked_rows_file, joined, print_table, save_figure, write_rows
from icy.core.checks import number_or_text, seed_list
from icy.core.errors import InvalidSettingError
from icy.core.registry import LISTENER, SPEAKER, registry
from icy.core.text import counted
from icy.s2b.agents.acquisition import LOSSES, AcquisitionSettings, ease_of_acquisition
from icy.s2b.settings import GameSettings

from .players import (
    SWEPT,
    ChosenPlayer,
    Episodes,
    Game,
    Games,
    Listeners,
    Seeds,
    Speakers,
    SpreadOfEpisodes,
    Where,
    as_published,
    chance_text,
    counting,
    floors,
    measuring,
    players_of,
    progress,
    settings_of,
    tables_of,
    varying,
)

if TYPE_CHECKING:
    import pandas as pd


# -- eval --------------------------------------------------------------------------------------------------------------


@command("eval", short_help="Evaluate pairs of players.")
@plugin_option
def eval_command(
    *,
    speaker: Speakers = ("posdis",),
    listener: Listeners = ("binding",),
    where: Where = (),
    episodes: Episodes = 64,
    seeds: Seeds = 5,
    out: OutFile = None,
    chosen: Games,
    format_: TableFormat = "table",
    spread: SpreadOfEpisodes = "sd",
    quiet: Quiet = False,
) -> None:
    """Evaluate pairs of players: one row per pair and game.

    The column "query" is the zero-shot compositional test accuracy (ZSCT), in percent. "says yes" is how often the
    listener says that it sees the target's meaning, and "is yes" is how often it sees it. "deaf" is the highest query
    score of the listeners that never listen, in the same games: only a higher score shows communication.

    Args:
        out: write a row per seed, as csv or parquet.

    Examples:
      icy s2b eval
      icy s2b eval --listener binding --listener random --shots 1,2,4 --samples 1,4,16
      icy s2b eval --listener memory --samples 1,4
      icy s2b eval --listener mine --plugin mine.py --compat near32 --out scores.csv
    """
    from icy.analysis.tables.s2b import with_deaf

    target = checked_rows_file(out)
    numbers = seed_list(seeds)
    pairs = product(players_of(speaker, SPEAKER, where), players_of(listener, LISTENER, where))
    tables = tables_of(pairs, settings_of(chosen), quiet)
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


@command("language", short_help="Score the languages of frozen speakers.")
@plugin_option
def language_command(
    *,
    speaker: Speakers = ("posdis",),
    where: Where = (),
    metric: Annotated[tuple[str, ...], {"flags": ("--metric", "-m"), "metavar": "NAME", "completes": "metrics"}] = (),
    episodes: int = 20,
    seed: int = 123,
    permutations: Permutations = None,
    chosen: Game,
    format_: TableFormat = "table",
    spread: SpreadOfEpisodes = "sd",
    out: OutFile = None,
    quiet: Quiet = False,
) -> None:
    """Score the compositionality of speakers' languages; each speaker is frozen at the end of an episode.

    Args:
        metric: metric to compute; repeatable.  [default: topsim, posdis, bosdis, tre, hce, cbm]
        episodes: number of episodes.
        seed: seed of the episodes.
        out: write a row per episode, as csv or parquet.

    Examples:
      icy s2b language --speaker posdis --speaker bosdis --vocab-size 15
    """
    from icy.analysis.tables.s2b import scores_table
    from icy.s2b.language_probe import LANGUAGE, probe_language

    target = checked_rows_file(out)
    metrics = [entry.name for entry in registry.match(list(metric or LANGUAGE), "metric")]
    tables = tables_of([(one,) for one in players_of(speaker, SPEAKER, where)], settings_of(chosen), quiet)
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


@command("stimuli", short_help="Score and draw stimuli.")
@plugin_option
def stimuli_command(
    *,
    seed: int = 123,
    rows: Annotated[str, {"metavar": "N|all|support"}] = "512",
    episodes: int = 5,
    chosen: Game,
    plot: PlotFile = None,
    format_: TableFormat = "table",
    spread: SpreadOfEpisodes = "sd",
    quiet: Quiet = False,
) -> None:
    """Score how disentangled stimuli are, and draw an episode's stimuli.

    Args:
        seed: seed of the episodes, and of the drawn one.
        rows: stimuli to score: a number of draws, all stimuli of an episode, or its support.
        episodes: number of episodes to score.
        plot: draw an episode's stimuli, as MetaRG22 figure 3.

    Examples:
      icy s2b stimuli --values 5 --samples 5 --plot stimuli.png
    """
    from icy.analysis.plots.games import plot_stimuli
    from icy.analysis.tables.s2b import scores_table
    from icy.s2b.language_probe import CODE, disentanglement, sections_of

    figure = checked_plot(plot)
    game = GameSettings.of(**settings_of(chosen))
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


# -- eoa: the ease of acquisition --------------------------------------------------------------------------------------

OF = fields_of(AcquisitionSettings)
CHANCE = 0.5  # also for a listener that hears nothing, exactly
LABELS = {"speaker": "speaker", "shots": "S", "samples": "O"}
LEARNING = together(
    *(OF[name].option() for name in ("epochs", "batch", "learning_rate", "width", "hidden")),
    OF["loss"].option(type=click.Choice(LOSSES)),
    OF["impatient"].option("--impatient/--patient"),
)


@command("eoa", short_help="Measure how easily languages are acquired.")
@plugin_option
def eoa_command(
    *,
    speaker: Speakers = ("posdis",),
    where: Where = (),
    episodes: Episodes = 20,
    seeds: Seeds = 3,
    out: OutFile = None,
    learning: Annotated[dict[str, Any], LEARNING],
    chosen: Games,
    format_: TableFormat = "table",
    spread: SpreadOfEpisodes = "sd",
    quiet: Quiet = False,
) -> None:
    """Measure how easily new listeners acquire the languages of speakers (EoA): one row per speaker and game.

    In each episode the speaker is frozen. A new listener without memory is trained on its messages about the stimuli of
    the support, and evaluated on the stimuli of the query. It plays without distractors, so a listener that hears
    nothing is right in half of all games.

    Args:
        out: write a row per episode, as csv or parquet.

    Examples:
      icy s2b eoa
      icy s2b eoa --speaker posdis,bosdis,holistic --vocab-size 15 --shots 1,2 --samples 4
      icy s2b eoa --speaker results/pairs --where seed=124 --values 2-3
      icy s2b eoa --speaker mine --plugin mine.py --learning-rate 0.003 --out rows.csv
    """
    target = checked_rows_file(out)
    settings = AcquisitionSettings(**learning)
    numbers = seed_list(seeds)
    words = [word for given_at_once in speaker for word in given_at_once.split(",")]
    rows = tables_of([(one,) for one in players_of(words, SPEAKER, where)], settings_of(chosen), quiet)
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
