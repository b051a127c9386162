"""Metrics of several languages as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from icy.analysis.order import in_order, range_text
from icy.analysis.table_cells import NOTED, SPREADS, TableCell, cell_of_values, checked_spread
from icy.core.conventions import lower_is_better, read_conventions
from icy.core.text import listed

from .printed_table import BiasTable

FACTS = ("rows", "attributes", "length", "vocab_size")  # columns of `icy.metrics.evaluate` that describe a language


def metrics_table(
    scores: pd.DataFrame, metrics: Sequence[str], spread: str = "sd", notes: Sequence[str] = ()
) -> BiasTable:
    """Make a table with a row per language and a column per metric, over seeds.

    Args:
        scores: rows of `icy.metrics.evaluate`, with the columns `name` and `seed`. For metrics with a permutation test,
            a column shows the value by chance, and a line below each row the p-value.
        metrics: columns to show.
        spread: spread over seeds, "sd", "sem" or "ci95"; a single seed is shown with the metric's own standard error.
        notes: sentences below the table.

    Raises:
        InvalidSettingError: an unknown spread.
    """
    checked_spread(spread)
    parts = [(name, scores[scores["name"] == name]) for name in in_order(scores["name"])]
    rows = [([name, *(range_text(part[fact]) for fact in FACTS), str(len(part))], part) for name, part in parts]
    several = scores["name"].duplicated().any()
    own = any(f"{metric}_error" in scores for metric in metrics)
    spreads = [f"mean ± {SPREADS[spread][0]}"] if several else ["value ± standard error of its own"] if own else []
    labels = ["language", "rows", "attributes", "length", "V", "seeds"]
    table = table_of_scores(scores, labels, rows, metrics, spread, "seeds" if several else "")
    return replace(table, title="metrics of languages", notes=[*spreads, *table.notes, *notes])


def table_of_scores(
    scores: pd.DataFrame,
    labels: list[str],
    rows: Sequence[tuple[list[str], pd.DataFrame]],
    metrics: Sequence[str],
    spread: str,
    several: str,
    column: str = "name",
) -> BiasTable:
    """Make a table without title, with a column per metric and, for metrics that were tested, its chance value.

    Args:
        scores: rows of `icy.metrics.evaluate`.
        labels: headings of the labels of rows.
        rows: labels of each row, and its part of `scores`.
        metrics: columns to show.
        spread: a name of `icy.analysis.table_cells.SPREADS`.
        several: plural noun for the parts of a row, such as "seeds"; "" if no row has several.
        column: column of `scores` with the names of languages, for notes.
    """
    shown = [name for metric in metrics for name in (metric, f"{metric}_chance") if name in scores]
    lines = [(texts, {name: metric_cell(part, name, spread) for name in shown}) for texts, part in rows]
    conventions = read_conventions(scores.get("conventions", ()))
    known = {name: conventions[name] for name in metrics if name in conventions}
    notes = _reasons(scores, metrics, column)
    if tested := shown != list(metrics):
        which = f", the largest over {several}" if several else ""
        notes = [f"chance: mean ± standard deviation over permutations of the messages; p: their test{which}", *notes]
    notes += [f"lower is better: {listed(errors)}"] if (errors := list(filter(lower_is_better, metrics))) else []
    below = {"p": "p"} if tested else {}
    return BiasTable("", labels, shown, lines, notes, 3, below=below, conventions=known)


def _reasons(scores: pd.DataFrame, metrics: Sequence[str], label: str) -> list[str]:
    """Return notes on values that the size of a language table determines or bounds, with the languages."""
    everything, found = in_order(scores[label]), []
    for metric in metrics:
        column = f"{metric}_note"
        if column not in scores:
            continue
        noted = scores[scores[column].fillna("") != ""]
        for note, part in noted.groupby(column, sort=False):
            names = in_order(part[label])
            of = "" if names == everything else f" of {listed(names)}"
            found.append(f"{NOTED} {metric}{of}: {note}")
    return found


def metric_cell(part: pd.DataFrame, column: str, spread: str) -> TableCell:
    """Summarize a column of `icy.metrics.evaluate` as a cell, with reasons for its values and its permutation test."""
    why, note = (
        "; ".join(dict.fromkeys(text for text in part.get(f"{column}_{name}", ()) if isinstance(text, str) and text))
        for name in ("why", "note")
    )
    cell = replace(cell_of_values(part[column], spread), why=why, note=note)
    if f"{column}_sd" in part:  # values by chance: their spread is over permutations
        return replace(cell, spread=float(part[f"{column}_sd"].mean()))
    if f"{column}_p" in part:
        cell = replace(cell, p=float(part[f"{column}_p"].max()))
    if len(part) == 1 and f"{column}_error" in part and cell.seeds:
        return replace(cell, spread=float(part[f"{column}_error"].iloc[0]))
    return cell
