"""`icy probe`: measure which grammars a model learns easily."""

from __future__ import annotations

from typing import Any

import click

from icy.cli import completion
from icy.cli.compare import COMPARE, Comparison
from icy.cli.groups import command
from icy.cli.options import REPRESENTATIONS, SHOWN, SpecOptions, given_by_user, plot_option, together
from icy.cli.session import Output, run_command
from icy.config.protocols import PROTOCOLS
from icy.config.settings import SYMBOLS
from icy.config.specs import ProbeSpec
from icy.experiments.plan import make_plan
from icy.experiments.results import ProbeResult
from icy.languages.splits import SPLITS

EPILOG = """\b
Examples:
  icy probe --model HierZero:GRU --grammar shufdet
  icy probe -m 'HierZero:*' -m receiver/FC2L --seeds 5 -o bias
  icy probe -m sender/FC1L --grammar rot --grammar rot+perm --quick
  icy probe -m RNNZero:LSTM --protocol budget --preset published --format latex
  icy probe -m sender/FC2L -g all --protocol generalise --split combinations
  icy probe -m HierZero:GRU --hidden 64,128,256
  icy probe -m HierZero:GRU -g emerged.csv -g perm
  icy probe -m HierZero:GRU -g all --track tensorboard
  icy probe -m all --dry-run
  icy probe -m MyModel --plugin mine.py --compare atlas --plot where.png
  icy probe -m sender/FC2L --protocol budget --preset published --compare perkins21/table13
  icy probe -m MyModel --plugin mine.py --option layers=3 --set learning_rate=0.002

\b
Concat is always trained, as the baseline. What has finished is kept in the results folder: after Ctrl-C, a crash,
or with more grammars or seeds, the same command trains only what is missing.
"""

_spec = SpecOptions(ProbeSpec)
WHAT = together(
    _spec.option(
        "model", "--model", "-m", multiple=True, required=True, metavar="NAME", shell_complete=completion.models
    ),
    _spec.option(
        "grammar",
        "--grammar",
        "-g",
        multiple=True,
        metavar="NAME",
        shell_complete=completion.files_and_grammars,
        help='names, chains (rot+perm) or wildcards, or files of languages (emerged.csv), repeatable; "all" is every '
        "grammar that the side can use.",
    ),
    _spec.several("protocol", "|".join(PROTOCOLS), PROTOCOLS),
    _spec.sizes(),
    _spec.word_seeds(),
    _spec.option("target", type=float),
    _spec.option("cap", type=float),
    _spec.option("max_updates", type=int),
    _spec.option("held_out", type=float),
    _spec.option("split", type=click.Choice(list(SPLITS)), metavar="|".join(SPLITS)),
    _spec.several("hidden", "E", help="hidden size E, or several, each a row of its own: 64,128."),
    _spec.several("representation", "|".join(REPRESENTATIONS), REPRESENTATIONS),
    _spec.option("symbols", type=click.Choice(SYMBOLS), metavar="|".join(SYMBOLS)),
    _spec.assignments("options", "--option", help="a further argument of the models."),
    _spec.training(),
)


@command("probe", epilog=EPILOG)
@WHAT
@_spec.running()
@_spec.runner()
@SHOWN
@click.option("--compare", metavar="WITH", help=COMPARE)
@plot_option("With --compare atlas: draw where the rows stand.")
@click.pass_context
def probe_command(ctx: click.Context, /, compare: str | None, plot: str | None, **given: Any) -> int:
    """Measure which grammars a model learns easily.

    Trains the model on every grammar, with several seeds, relative to concat; prints the bias table, and keeps all
    results in a folder.
    """
    output = Output.take(given)
    spec = ProbeSpec.asked(**given_by_user(ctx, given))
    plan = make_plan(spec)
    comparison = Comparison.asked(compare, plot, plan, output.format_)

    def show(result: ProbeResult) -> None:
        comparison.show(result, output.format_, output.spread, output.quiet)

    return run_command(ctx, plan, output, show, spec.track)
