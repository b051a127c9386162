"""`icy s2b`: play meta-referential games, train and evaluate players, and score languages and stimuli."""

from __future__ import annotations

import click

from icy.cli.groups import SuggestingGroup

from .acquire import eoa_command
from .eval import eval_command, language_command, stimuli_command
from .play import play_command
from .record import record_command
from .text import text_command
from .train import recall_command, train_command

EPILOG = """\b
Examples:
  icy s2b play
  icy s2b eval --speaker posdis --listener binding --shots 1,2 --samples 1,4
  icy s2b train --shots 1,2,4 --seeds 3
  icy s2b recall --core pairs --seeds 3
  icy s2b record --listener binding --episodes 100 -o games.parquet
  icy s2b language --speaker posdis --speaker holistic
  icy s2b eoa --speaker posdis,holistic --shots 1,2 --samples 4
  icy s2b stimuli --samples 16 --plot stimuli.png
  icy s2b text --model http://localhost:8000/v1#llama --dry-run
"""


@click.group("s2b", cls=SuggestingGroup, epilog=EPILOG)
def s2b_command() -> None:
    """Play meta-referential games, and evaluate players (S2B; MetaRG22, MetaRG24).

    Two players talk about stimuli without knowing their meanings. Every episode has its own space and vocabulary. A
    support phase shows every value; a query phase asks for combinations that were never shown.
    """


for _command in (
    play_command,
    eval_command,
    train_command,
    recall_command,
    language_command,
    eoa_command,
    record_command,
    stimuli_command,
    text_command,
):
    s2b_command.add_command(_command)
