"""`icy s2b`: play meta-referential games, train and evaluate players, and score languages and stimuli."""

from __future__ import annotations

import click

from icy.cli.options import group
from icy.cli.session import command_of_kind

from .eval import eoa_command, eval_command, language_command, stimuli_command
from .play import play_command, record_command
from .players import Values
from .text import text_command


def _set_values(ctx: click.Context, param: click.Parameter, value: tuple[int, int] | None) -> None:
    if value is not None:
        ctx.default_map = {**(ctx.default_map or {}), "least": value[0], "most": [str(value[1])]}


@command_of_kind("s2b", "train")
def train_command() -> None:
    """Examples:
      icy s2b train --quick
      icy s2b train --shots 1,2,4 --samples 1,4,16 --most 5 --seeds 3 -o agents
      icy s2b train --core joint --learner supervised --learner ppo --deaf
      icy s2b train --learner pair --most 3 --keep-models -o pairs
      icy s2b train --set learning_rate=0.002 --option heads=4 --game query=tss --dry-run

    Options with several values give a row per combination. After an interruption the same command resumes the training.
    `icy s2b eval --listener FOLDER` evaluates saved agents (--keep-models).
    """


_values = click.option(
    *("--values", "_values"),
    type=Values(),
    metavar="N|N-M",
    is_eager=True,
    expose_value=False,
    callback=_set_values,
    help="--least and --most in one, as in other commands of icy s2b: 5, or 2-5.",
)
_values(train_command)


@command_of_kind("recall", "recall")
def recall_command() -> None:
    """Examples:
      icy s2b recall --quick
      icy s2b recall --core pairs --core LSTM --seeds 3 -o recall
      icy s2b recall --core DNC --stimuli scs --observations 1000000
      icy s2b recall --compat near32 --task games_per_shot=5 --dry-run

    A game has two steps: a stimulus, and a question about its value in one dimension. The score is the accuracy in the
    second shot. After an interruption the same command resumes the training.
    """


@group(
    "s2b",
    [
        *(play_command, eval_command, train_command, recall_command, language_command, eoa_command, record_command),
        *(stimuli_command, text_command),
    ],
)
def s2b_command() -> None:
    """Play meta-referential games, and evaluate players (S2B; MetaRG22, MetaRG24).

    Two players talk about stimuli without knowing their meanings. Every episode has its own space and vocabulary. A
    support phase shows every value; a query phase asks for combinations that were never shown.

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
