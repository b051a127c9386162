"""`icy games show`: turns and messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from icy.cli.groups import command
from icy.cli.options import Assignments, choice_of, plot_option
from icy.cli.output import checked_plot, save_figure, stdout
from icy.core.escapes import in_a_line

from .game_changes import changes_of, game_options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from icy.games.comparison import GameAgents, ShownTurn

EPILOG = """\b
Examples:
  icy games show games --where seed=123
  icy games show ideal --game rule_length=4 --turns 3
  icy games show ideal --world shape --game rule_length=2 --game targets=8 --plot turns.png
"""


@command("show", short_help="Show turns and messages.", epilog=EPILOG)
@click.argument("agents", metavar="FOLDER|FILE|ideal|literal|holistic|random")
@click.option("--turns", "count", type=click.IntRange(min=1, max=100), default=3, show_default=True, metavar="N",
              help="Number of turns.")  # fmt: skip
@plot_option("Draw the objects of the turns.", old=("-o", "--out", "--save"))
@game_options
def show_command(agents: str, count: int, plot: str | None, where: Assignments, quiet: bool, **given: object) -> None:
    """Show some turns: the rule, the message, the most likely meaning of each word, and the chosen objects."""
    from icy.games.comparison import one_player, show_turns

    figure = None if plot is None else checked_plot(plot)
    player = one_player(agents, changes_of(given), **choice_of(where))
    console = stdout()
    console.print(
        in_a_line(f"{player.label}, {player.setup.world}, {player.distractor_kind} distractors"), style="bold"
    )
    turns = show_turns(player, count)
    for number, turn in enumerate(turns, 1):
        console.print()
        for line in turn.lines(number):
            console.print(in_a_line(line), markup=False)
    if figure is not None:
        save_figure(_draw_turns(player, turns), figure, quiet)


def _draw_turns(player: GameAgents, turns: list[ShownTurn]) -> Figure:
    """Return a picture of the objects of turns."""
    from icy.analysis.plots.games import plot_turns_of_images, plot_turns_of_values
    from icy.games.comparison import images_of, values_of

    rules, targets = [turn.rule for turn in turns], player.setup.turns.targets
    if (images := images_of(player, len(turns))) is not None:
        return plot_turns_of_images(images, rules, targets)
    objects, demanded = values_of(player, len(turns))
    return plot_turns_of_values(objects, demanded, rules, player.setup.made_world.attributes, targets)
