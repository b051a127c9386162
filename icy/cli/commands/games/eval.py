"""`icy games eval`: evaluate agents of multi-target games side by side."""

from __future__ import annotations

import click

from icy.cli.groups import command
from icy.cli.options import FORMATS, SPREADS, Assignments, choice_of, file_option
from icy.cli.output import checked_rows_file, paper_options, print_table, stderr, write_rows
from icy.cli.session import set_up_log
from icy.core.progress import silence

from .game_changes import changes_of, game_options

EPILOG = """\b
Examples:
  icy games eval
  icy games eval ideal holistic --game rule_length=4 --world shape
  icy games eval games
  icy games eval games literal --where seed=123 --game distractor_kind=uniform --game targets=5
  icy games eval games --out scores.csv
"""


@command("eval", short_help="Evaluate agents side by side.", epilog=EPILOG)
@click.argument("agents", nargs=-1, metavar="[FOLDER|FILE|ideal|literal|holistic|random]...")
@click.option("--turns", "count", type=click.IntRange(min=2), default=None, metavar="N",
              help="Number of turns.  [default: the number of the agents' own evaluation, 1000]")  # fmt: skip
@paper_options
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--spread", type=click.Choice(SPREADS), default="sd", show_default=True, help="Spread over seeds.")
@file_option("Write one row per seed, as csv or parquet.")
@game_options
def eval_command(
    agents: tuple[str, ...],
    count: int | None,
    format_: str,
    spread: str,
    out: str | None,
    where: Assignments,
    quiet: bool,
    **given: object,
) -> None:
    """Evaluate saved agents (--keep-models) and agents that know the rules.

    "ideal" has a word for every concept, "literal" says only the first word of a rule's concepts, "holistic" has one
    message for every phrase, and "random" sends random messages and answers. Trained agents play the game in which they
    learned, with the changes of --game. Agents that know the rules play the same game. Each game has a table.
    """
    from icy.analysis.tables.games import evaluation_table, evaluation_tables
    from icy.games.comparison import ORACLES, compare

    target = checked_rows_file(out)
    set_up_log(stderr(), quiet, 0)
    with silence(quiet):
        rows = compare(agents or tuple(ORACLES), changes_of(given, count), **choice_of(where))
    one_table = format_ in ("csv", "json")
    for place, table in enumerate([evaluation_table(rows, spread)] if one_table else evaluation_tables(rows, spread)):
        if place:
            click.echo()
        print_table(table, format_)
    write_rows(rows, target, quiet)
