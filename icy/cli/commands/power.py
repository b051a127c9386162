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
from icy.core.text import counted

if TYPE_CHECKING:
    import pandas as pd

EPILOG = """\b
Examples:
  icy power pilot -m HierZero:GRU -m FC2L --effect 1.2
  icy power pilot -m HierZero:GRU -m FC2L -g shufdet --effect 1.2 --power 0.9
  icy power pilot -m HierZero:GRU -m FC2L
  icy power pilot -m HierZero:GRU -m FC2L --effect 1.2 --per-language 5
  icy power atlas -m receiver/CNN -m receiver/FC2L --where protocol=acquire --where meanings=5x10

\b
State the smallest effect that matters with --effect. A small pilot does not estimate its own effect well: if 10 seeds
are needed, four of five pilots of 3 seeds give a number from 3 to 78 without --effect, and from 4 to 21 with it.

\b
RESULTS are results folders, packs, files of ProbeResult.save, long tables, or atlas; the default is icy-results. Both
models are needed with the same seeds: their runs are compared seed by seed, ratios by their logarithms.

\b
A pilot made with `icy probe --word-seeds 5 --seeds 5` separates languages from initial weights, so that it can also
estimate how many languages are needed with several seeds of weights for each (--per-language).
"""
_SEEDS = (
    "seeds: of each model, for a paired two-sided t-test (noncentral t); each draws a language and initial weights "
    "together, and results of a single language hold only for it"
)
_LANGUAGES = (
    "share: of the language in the variance of a pair; languages: with {} of weights each, for a paired two-sided "
    "t-test (noncentral t)"
)
_LEGEND = (
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
@click.option("--per-language", type=click.IntRange(min=1), default=1, show_default=True,
              help="Seeds of weights for each language; more than 1 needs a pilot with --word-seeds.")  # fmt: skip
@selection
@format_option
def power_command(
    results: tuple[str, ...],
    power: float,
    alpha: float,
    effect: float | None,
    per_language: int,
    selected: Selection,
    format_: str,
) -> int:
    """Compute the number of seeds, or languages, that distinguishes two models, from a pilot of both."""
    from icy.analysis.tables.paired import seeds_needed, two_models
    from icy.records.load import long_of

    long = long_of(selected.read(results))
    table = seeds_needed(long, power=power, alpha=alpha, effect=effect, per_language=per_language)
    if not print_data(table, format_):
        one, other = two_models(long)
        goal = "the pilot's effect" if effect is None else f"an effect of {effect:g}"
        crossed = bool(table["language_share"].notna().any())
        both, unit = f"{in_a_line(one)} and {in_a_line(other)}", "languages" if crossed else "seeds"
        click.echo(f"{both}: {unit} that find {goal} with a power of {power:g} at alpha {alpha:g}\n")
        print_rows(*_power_table(table, crossed), format_)
        ratios = table["measure"].eq("ratio").all()
        effects = f"{'ratios' if ratios else 'accuracies'} of {one} {'divided by' if ratios else 'minus'} {other}"
        over = "pairs" if per_language == 1 else f"means of {per_language} pairs of a language"
        which = _LANGUAGES.format(counted(per_language, "seed")) if crossed else _SEEDS
        click.echo("\n" + "\n".join([f"effect: of the pilot, {effects}; spread: over {over}", which, *_LEGEND]))
        if _same_remark(table):
            click.echo(f"all rows: {table['remark'].iloc[0]}")
        if effect is None:
            click.echo(_ADVICE.format(table["pairs"].min(), "1.2" if ratios else "0.05"))
    return DONE


def _same_remark(table: pd.DataFrame) -> bool:
    """Return whether all of several rows have one remark, which is then a note below the table."""
    return len(table) > 1 and table["remark"].nunique() == 1 and bool(table["remark"].iloc[0])


def _power_table(table: pd.DataFrame, crossed: bool) -> tuple[list[str], list[list[str]]]:
    """Return headings and texts of the table."""
    from icy.records.long_table import ROW

    setting = [name for name in ROW if name in table and table[name].nunique(dropna=False) > 1]
    needed = ["share", "languages"] if crossed else ["seeds"]
    headings = [*setting, "grammar", "pairs", "censored", "effect", "spread", *needed, "Holm", "cautious", "remark"]
    columns = len(headings) - _same_remark(table)
    return headings[:columns], [_texts(row, setting, crossed)[:columns] for _, row in table.iterrows()]


def _texts(row: pd.Series[Any], setting: list[str], crossed: bool) -> list[str]:
    import pandas as pd

    from icy.analysis.order import text_of
    from icy.analysis.tables.paired import NEEDED, effect_text

    ratio = row["measure"] == "ratio"
    effect, spread, share = row["effect"], row["spread"], row["language_share"]
    shown = "-" if math.isnan(effect) else f"{row['bound']} {effect_text(effect, ratio)}".strip()
    wide = "-" if math.isnan(spread) else f"×/{math.exp(min(spread, 700)):.2f}" if ratio else f"{spread:.3f}"
    counts = ["-" if pd.isna(row[name]) else str(int(row[name])) for name in NEEDED]
    cut = row["one_censored"] + row["both_censored"]
    return [
        *(text_of(row[n]) for n in setting),
        row["grammar"],
        str(row["pairs"]),
        str(cut),
        shown,
        wide,
        *(["-" if math.isnan(share) else f"{100 * share:.0f} %"] if crossed else []),
        *counts,
        row["remark"],
    ]
