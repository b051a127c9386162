"""`icy factors` and `icy power`: which settings matter, and how many seeds distinguish two models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import click

from icy.cli.exit_codes import DONE
from icy.cli.options import ListFormat, Paths, Selection, command
from icy.cli.output import print_data, print_records
from icy.core.text import counted, in_a_line

if TYPE_CHECKING:
    import pandas as pd


# -- factors -----------------------------------------------------------------------------------------------------------

_LEGEND = """
share: of the variance (of ratios: of their logarithms), after all other factors; -: these runs cannot separate it
interactions: effects of factors that do not add up, most of all of the two named; -g NAME shows one grammar
effect: quotient (×) or difference of the two levels that differ most, others being equal
95 %: interval for all pairs of levels (Bonferroni); p: analysis of variance (type II), corrected by Holm's method"""
_LEGEND_OF_CUT = """
cut: combinations with only a bound of their mean; they count as this bound or more, so their effects may be larger"""


@command("factors")
def factors_command(results: Paths = (), *, selected: Selection, format_: ListFormat = "table") -> int:
    """Show which settings matter: each setting's share of the variance of results, its largest contrast and a test.

    Examples:
      icy factors sizes
      icy factors sizes -g shufdet --format markdown
      icy factors atlas -m 'sender/RNN*' -g perm -g shufdet --where protocol=acquire --where meanings=5x10

    RESULTS are results folders, packs, files of ProbeResult.save, long tables, or atlas; the default is icy-results. A
    factor is any setting in which their runs differ: the model (or its architecture and its cell), sizes,
    representation, options, settings of training, and the grammar.
    """
    from icy.analysis.tables.factors import CUT, FAMILY, factors

    table = factors(selected.read(results))
    if not print_data(table, format_):
        for family, part in table.groupby(FAMILY, dropna=False, sort=False):
            ratio = part["measure"].eq("ratio").all()
            click.echo(", ".join(str(name) for name in dict.fromkeys(family) if name == name) + "\n")
            rows: Any = part.to_dict("records")
            print_records([_factor_texts(row, bool(ratio)) for row in rows], format_)
            click.echo()
        click.echo(_LEGEND.strip() + (_LEGEND_OF_CUT if table["factor"].eq(CUT).any() else ""))
    return DONE


def _factor_texts(row: Mapping[Any, Any], ratio: bool) -> dict[str, str]:
    """Return the texts of a factor by heading."""
    import pandas as pd

    from icy.analysis.table_cells import p_text
    from icy.analysis.tables.factors import CUT, INTERACTIONS
    from icy.analysis.tables.paired import effect_text

    low, effect, high = ("" if pd.isna(row[n]) else effect_text(row[n], ratio) for n in ("low", "effect", "high"))
    bound, below = row["high"] == math.inf, row["low"] in (0, -math.inf)
    ends = "" if bound and below else f"{low} or more" if bound else f"{high} or less" if below else f"{low} to {high}"
    contrast = {
        INTERACTIONS: f"{row['larger']} × {row['smaller']}" if isinstance(row["larger"], str) else "",
        CUT: f"only a bound: {row['larger']}",
    }.get(row["factor"], f"{row['larger']} over {row['smaller']}" if effect else "")
    return {
        "factor": row["factor"],
        "levels": "" if pd.isna(row["levels"]) else f"{row['levels']:.0f}",
        "share": "" if row["factor"] == CUT else f"{row['share']:.1%}" if row["freedom"] else "-",
        "p": "" if pd.isna(row["p_holm"]) else p_text(row["p_holm"]),
        "largest contrast": contrast,
        "effect": f"{'>' * bound}{'<' * below} {effect}".strip() if bound != below else "?" if bound else effect,
        "95 %": ends if low else "",
    }


# -- power -------------------------------------------------------------------------------------------------------------

_SEEDS = (
    "seeds: of each model, for a paired two-sided t-test (noncentral t); each draws a language and initial weights "
    "together, and results of a single language hold only for it"
)
_LANGUAGES = (
    "share: of the language in the variance of a pair; languages: with {} of weights each, for a paired two-sided "
    "t-test (noncentral t)"
)
_LEGEND_OF_POWER = (
    "Holm: if all grammars of a setting are tested; cautious: with the spread at its upper limit of 80 % confidence",
)
_ADVICE = "{} pairs estimate the effect poorly: give the smallest effect that matters, as in --effect {}"


@command("power")
def power_command(
    results: Paths = (),
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    effect: Annotated[float | None, {"metavar": "NUMBER"}] = None,
    per_language: Annotated[int, {"minimum": 1}] = 1,
    selected: Selection,
    format_: ListFormat = "table",
) -> int:
    """Compute the number of seeds, or languages, that distinguishes two models, from a pilot of both.

    Args:
        power: probability of finding the effect, if it is real.
        alpha: level of significance of one test.
        effect: smallest effect that matters (recommended), instead of the pilot's effect: a ratio of ratios, as in 1.2,
            or a difference in accuracy, as in 0.05.
        per_language: seeds of weights for each language; more than 1 needs a pilot with --word-seeds.

    Examples:
      icy power pilot -m HierZero:GRU -m FC2L --effect 1.2
      icy power pilot -m HierZero:GRU -m FC2L -g shufdet --effect 1.2 --power 0.9
      icy power pilot -m HierZero:GRU -m FC2L
      icy power pilot -m HierZero:GRU -m FC2L --effect 1.2 --per-language 5
      icy power atlas -m receiver/CNN -m receiver/FC2L --where protocol=acquire --where meanings=5x10

    State the smallest effect that matters with --effect. A small pilot does not estimate its own effect well: if 10
    seeds are needed, four of five pilots of 3 seeds give a number from 3 to 78 without --effect, and from 4 to 21 with
    it.

    RESULTS are results folders, packs, files of ProbeResult.save, long tables, or atlas; the default is icy-results.
    Both models are needed with the same seeds: their runs are compared seed by seed, ratios by their logarithms.

    A pilot made with `icy probe --word-seeds 5 --seeds 5` separates languages from initial weights, so that it can also
    estimate how many languages are needed with several seeds of weights for each (--per-language).
    """
    from icy.analysis.tables.paired import seeds_needed, two_models
    from icy.records.load import long_of
    from icy.records.long_table import ROW

    long = long_of(selected.read(results))
    table = seeds_needed(long, power=power, alpha=alpha, effect=effect, per_language=per_language)
    if not print_data(table, format_):
        one, other = two_models(long)
        goal = "the pilot's effect" if effect is None else f"an effect of {effect:g}"
        crossed = bool(table["language_share"].notna().any())
        both, unit = f"{in_a_line(one)} and {in_a_line(other)}", "languages" if crossed else "seeds"
        click.echo(f"{both}: {unit} that find {goal} with a power of {power:g} at alpha {alpha:g}\n")
        setting = [name for name in ROW if name in table and table[name].nunique(dropna=False) > 1]
        rows = [_power_texts(row, setting, crossed) for _, row in table.iterrows()]
        same = len(table) > 1 and table["remark"].nunique() == 1 and bool(table["remark"].iloc[0])
        for row in rows if same else ():
            del row["remark"]  # which is below the table
        print_records(rows, format_)
        ratios = table["measure"].eq("ratio").all()
        effects = f"{'ratios' if ratios else 'accuracies'} of {one} {'divided by' if ratios else 'minus'} {other}"
        over = "pairs" if per_language == 1 else f"means of {per_language} pairs of a language"
        which = _LANGUAGES.format(counted(per_language, "seed")) if crossed else _SEEDS
        click.echo(
            "\n" + "\n".join([f"effect: of the pilot, {effects}; spread: over {over}", which, *_LEGEND_OF_POWER])
        )
        if same:
            click.echo(f"all rows: {table['remark'].iloc[0]}")
        if effect is None:
            click.echo(_ADVICE.format(table["pairs"].min(), "1.2" if ratios else "0.05"))
    return DONE


def _power_texts(row: pd.Series[Any], setting: list[str], crossed: bool) -> dict[str, str]:
    """Return the texts of a row by heading."""
    import pandas as pd

    from icy.analysis.order import text_of
    from icy.analysis.tables.paired import NEEDED, effect_text

    ratio = row["measure"] == "ratio"
    effect, spread, share = row["effect"], row["spread"], row["language_share"]
    counts = ["-" if pd.isna(row[name]) else str(int(row[name])) for name in NEEDED]
    return {
        **{name: text_of(row[name]) for name in setting},
        "grammar": row["grammar"],
        "pairs": str(row["pairs"]),
        "censored": str(row["one_censored"] + row["both_censored"]),
        "effect": "-" if math.isnan(effect) else f"{row['bound']} {effect_text(effect, ratio)}".strip(),
        "spread": "-" if math.isnan(spread) else f"×/{math.exp(min(spread, 700)):.2f}" if ratio else f"{spread:.3f}",
        **({"share": "-" if math.isnan(share) else f"{100 * share:.0f} %"} if crossed else {}),
        **dict(zip(("languages" if crossed else "seeds", "Holm", "cautious"), counts, strict=True)),
        "remark": row["remark"],
    }
