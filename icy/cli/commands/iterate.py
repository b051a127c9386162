"""`icy iterate`: pass languages from learner to learner."""

from __future__ import annotations

import click

from icy.cli.groups import command
from icy.cli.options import OUTPUT_OPTIONS, given_by_user, plot_option, spec_options
from icy.cli.output import checked_plot, save_figure
from icy.cli.session import OutputOptions, print_by_protocol, run_command
from icy.config.specs import ChainSpec
from icy.experiments.plan import make_plan
from icy.experiments.results import ProbeResult

EPILOG = """\b
Examples:
  icy iterate --model FC2L --grammar perm --quick
  icy iterate --model 'RNNZero:*' --grammar concat,rot,hol --bottleneck 0.25,0.75 --chains 10
  icy iterate --model FC2L --grammar mine.csv --transmission sampled --plot chains.png
  icy iterate --model FC2L --receiver RNN1L:GRU --grammar concat,hol --interaction 0,200

\b
The table shows survival: the share of the tokens that are the same in the first and the last language. Learners stop
at the target, an accuracy on the meanings that they see, so that equally trained learners are compared. Finished chains
are kept in the results folder: after Ctrl-C, a crash, or with more languages or chains, the same command trains only
missing chains. The folder also keeps the language of every generation, languages/KEY-NN.npz, which `icy metrics` reads.
"""

FIRST = (
    *("model", "receiver", "grammar", "generations", "chains", "bottleneck", "transmission", "target", "updates"),
    *("interaction", "population", "replacement", "scheme"),
)
LAST = ("options", "receiver_options", "preset", "settings")


@command("iterate", epilog=EPILOG)
@spec_options(ChainSpec, FIRST, LAST)
@OUTPUT_OPTIONS
@plot_option("Draw survival, distinct messages and topsim over generations.")
@click.pass_context
def iterate_command(ctx: click.Context, /, plot: str | None, **given: object) -> int:
    """Pass languages from learner to learner, and measure how much of the first language survives.

    Each learner is a new sender, receiver or pair. It trains on the messages of the learner before it for a part of the
    meanings, the bottleneck, and then speaks for all meanings.
    """
    output = OutputOptions.take(given)
    figure = None if plot is None else checked_plot(plot)
    spec = ChainSpec.asked(**given_by_user(ctx, given))

    def show(result: ProbeResult) -> None:
        from icy.analysis.plots import chain_curves

        print_by_protocol(result, output.format_, output.spread)
        if figure is not None:
            save_figure(chain_curves(result), figure, output.quiet)

    return run_command(ctx, make_plan(spec), output, show, spec.track)
