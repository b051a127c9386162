"""`icy e2e`: train a sender and a receiver together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icy.cli import completion
from icy.cli.groups import command
from icy.cli.options import REPRESENTATIONS, SHOWN, SpecOptions, given_by_user, plot_option, together
from icy.cli.output import checked_plot, note, save_figure
from icy.cli.session import Output, print_by_protocol, run_command
from icy.config.settings import SYMBOLS
from icy.config.specs import EndToEndSpec
from icy.experiments.plan import make_plan
from icy.experiments.results import EndToEndResult, ProbeResult

EPILOG = """\b
Examples:
  icy e2e --sender HierZero:GRU --receiver Hier:GRU
  icy e2e --sender FC2L --receiver RNN1L:GRU --representation discr --quick
  icy e2e --sender RNNZero:GRU --receiver RNN:GRU --pretrain perm --pretrain rot --plot drift.png
  icy e2e --sender FC1L --sender FC2L --receiver FC --steps 5000 --format csv
  icy e2e --sender FC1L --receiver FC1L --pretrain perm --quick --pretrained kept

\b
From scratch (--pretrain none) the table shows accuracy and topsim at the end; after pre-training also how well each
side still knows the language it had learnt. What has finished is kept in the results folder: after Ctrl-C, a crash, or
with more grammars or seeds, the same command trains only what is missing. The languages that emerged are kept there
too; in Python, icy.EndToEndResult.load(FOLDER).language(...) reads one.
"""

_spec = SpecOptions(EndToEndSpec)

WHAT = together(
    _spec.option(
        "sender", "--sender", "-s", multiple=True, required=True, metavar="NAME", shell_complete=completion.models
    ),
    _spec.option(
        "receiver", "--receiver", "-r", multiple=True, required=True, metavar="NAME", shell_complete=completion.models
    ),
    _spec.option(
        "pretrain",
        multiple=True,
        metavar="GRAMMAR|none",
        shell_complete=completion.files_and_grammars,
        help="grammars, or files of languages, that both sides learn first, each in a run of its own, repeatable; or "
        "none, from scratch.",
    ),
    _spec.several("representation", "|".join(REPRESENTATIONS), REPRESENTATIONS),
    _spec.option("symbols", type=click.Choice(SYMBOLS), metavar="|".join(SYMBOLS)),
    _spec.option("steps", type=int),
    _spec.option("cap", type=float),
    _spec.option("most", type=int),
    _spec.option("target", type=float),
    _spec.several("pretrain_representation", "|".join(REPRESENTATIONS), REPRESENTATIONS),
    _spec.option("pretrained", type=click.Path(), metavar="RESULTS"),
    _spec.option("report_every", type=int),
    _spec.sizes(),
    _spec.several("hidden", "E"),
    _spec.assignments("sender_options", "--sender-option", help="a further argument of the senders, as in layers=2."),
    _spec.assignments("receiver_options", "--receiver-option", help="a further argument of the receivers."),
    _spec.training(),
)


@command("e2e", epilog=EPILOG)
@WHAT
@_spec.running()
@_spec.runner()
@SHOWN
@plot_option("Draw the curves, in the form of Icy22 figure 7.")
@click.pass_context
def e2e_command(ctx: click.Context, /, plot: str | None, **given: Any) -> int:
    """Train a sender and a receiver together, from scratch or after both have learnt a grammar.

    Prints how well they understand each other, how alike the messages of like meanings are, and, after pre-training,
    how far both have drifted from their language.
    """
    output = Output.take(given)
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
        note("There is nothing to draw: no pair has played.")
