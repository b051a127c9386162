"""`icy sweep`: probe many models under many settings."""

from __future__ import annotations

from typing import Any

import click

from icy.cli import completion
from icy.cli.groups import command
from icy.cli.options import REPRESENTATIONS, SHOWN, SpecOptions, given_by_user, together
from icy.cli.session import Output, print_by_protocol, run_command
from icy.config.protocols import PROTOCOLS
from icy.config.settings import PRESETS, SYMBOLS
from icy.config.specs import SweepSpec
from icy.experiments.results import ProbeResult
from icy.experiments.sweep import ORDERS, make_sweep, over, read_sweep, sweep_spec
from icy.languages.splits import SPLITS

EPILOG = """\b
Examples:
  icy sweep -m 'sender/*' --representation soft,gumb --seeds 5 -o bias --dry-run
  icy sweep -m 'HierZero:*' -m 'RNN*:GRU' --hidden 64,128 --protocol acquire,budget -o bias
  icy sweep zoo.toml
  icy sweep zoo.toml --shard 2/8      # on the second of eight machines that share the folder

\b
A file in TOML (or YAML) holds the same options by name; parts of a sweep that differ stand under [[sweep]]:
  seeds = 5
  out = "bias"
  [[sweep]]
  model = "sender/*"
  representation = ["soft", "gumb"]
  [[sweep]]
  model = "receiver/Hier:*"
  hidden = [64, 128]

\b
What is on file is never repeated: after Ctrl-C, a crash, or with more models, the same command goes on. A row that
fails is kept as failed, and the rest goes on; --rerun failed tries it again.
"""

_spec = SpecOptions(SweepSpec)
WHAT = together(
    _spec.option("model", "--model", "-m", multiple=True, metavar="NAME", shell_complete=completion.models),
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
    _spec.option("side", type=click.Choice(["sender", "receiver"])),
    _spec.several("protocol", "|".join(PROTOCOLS), PROTOCOLS),
    _spec.several("representation", "|".join(REPRESENTATIONS), REPRESENTATIONS),
    _spec.option("symbols", type=click.Choice(SYMBOLS), metavar="|".join(SYMBOLS)),
    _spec.several("hidden", "E", help="hidden size E, one or several."),
    _spec.sizes(),
    _spec.word_seeds(),
    _spec.several("preset", "|".join(PRESETS), PRESETS),
    _spec.option("target", type=float),
    _spec.option("cap", type=float),
    _spec.option("max_updates", type=int),
    _spec.option("held_out", type=float),
    _spec.option("split", type=click.Choice(list(SPLITS)), metavar="|".join(SPLITS)),
    _spec.assignments("options", "--option", help="a further argument of the models."),
    _spec.changes(),
    _spec.option("order", type=click.Choice(ORDERS)),
    _spec.option("shard", metavar="i/n"),
    _spec.option("retries", type=click.IntRange(min=0)),
)


@command("sweep", epilog=EPILOG)
@click.argument("file", required=False, type=click.Path())
@WHAT
@_spec.running()
@_spec.runner()
@SHOWN
@click.pass_context
def sweep_command(ctx: click.Context, /, file: str | None, **given: Any) -> int:
    """Probe many models under many settings: all combinations are rows.

    Takes the options of `icy probe`, each of which may have several values. The command line overrides FILE.
    """
    output = Output.take(given)
    chosen = given_by_user(ctx, given)
    spec = sweep_spec(**(over(read_sweep(file), chosen) if file else chosen))

    def show(result: ProbeResult) -> None:
        print_by_protocol(result, output.format_, output.spread)

    return run_command(ctx, make_sweep(spec), output, show, spec.track, spec.retries)
