"""`icy games`: train agents in multi-target games, evaluate them, and show their messages."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from icy.cli import options
from icy.cli.output import note, print_rows, save_figure, set_up_log, stdout
from icy.cli.session import command_of_kind
from icy.config.requests import option
from icy.core.conventions import Convention
from icy.core.files import write_atomically
from icy.core.text import in_a_line
from icy.core.types import Fields

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from icy.games.comparison import GameAgents, GameOverrides, ShownTurn

AGENTS = {"metavar": "FOLDER|FILE|ideal|literal|holistic|random"}
TURNS = {"type": click.IntRange(min=2), "flags": ("--turns",), "metavar": "N"}


@dataclass(frozen=True)
class GameChanges:
    """Changes of the agents' game, and further options of all commands that play it.

    Attributes:
        world: world of agents that know the rules.  [default: the trained agents' world, or thing]
        world_options: an argument of the world, as in canvas=32; repeatable.
        turn: a setting of turns that replaces the agents' own, as in rule_length=4, targets=5, distractor_kind=near;
            repeatable. See icy.games.TurnSettings.
    """

    where: Fields = option((), **options.agents_where("representation=qt"))
    world: str | None = option(None, metavar="NAME")
    world_options: Fields = option((), **options.ASSIGNMENTS)
    turn: Fields = option((), flags=("--game",), **options.ASSIGNMENTS)

    def overrides(self, count: int | None = None) -> GameOverrides:
        """Return the changes."""
        from icy.games.comparison import GameOverrides

        return GameOverrides(self.world, self.world_options, self.turn, count)

    def player(self, agents: str, count: int | None = None) -> GameAgents:
        """Return the agents that a command names."""
        from icy.games.comparison import one_player

        return one_player(agents, self.overrides(count), **self.where)


# -- train -------------------------------------------------------------------------------------------------------------


@command_of_kind("games", "train")
def train_command() -> None:
    """Examples:
      icy games train --quick
      icy games train --world thing --representation gs --representation qt --rule-length 1,4 --seeds 3 -o games
      icy games train --rule-length 4 --distractor-kind near --distractor-kind uniform --keep-models -o games
      icy games train --world shape --world-options canvas=32 --representation qt --updates 50000
      icy games train --sender HierZero:GRU --receiver RNN1L:GRU --set learning_rate=0.001 --dry-run
      icy games train --preset mugoodman21/concept --seeds 5

    Options with several values give one row per combination. The seeds and kinds of distractors of a row train as one
    stack. After an interruption the same command resumes the training. `icy games eval FOLDER` evaluates saved agents
    (--keep-models), and `icy metrics FOLDER` measures their languages.
    """


# -- eval --------------------------------------------------------------------------------------------------------------


@options.command("eval", short_help="Evaluate agents side by side.")
@options.plugin_option
def eval_command(
    agents: Annotated[tuple[str, ...], {"metavar": "[FOLDER|FILE|ideal|literal|holistic|random]..."}] = (),
    *,
    count: Annotated[int | None, TURNS] = None,
    game: GameChanges,
    output: options.RowsOutput,
) -> None:
    """Evaluate saved agents (--keep-models) and agents that know the rules.

    "ideal" has a word for every concept, "literal" says only the first word of a rule's concepts, "holistic" has one
    message for every phrase, and "random" sends random messages and answers. Trained agents play the game in which they
    learned, with the changes of --game. Agents that know the rules play the same game. Each game has a table.

    Args:
        count: number of turns.  [default: the number of the agents' own evaluation, 1000]

    Examples:
      icy games eval
      icy games eval ideal holistic --game rule_length=4 --world shape
      icy games eval games
      icy games eval games literal --where seed=123 --game distractor_kind=uniform --game targets=5
      icy games eval games --out scores.csv
    """
    from icy.analysis.tables.games import evaluation_table, evaluation_tables
    from icy.games.comparison import ORACLES, compare

    rows = compare(agents or tuple(ORACLES), game.overrides(count), **game.where)
    one_table = output.format_ in ("csv", "json")
    tables = [evaluation_table(rows, output.spread)] if one_table else evaluation_tables(rows, output.spread)
    output.print(*tables)
    output.write(rows)


# -- show --------------------------------------------------------------------------------------------------------------


@options.command("show", short_help="Show turns and messages.")
@options.plugin_option
def show_command(
    agents: Annotated[str, AGENTS],
    *,
    count: Annotated[int, {**TURNS, "type": click.IntRange(min=1, max=100)}] = 3,
    plot: Annotated[Path | None, {**options.PLOT, "old": ("-o", "--out", "--save")}] = None,
    game: GameChanges,
    quiet: options.Quiet = False,
) -> None:
    """Show some turns: the rule, the message, the most likely meaning of each word, and the chosen objects.

    Args:
        count: number of turns.
        plot: draw the objects of the turns.

    Examples:
      icy games show games --where seed=123
      icy games show ideal --game rule_length=4 --turns 3
      icy games show ideal --world shape --game rule_length=2 --game targets=8 --plot turns.png
    """
    from icy.games.comparison import show_turns

    set_up_log(quiet)
    player = game.player(agents)
    console = stdout()
    console.print(
        in_a_line(f"{player.label}, {player.setup.world}, {player.distractor_kind} distractors"), style="bold"
    )
    turns = show_turns(player, count)
    for number, turn in enumerate(turns, 1):
        console.print()
        for line in turn.lines(number):
            console.print(in_a_line(line), markup=False)
    if plot is not None:
        save_figure(_draw_turns(player, turns), plot, quiet)


def _draw_turns(player: GameAgents, turns: list[ShownTurn]) -> Figure:
    """Return a picture of the objects of turns."""
    from icy.analysis.plots.games import plot_turns_of_images, plot_turns_of_values
    from icy.games.comparison import images_of, values_of

    rules, targets = [turn.rule for turn in turns], player.setup.turns.targets
    if (images := images_of(player, len(turns))) is not None:
        return plot_turns_of_images(images, rules, targets)
    objects, demanded = values_of(player, len(turns))
    return plot_turns_of_values(objects, demanded, rules, player.setup.made_world.attributes, targets)


# -- language ----------------------------------------------------------------------------------------------------------


@options.command("language", short_help="Translate agents' messages.")
@options.plugin_option
def language_command(
    agents: Annotated[str, AGENTS],
    *,
    count: Annotated[int | None, TURNS] = None,
    out: Annotated[Path | None, options.written("Messages and phrases are", (".jsonl",))] = None,
    plot: options.PlotFile = None,
    format_: options.ListFormat = "table",
    game: GameChanges,
    quiet: options.Quiet = False,
) -> None:
    """Print the best matching concept of each word of a language, and how often they match (concept best matching).

    `icy metrics` scores the file that --out writes; the program of the paper reads it too.

    Args:
        count: number of turns.  [default: the number of the agents' own evaluation, 1000]
        out: write one message and one phrase per line, ["w.w.0", "c.c"], as .jsonl.
        plot: draw the translation, as CBM24 figure 2.

    Examples:
      icy games language games --where seed=123
      icy games language games --where seed=123 --out said.jsonl --plot translation.png
      icy metrics said.jsonl -m cbm -m ami -m topsim
    """
    from icy.analysis.plots.translation import plot_translation
    from icy.games.evaluation import matching

    set_up_log(quiet)
    player = game.player(agents, count)
    scores, said = player.evaluate()
    match = matching(said, player.setup.learning.unmatched, player.setup.word_name)
    rows = [[str(cell) for cell in row] for row in match.details["translation"].itertuples(index=False)]
    print_rows(["word", "concept", "together"], rows, format_)
    if not quiet:
        named = Convention("cbm", match.conventions).heading("CBM")
        note(
            f"{player.label}: {named} {match.value:.2f}, where random words have {scores['cbm_floor']:.2f} and a "
            f"random message for every phrase {scores['cbm_holistic']:.2f}; accuracy {scores['accuracy']:.3f}."
        )
    if out is not None:
        write_atomically(out, said.to_lines().encode())
    if plot is not None:
        save_figure(plot_translation(match, groups=_attributes(player)), plot, quiet)


def _attributes(player: GameAgents) -> dict[Hashable, int]:
    """Return the number of each concept's attribute, for its color."""
    world = player.setup.made_world
    numbers = [attribute for attribute, size in enumerate(world.sizes) for _ in range(size)]
    concepts: tuple[Hashable, ...] = world.concepts
    return dict(zip(concepts, numbers, strict=True))


@options.group("games", [train_command, eval_command, show_command, language_command])
def games_command() -> None:
    """Train and evaluate agents in multi-target games (CBM24; MuGoodman21).

    A sender sees targets that share a rule, such as "red and on the left", and sends a message. A receiver decides for
    every object whether it is a target. `icy reproduce cbm24/table1` measures the published rows again.

    Examples:
      icy games train --world thing --representation qt --rule-length 4 --sender HierZero:GRU
      icy games eval ideal literal random --game rule_length=4 --game distractor_kind=near
      icy games eval games --where representation=qt --game targets=5
      icy games show games --where seed=123 --turns 3
      icy games language games --where seed=123 --plot translation.png
    """
