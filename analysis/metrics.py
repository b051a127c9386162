"""Metrics of several languages as a table and as bars (Icy22 figure 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import style
from .cells import SPREADS, Cell, cell_of, checked_spread
from .tables import BiasTable, in_order

FACTS = ("rows", "attributes", "length", "vocab_size")
PANELS_ACROSS = 5


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


def plot_metrics(scores: pd.DataFrame, metrics: Sequence[str]) -> Figure:
    """A panel of bars per metric, a bar per language, with the standard deviation over seeds.

    Args:
        scores: rows of `icy.metrics.evaluate`, with the column `name`.
        metrics: which of its columns.
    """
    names = in_order(map(str, scores["name"]))
    down, across = -(-len(metrics) // PANELS_ACROSS), min(len(metrics), PANELS_ACROSS)
    width, height = 2.1 * across + 1.0, (0.26 * len(names) + 0.9) * down
    figure = style.figure(width, height)
    axes = figure.subplots(down, across, squeeze=False, sharey=True)
    for ax in axes.flat[len(metrics) :]:
        ax.remove()
    for ax, metric in zip(axes.flat, metrics, strict=False):
        _bars(ax, scores, metric, names)
    return figure


def _bars(ax: Axes, scores: pd.DataFrame, metric: str, names: list[str]) -> None:
    groups = scores.groupby("name")[metric]
    mean, spread = groups.mean().reindex(names), groups.std(ddof=1).reindex(names)
    if f"{metric}_error" in scores:
        spread = spread.fillna(scores.groupby("name")[f"{metric}_error"].mean().reindex(names))
    place = np.arange(len(names))
    ax.barh(place, mean.fillna(0), 0.7, color=style.COLOURS[0], xerr=spread.fillna(0), error_kw={"elinewidth": 1})
    for y in place[mean.isna()]:
        ax.text(0, y, " undefined", va="center", fontsize="small", color=style.GREY)
    ax.set_yticks(place, names)
    ax.invert_yaxis()
    ax.set_title(metric.replace("_", " "), fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    ax.axvline(0, color="black", linewidth=0.8)
    if mean.min() >= 0 and mean.max() <= 1:
        ax.set_xlim(0, 1.05)
