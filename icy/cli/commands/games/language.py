"""`icy games language`: the messages of agents as a file, a translation and a picture."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import click

from icy.cli.groups import command
from icy.cli.options import Assignments, choice_of, file_option, plot_option
from icy.cli.output import checked_file, checked_plot, format_option, note, print_rows, save_figure
from icy.core.conventions import Convention
from icy.core.files import write_atomically

from .game_changes import changes_of, game_options

if TYPE_CHECKING:
    from icy.games.comparison import GameAgents

EPILOG = """\b
Examples:
  icy games language games --where seed=123
  icy games language games --where seed=123 --out said.jsonl --plot translation.png
  icy metrics said.jsonl -m cbm -m ami -m topsim
"""


@command("language", short_help="Translate agents' messages.", epilog=EPILOG)
@click.argument("agents", metavar="FOLDER|FILE|ideal|literal|holistic|random")
@click.option("--turns", "count", type=click.IntRange(min=2), default=None, metavar="N",
              help="Number of turns.  [default: the number of the agents' own evaluation, 1000]")  # fmt: skip
@file_option('Write one message and one phrase per line, ["w.w.0", "c.c"], as .jsonl.')
@plot_option("Draw the translation, as CBM24 figure 2.")
@format_option
@game_options
def language_command(
    agents: str,
    count: int | None,
    out: str | None,
    plot: str | None,
    format_: str,
    where: Assignments,
    quiet: bool,
    **given: object,
) -> None:
    """Print the best matching concept of each word of a language, and how often they match (concept best matching).

    `icy metrics` scores the file that --out writes; the program of the paper reads it too.
    """
    from icy.analysis.plots.translation import plot_translation
    from icy.games.comparison import one_player
    from icy.games.evaluation import matching

    target = None if out is None else checked_file(out, (".jsonl",), "Messages and phrases are")
    figure = None if plot is None else checked_plot(plot)
    player = one_player(agents, changes_of(given, count), **choice_of(where))
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
    if target is not None:
        write_atomically(target, said.to_lines().encode())
    if figure is not None:
        save_figure(plot_translation(match, groups=_attributes(player)), figure, quiet)


def _attributes(player: GameAgents) -> dict[Hashable, int]:
    """Return the number of each concept's attribute, for its color."""
    world = player.setup.made_world
    numbers = [attribute for attribute, size in enumerate(world.sizes) for _ in range(size)]
    concepts: tuple[Hashable, ...] = world.concepts
    return dict(zip(concepts, numbers, strict=True))
