"""`icy probe`: measure which grammars a model learns easily."""

from __future__ import annotations

import click

from icy.cli.compare import COMPARE, ProbeComparison
from icy.cli.groups import command
from icy.cli.options import OUTPUT_OPTIONS, given_by_user, plot_option, spec_options
from icy.cli.session import OutputOptions, run_command
from icy.config.specs import ProbeSpec
from icy.experiments.plan import make_plan
from icy.experiments.results import ProbeResult

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
Concat is always trained, as the baseline. Finished runs are saved in the results folder: after Ctrl-C, a crash, or with
more grammars or seeds, the same command trains only missing runs.
"""


@command("probe", epilog=EPILOG)
@spec_options(ProbeSpec, last=("preset", "settings"))
@OUTPUT_OPTIONS
@click.option("--compare", metavar="WITH", help=COMPARE)
@plot_option("With --compare atlas: draw the rows among all models.")
@click.pass_context
def probe_command(ctx: click.Context, /, compare: str | None, plot: str | None, **given: object) -> int:
    """Measure which grammars a model learns easily.

    Trains the model on every grammar with several seeds, prints the bias table relative to concat, and saves all
    results in a folder.
    """
    output = OutputOptions.take(given)
    spec = ProbeSpec.asked(**given_by_user(ctx, given))
    plan = make_plan(spec)
    comparison = ProbeComparison.asked(compare, plot, plan, output.format_)

    def show(result: ProbeResult) -> None:
        comparison.show(result, output.format_, output.spread, output.quiet)

    return run_command(ctx, plan, output, show, spec.track)
