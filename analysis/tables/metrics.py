"""Metrics of several languages as a table and as bars (Icy22 figure 3)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from icy.analysis.cells import SPREADS, Cell, cell_of, checked_spread
from icy.analysis.order import in_order

from .table import BiasTable

FACTS = ("rows", "attributes", "length", "vocab_size")


def metrics_table(
    scores: pd.DataFrame, metrics: Sequence[str], spread: str = "sd", notes: Sequence[str] = ()
) -> BiasTable:
    """A row per language and a column per metric, over seeds.

    Args:
        scores: rows of `icy.metrics.evaluate`, with the columns `name` and `seed`.
        metrics: which of its columns.
        spread: over seeds, "sd", "sem" or "ci95"; of a language without seeds it is the metric's own standard error.
        notes: to stand under the table.

    Raises:
        InvalidSettingError: another spread.
    """
    checked_spread(spread)
    rows = []
    for name in in_order(scores["name"]):
        part = scores[scores["name"] == name]
        cells = {metric: _cell(part, metric, spread) for metric in metrics}
        rows.append(([name, *(_same(part[fact]) for fact in FACTS), str(len(part))], cells))
    labels = ["language", "rows", "attributes", "length", "V", "seeds"]
    several = scores["name"].duplicated().any()
    own = any(f"{metric}_error" in scores for metric in metrics)
    said = [f"mean ± {SPREADS[spread][0]}"] if several else ["value ± standard error of its own"] if own else []
    return BiasTable("metrics of languages", labels, list(metrics), rows, [*said, *notes], decimals=3)


def _same(values: pd.Series[int]) -> str:
    low, high = values.min(), values.max()
    return f"{low}" if low == high else f"{low}-{high}"


def _cell(part: pd.DataFrame, metric: str, spread: str) -> Cell:
    values = part[metric]
    cell = cell_of(pd.DataFrame({"value": values, "failed": values.isna(), "cut": False}), spread)
    if len(part) == 1 and f"{metric}_error" in part and cell.seeds:
        return Cell(cell.mean, float(part[f"{metric}_error"].iloc[0]), 1, 0, 0)
    # A metric that is undefined here has not failed.
    return Cell(cell.mean, cell.spread, cell.seeds, 0, 0)
