"""`icy e2e`: train a sender and a receiver together."""

from __future__ import annotations

from pathlib import Path

import click

from icy.cli.groups import command
from icy.cli.options import OUTPUT_OPTIONS, given_by_user, plot_option, spec_options
from icy.cli.output import checked_plot, note, save_figure
from icy.cli.session import OutputOptions, print_by_protocol, run_command
from icy.config.specs import EndToEndSpec
from icy.experiments.plan import make_plan
from icy.experiments.results import EndToEndResult, ProbeResult

EPILOG = """\b
Examples:
  icy e2e --sender HierZero:GRU --receiver Hier:GRU
  icy e2e --sender FC2L --receiver RNN1L:GRU --representation discr --quick
  icy e2e --sender RNNZero:GRU --receiver RNN:GRU --pretrain perm --pretrain rot --plot drift.png
  icy e2e --sender FC1L --sender FC2L --receiver FC --updates 5000 --format csv
  icy e2e --sender FC1L --receiver FC1L --pretrain perm --quick --pretrained kept
  icy e2e --sender FC2L --receiver RNN1L:GRU --senders 3 --receivers 3 --quick
  icy e2e --sender FC2L --receiver RNN1L:GRU --max-length 5 --length-cost lazy --representation gumb --quick

\b
From scratch (--pretrain none) the table shows accuracy and topsim at the end. After pre-training it also shows how well
each side still knows its language. Finished runs are saved in the results folder: after Ctrl-C, a crash, or with more
grammars or seeds, the same command trains only missing runs. The folder also holds the emerged languages; in Python,
icy.EndToEndResult.load(FOLDER).language(...) reads a language.
"""

FIRST = ("sender", "receiver", "pretrain", "representation", "symbols")
LAST = ("sender_options", "receiver_options", "preset", "settings")


@command("e2e", epilog=EPILOG)
@spec_options(EndToEndSpec, FIRST, LAST)
@OUTPUT_OPTIONS
@plot_option("Draw the curves, in the form of Icy22 figure 7.")
@click.pass_context
def e2e_command(ctx: click.Context, /, plot: str | None, **given: object) -> int:
    """Train a sender and a receiver together, from scratch or after both have learned a grammar.

    Prints the accuracy of the pair, the topographic similarity of its messages and, after pre-training, how far both
    sides have drifted from their language.
    """
    output = OutputOptions.take(given)
    figure = None if plot is None else checked_plot(plot)
    spec = EndToEndSpec.asked(**given_by_user(ctx, given))

    def show(result: ProbeResult) -> None:
        print_by_protocol(result, output.format_, output.spread)
        if figure is not None:
            _draw(result, figure, output.quiet)

    return run_command(ctx, make_plan(spec), output, show, spec.track)


def _draw(result: ProbeResult, path: Path, quiet: bool) -> None:
    if isinstance(result, EndToEndResult) and len(result.curves()):
        save_figure(result.plot(), path, quiet)
    else:
        note("There is nothing to draw: no pair has finished.")
