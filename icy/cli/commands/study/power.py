"""`icy study power`: simulated results of a study of a given size."""

from __future__ import annotations

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.options import Assignment, Several, assigned
from icy.cli.output import format_option, print_rows

EPILOG = """\b
Examples:
  icy study power --persons 16,40,80 --mean concat=0.6 --mean perm=0.2 --mean rot=0.02
  icy study power --persons 48 --mean concat=0.5 --mean perm=0.3 --spread 0.35

\b
Each person answers some held-out items, with an individual accuracy (beta-binomial). Every grammar is compared with
concat by a permutation test of persons, and the p-values are corrected by Holm's method.
"""


@command("power", epilog=EPILOG)
@click.option(
    "--persons",
    cls=Several,
    metavar="N[,N...]",
    default="16,40,80",
    show_default=True,
    help="Persons per grammar, one or several.",
)
@click.option("--mean", "means", multiple=True, type=Assignment(), required=True,
              help="Expected accuracy on held-out items of a grammar, as in concat=0.6; repeatable.")  # fmt: skip
@click.option("--spread", default=0.35, show_default=True, help="Standard deviation of the accuracy over persons.")
@click.option("--items", default=3, show_default=True, help="Held-out items per person.")
@click.option("--baseline", default="concat", show_default=True, help="The grammar that others are compared with.")
@click.option("--alpha", default=0.05, show_default=True, help="Level of significance, after Holm's correction.")
@click.option("--studies", default=500, show_default=True, help="Number of studies to simulate.")
@click.option("--seed", default=0, show_default=True, help="Seed of the simulation.")
@format_option
def power_command(
    persons: int | str,
    means: tuple[tuple[str, float], ...],
    spread: float,
    items: int,
    baseline: str,
    alpha: float,
    studies: int,
    seed: int,
    format_: str,
) -> int:
    """Estimate by simulation how often a study of a given size would find the differences between grammars."""
    from icy.analysis.people import power_of_study
    from icy.core.text import several

    how = {"spread": spread, "items": items, "baseline": baseline, "alpha": alpha, "studies": studies, "seed": seed}
    found = {count: power_of_study(assigned("--mean", means), count, **how) for count in several(persons)}  # type: ignore[arg-type]
    grammars = [name for name, _ in means if name != baseline]
    rows = [[str(count), *(f"{power[name]:.2f}" for name in (*grammars, "all"))] for count, power in found.items()]
    print_rows(["persons", *grammars, "all"], rows, format_)
    return DONE
