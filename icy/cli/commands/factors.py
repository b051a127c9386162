"""`icy factors`: which settings matter?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.options import Selection, selection
from icy.cli.output import format_option, print_data, print_rows

if TYPE_CHECKING:
    import pandas as pd

EPILOG = """\b
Examples:
  icy factors sizes
  icy factors sizes -g shufdet --format markdown
  icy factors atlas -m 'sender/RNN*' -g perm -g shufdet --where protocol=acquire --where meanings=5x10

\b
RESULTS are results folders, packs, files of ProbeResult.save, long tables, or atlas; the default is icy-results. A
factor is any setting in which their runs differ: the model (or its architecture and its cell), sizes, representation,
options, settings of training, and the grammar.
"""
_LEGEND = """
share: of the variance (of ratios: of their logarithms), after all other factors; -: these runs cannot separate it
interactions: effects of factors that do not add up, most of all of the two named; -g NAME shows one grammar
effect: quotient (×) or difference of the two levels that differ most, others being equal
95 %: interval for all pairs of levels (Bonferroni); p: analysis of variance (type II), corrected by Holm's method"""
_LEGEND_OF_CUT = """
cut: combinations with only a bound of their mean; they count as this bound or more, so their effects may be larger"""


@command("factors", epilog=EPILOG)
@click.argument("results", nargs=-1, type=click.Path())
@selection
@format_option
def factors_command(results: tuple[str, ...], selected: Selection, format_: str) -> int:
    """Show which settings matter: each setting's share of the variance of results, its largest contrast and a test."""
    from icy.analysis.tables.factors import CUT, FAMILY, factors

    table = factors(selected.read(results))
    if not print_data(table, format_):
        for family, part in table.groupby(FAMILY, dropna=False, sort=False):
            ratio = part["measure"].eq("ratio").all()
            click.echo(", ".join(str(name) for name in dict.fromkeys(family) if name == name) + "\n")
            print_rows(*_rows(part, bool(ratio)), format_)
            click.echo()
        click.echo(_LEGEND.strip() + (_LEGEND_OF_CUT if table["factor"].eq(CUT).any() else ""))
    return DONE


def _rows(table: pd.DataFrame, ratio: bool) -> tuple[list[str], list[list[str]]]:
    """Return headings and texts of the factors of one family."""
    import pandas as pd

    from icy.analysis.table_cells import p_text
    from icy.analysis.tables.factors import CUT, INTERACTIONS
    from icy.analysis.tables.paired import effect_text

    rows = []
    for row in table.to_dict("records"):
        low, effect, high = ("" if pd.isna(row[n]) else effect_text(row[n], ratio) for n in ("low", "effect", "high"))
        bound, below = row["high"] == math.inf, row["low"] in (0, -math.inf)
        ends = (
            "" if bound and below else f"{low} or more" if bound else f"{high} or less" if below else f"{low} to {high}"
        )
        contrast = {
            INTERACTIONS: f"{row['larger']} × {row['smaller']}" if isinstance(row["larger"], str) else "",
            CUT: f"only a bound: {row['larger']}",
        }.get(row["factor"], f"{row['larger']} over {row['smaller']}" if effect else "")
        rows.append(
            [
                row["factor"],
                "" if pd.isna(row["levels"]) else f"{row['levels']:.0f}",
                "" if row["factor"] == CUT else f"{row['share']:.1%}" if row["freedom"] else "-",
                "" if pd.isna(row["p_holm"]) else p_text(row["p_holm"]),
                contrast,
                f"{'>' * bound}{'<' * below} {effect}".strip() if bound != below else "?" if bound else effect,
                ends if low else "",
            ]
        )
    return ["factor", "levels", "share", "p", "largest contrast", "effect", "95 %"], rows
