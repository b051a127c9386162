"""`icy sweep`: probe many models under many settings."""

from __future__ import annotations

import click

from icy.cli.groups import command
from icy.cli.options import OUTPUT_OPTIONS, given_by_user, spec_options
from icy.cli.session import OutputOptions, print_by_protocol, run_command
from icy.config.specs import SweepSpec
from icy.experiments.results import ProbeResult
from icy.experiments.sweep import make_sweep, over, read_sweep, sweep_spec

EPILOG = """\b
Examples:
  icy sweep -m 'sender/*' --representation soft,gumb --seeds 5 -o bias --dry-run
  icy sweep -m 'HierZero:*' -m 'RNN*:GRU' --hidden 64,128 --protocol acquire,budget -o bias
  icy sweep zoo.toml
  icy sweep zoo.toml --shard 2/8      # on the second of eight machines that share the folder

\b
A file in TOML (or YAML) holds the same options by name; each [[sweep]] is a part with its own values:
  seeds = 5
  out = "bias"
  [[sweep]]
  model = "sender/*"
  representation = ["soft", "gumb"]
  [[sweep]]
  model = "receiver/Hier:*"
  hidden = [64, 128]

\b
Finished runs are never repeated: after Ctrl-C, a crash, or with more models, the same command trains only missing
runs. A row that fails is saved as failed, and the others continue; --rerun failed tries it again.
"""

FIRST = (
    *("model", "grammar", "side", "protocol", "representation", "symbols", "hidden", "meanings", "vocab_size"),
    *("word_length", "draws", "seeds", "word_seeds", "preset"),
)
LAST = ("settings", "quick", "plugin", "order", "shard", "retries")


@command("sweep", epilog=EPILOG)
@click.argument("file", required=False, type=click.Path())
@spec_options(SweepSpec, FIRST, LAST, without=("kind", "parts"), hidden="hidden size E, one or several.")
@OUTPUT_OPTIONS
@click.pass_context
def sweep_command(ctx: click.Context, /, file: str | None, **given: object) -> int:
    """Probe many models under many settings: one row per combination.

    Takes the options of `icy probe`, each with one or several values. The command line overrides FILE.
    """
    output = OutputOptions.take(given)
    chosen = given_by_user(ctx, given)
    spec = sweep_spec(**(over(read_sweep(file), chosen) if file else chosen))

    def show(result: ProbeResult) -> None:
        print_by_protocol(result, output.format_, output.spread)

    return run_command(ctx, make_sweep(spec), output, show, spec.track, spec.retries)
