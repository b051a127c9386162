"""`icy s2b eval`, `language`, `stimuli` and `eoa`: score players, speakers' languages, and stimuli."""

from __future__ import annotations

from typing import Annotated, Any

import click

from icy.cli import options
from icy.cli.output import save_figure
from icy.core.checks import number_or_text
from icy.experiments.players import evaluate_players, measure_acquisition, probe_speakers
from icy.s2b.agents.acquisition import LOSSES, AcquisitionSettings
from icy.s2b.language_probe import LANGUAGE

from .players import Episodes, Game, Games, Listeners, Seeds, Speakers, Where, settings_of

# -- eval --------------------------------------------------------------------------------------------------------------


@options.command("eval", short_help="Evaluate pairs of players.")
@options.plugin_option
def eval_command(
    *,
    speaker: Speakers = ("posdis",),
    listener: Listeners = ("binding",),
    where: Where = None,
    episodes: Episodes = 64,
    seeds: Seeds = 5,
    chosen: Games,
    output: options.RowsOutput,
) -> None:
    """Evaluate pairs of players: one row per pair and game.

    The column "query" is the zero-shot compositional test accuracy (ZSCT), in percent. "says yes" is how often the
    listener says that it sees the target's meaning, and "is yes" is how often it sees it. "deaf" is the highest query
    score of the listeners that never listen, in the same games: only a higher score shows communication.

    Examples:
      icy s2b eval
      icy s2b eval --listener binding --listener random --shots 1,2,4 --samples 1,4,16
      icy s2b eval --listener memory --samples 1,4
      icy s2b eval --listener mine --plugin mine.py --compat near32 --out scores.csv
    """
    how: dict[str, Any] = {"episodes": episodes, "seeds": seeds, "finished": output.show}
    evaluate_players(speaker, listener, where=where, **how, **settings_of(chosen))


# -- language ----------------------------------------------------------------------------------------------------------


@options.command("language", short_help="Score the languages of frozen speakers.")
@options.plugin_option
def language_command(
    *,
    speaker: Speakers = ("posdis",),
    where: Where = None,
    metric: Annotated[tuple[str, ...], {"flags": ("--metric", "-m"), "metavar": "NAME", "completes": "metrics"}] = (),
    episodes: int = 20,
    seed: int = 123,
    permutations: options.Permutations = None,
    chosen: Game,
    output: options.RowsOutput,
) -> None:
    """Score the compositionality of speakers' languages; each speaker is frozen at the end of an episode.

    Args:
        metric: metric to compute; repeatable.  [default: topsim, posdis, bosdis, tre, hce, cbm]
        episodes: number of episodes.
        seed: seed of the episodes.

    Examples:
      icy s2b language --speaker posdis --speaker bosdis --vocab-size 15
    """
    how: dict[str, Any] = {"episodes": episodes, "seed": seed, "permutations": permutations, "finished": output.show}
    probe_speakers(speaker, where=where, metrics=metric or LANGUAGE, **how, **settings_of(chosen))


# -- stimuli -----------------------------------------------------------------------------------------------------------


@options.command("stimuli", short_help="Score and draw stimuli.")
@options.plugin_option
def stimuli_command(
    *,
    seed: int = 123,
    rows: Annotated[str, {"metavar": "N|all|support"}] = "512",
    episodes: int = 5,
    chosen: Game,
    plot: options.PlotFile = None,
    output: options.PaperOutput,
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
    from icy.analysis.tables.s2b import scores_table
    from icy.experiments.players import draw_stimuli
    from icy.s2b.language_probe import CODE, disentanglement

    game, which = settings_of(chosen), number_or_text(rows)
    figure = None if plot is None else draw_stimuli(seed, **game)
    scores = disentanglement(rows=which, episodes=episodes, seed=seed, **game)
    scores = scores.assign(stimuli=f"{rows} drawn" if isinstance(which, int) else rows)
    output.print(scores_table(scores, "stimuli", CODE, output.spread, "disentanglement of stimuli"))
    if figure is not None:
        save_figure(figure, plot, output.quiet)


# -- eoa: the ease of acquisition --------------------------------------------------------------------------------------

OF = options.fields_of(AcquisitionSettings)
LEARNING = options.together(
    *(OF[name].option() for name in ("epochs", "batch", "learning_rate", "width", "hidden")),
    OF["loss"].option(type=click.Choice(LOSSES)),
    OF["impatient"].option("--impatient/--patient"),
)


@options.command("eoa", short_help="Measure how easily languages are acquired.")
@options.plugin_option
def eoa_command(
    *,
    speaker: Speakers = ("posdis",),
    where: Where = None,
    episodes: Episodes = 20,
    seeds: Seeds = 3,
    learning: Annotated[dict[str, Any], LEARNING],
    chosen: Games,
    output: options.RowsOutput,
) -> None:
    """Measure how easily new listeners acquire the languages of speakers (EoA): one row per speaker and game.

    In each episode the speaker is frozen. A new listener without memory is trained on its messages about the stimuli of
    the support, and evaluated on the stimuli of the query. It plays without distractors, so a listener that hears
    nothing is right in half of all games.

    Examples:
      icy s2b eoa
      icy s2b eoa --speaker posdis,bosdis,holistic --vocab-size 15 --shots 1,2 --samples 4
      icy s2b eoa --speaker results/pairs --where seed=124 --values 2-3
      icy s2b eoa --speaker mine --plugin mine.py --learning-rate 0.003 --out rows.csv
    """
    how: dict[str, Any] = {"episodes": episodes, "seeds": seeds, "learning": learning, "finished": output.show}
    measure_acquisition(speaker, where=where, **how, **settings_of(chosen))
