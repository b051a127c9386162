"""Metrics of several languages as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from icy.analysis.cells import SPREADS, Cell, cell_of_values, checked_spread
from icy.analysis.order import in_order

from .table import BiasTable

FACTS = ("rows", "attributes", "length", "vocab_size")  # columns of `icy.metrics.evaluate` that describe a language


def metrics_table(
    scores: pd.DataFrame, metrics: Sequence[str], spread: str = "sd", notes: Sequence[str] = ()
) -> BiasTable:
    """Make a table with a row per language and a column per metric, over seeds.

    Args:
        scores: rows of `icy.metrics.evaluate`, with the columns `name` and `seed`.
        metrics: columns to show.
        spread: over seeds, "sd", "sem" or "ci95"; for a single seed the metric's own standard error is shown.
        notes: sentences below the table.

    Raises:
        InvalidSettingError: another spread.
    """
    checked_spread(spread)
    rows = []
    for name in in_order(scores["name"]):
        part = scores[scores["name"] == name]
        cells = {metric: _cell(part, metric, spread) for metric in metrics}
        rows.append(([name, *(_range(part[fact]) for fact in FACTS), str(len(part))], cells))
    labels = ["language", "rows", "attributes", "length", "V", "seeds"]
    several = scores["name"].duplicated().any()
    own = any(f"{metric}_error" in scores for metric in metrics)
    spreads = [f"mean ± {SPREADS[spread][0]}"] if several else ["value ± standard error of its own"] if own else []
    return BiasTable("metrics of languages", labels, list(metrics), rows, [*spreads, *notes], decimals=3)


def _range(values: pd.Series[int]) -> str:
    low, high = values.min(), values.max()
    return f"{low}" if low == high else f"{low}-{high}"


def _cell(part: pd.DataFrame, metric: str, spread: str) -> Cell:
    reasons = dict.fromkeys(why for why in part.get(f"{metric}_why", ()) if isinstance(why, str) and why)
    cell = replace(cell_of_values(part[metric], spread), why="; ".join(reasons))
    if len(part) == 1 and f"{metric}_error" in part and cell.seeds:
        return replace(cell, spread=float(part[f"{metric}_error"].iloc[0]))
    return cell
