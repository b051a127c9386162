"""`icy power`: number of seeds that distinguishes two models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.options import Selection, selection
from icy.cli.output import format_option, print_data, print_rows
from icy.core.escapes import in_a_line

if TYPE_CHECKING:
    import pandas as pd

EPILOG = """\b
Examples:
  icy power pilot -m HierZero:GRU -m FC2L --effect 1.2
  icy power pilot -m HierZero:GRU -m FC2L -g shufdet --effect 1.2 --power 0.9
  icy power pilot -m HierZero:GRU -m FC2L
  icy power atlas -m receiver/CNN -m receiver/FC2L --where protocol=acquire --where meanings=5x10

\b
State the smallest effect that matters with --effect. A small pilot does not estimate its own effect well: if 10 seeds
are needed, four of five pilots of 3 seeds give a number from 3 to 78 without --effect, and from 4 to 21 with it.

\b
RESULTS are results folders, packs, files of ProbeResult.save, long tables, or atlas; the default is icy-results. Both
models are needed with the same seeds: their runs are compared seed by seed, ratios by their logarithms.
"""
_LEGEND = (
    "seeds: of each model, for a paired two-sided t-test (noncentral t)",
    "Holm: if all grammars of a setting are tested; cautious: with the spread at its upper limit of 80 % confidence",
)
_ADVICE = "{} pairs estimate the effect poorly: give the smallest effect that matters, as in --effect {}"


@command("power", epilog=EPILOG)
@click.argument("results", nargs=-1, type=click.Path())
@click.option("--power", default=0.8, show_default=True, help="Probability of finding the effect, if it is real.")
@click.option("--alpha", default=0.05, show_default=True, help="Level of significance of one test.")
@click.option("--effect", type=float, metavar="NUMBER",
              help="Smallest effect that matters (recommended), instead of the pilot's effect: a ratio of ratios, as "
              "in 1.2, or a difference in accuracy, as in 0.05.")  # fmt: skip
@selection
@format_option
def power_command(
    results: tuple[str, ...],
    power: float,
    alpha: float,
    effect: float | None,
    selected: Selection,
    format_: str,
) -> int:
    """Compute the number of seeds that distinguishes two models, from a pilot of both."""
    from icy.analysis.tables.paired import seeds_needed, two_models
    from icy.records.load import long_of

    long = long_of(selected.read(results))
    table = seeds_needed(long, power=power, alpha=alpha, effect=effect)
    if not print_data(table, format_):
        one, other = two_models(long)
        goal = "the pilot's effect" if effect is None else f"an effect of {effect:g}"
        both = f"{in_a_line(one)} and {in_a_line(other)}"
        click.echo(f"{both}: seeds that find {goal} with a power of {power:g} at alpha {alpha:g}\n")
        print_rows(*_power_table(table), format_)
        ratios = table["measure"].eq("ratio").all()
        effects = "quotient of their ratios" if ratios else "difference between them"
        click.echo("\n" + "\n".join([f"effect: of the pilot, {effects}; spread: over pairs", *_LEGEND]))
        if effect is None:
            click.echo(_ADVICE.format(table["pairs"].min(), "1.2" if ratios else "0.05"))
    return DONE


def _power_table(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return headings and texts of the table."""
    from icy.records.long_table import ROW

    setting = [name for name in ROW if name in table and table[name].nunique(dropna=False) > 1]
    headings = [*setting, "grammar", "pairs", "cut", "effect", "spread", "seeds", "Holm", "cautious", "remark"]
    return headings, [_texts(row, setting) for _, row in table.iterrows()]


def _texts(row: pd.Series[Any], setting: list[str]) -> list[str]:
    import pandas as pd

    from icy.analysis.tables.paired import NEEDED
    from icy.analysis.wording import text_of

    ratio = row["measure"] == "ratio"
    effect, spread = row["effect"], row["spread"]
    shown = "-" if math.isnan(effect) else f"{row['bound']} {effect:{'.2f' if ratio else '+.3f'}}".strip()
    wide = "-" if math.isnan(spread) else f"×/{math.exp(min(spread, 700)):.2f}" if ratio else f"{spread:.3f}"
    counts = ["-" if pd.isna(row[name]) else str(int(row[name])) for name in NEEDED]
    cut = row["one_cut"] + row["both_cut"]
    return [
        *(text_of(row[n]) for n in setting),
        row["grammar"],
        str(row["pairs"]),
        str(cut),
        shown,
        wide,
        *counts,
        row["remark"],
    ]
