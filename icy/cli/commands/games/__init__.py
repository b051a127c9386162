"""`icy games`: train agents in multi-target games, evaluate them, and show their messages."""

from __future__ import annotations

import click

from icy.cli.groups import SuggestingGroup

from .eval import eval_command
from .language import language_command
from .show import show_command
from .train import train_command

EPILOG = """\b
Examples:
  icy games train --world thing --representation qt --rule-length 4 --sender HierZero:GRU
  icy games eval ideal literal random --game rule_length=4 --game distractor_kind=near
  icy games eval games --where representation=qt --game targets=5
  icy games show games --where seed=123 --turns 3
  icy games language games --where seed=123 --plot translation.png
"""


@click.group("games", cls=SuggestingGroup, epilog=EPILOG)
def games_command() -> None:
    """Train and evaluate agents in multi-target games (CBM24; MuGoodman21).

    A sender sees targets that share a rule, such as "red and on the left", and sends a message. A receiver decides for
    every object whether it is a target. `icy reproduce cbm24/table1` measures the published rows again.
    """


for _command in (train_command, eval_command, show_command, language_command):
    games_command.add_command(_command)
