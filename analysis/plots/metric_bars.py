"""Bars of metrics (in the form of Icy22 figure 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icy.analysis import style
from icy.analysis.order import in_order
from icy.core.conventions import Convention, read_conventions

PANELS_ACROSS = 5


def plot_metrics(scores: pd.DataFrame, metrics: Sequence[str]) -> Figure:
    """Draw a panel per metric with a bar per language and its standard deviation over seeds.

    Below each axis are the conventions of the metric.

    Args:
        scores: rows of `icy.metrics.evaluate`, with the column `name`.
        metrics: columns to draw.
    """
    conventions = read_conventions(scores.get("conventions", ()))
    names = in_order(map(str, scores["name"]))
    down, across = -(-len(metrics) // PANELS_ACROSS), min(len(metrics), PANELS_ACROSS)
    width, height = 2.1 * across + 1.0, (0.26 * len(names) + 0.9) * down
    figure = style.figure(width, height)
    axes = figure.subplots(down, across, squeeze=False, sharey=True)
    for ax in axes.flat[len(metrics) :]:
        ax.remove()
    for ax, metric in zip(axes.flat, metrics, strict=False):
        _bars(ax, scores, metric, names)
        _entitle(ax, conventions.get(metric, Convention(metric)), 1.8)
    return figure


def _entitle(ax: Axes, used: Convention, width: float) -> None:
    """Write the name of a metric above its panel, and its conventions below the axis."""
    ax.set_title(used.heading(used.metric.replace("_", " ")), fontsize="medium")
    ax.set_xlabel(style.wrapped(used.text.replace("=", " "), width, style.SMALL), fontsize=style.SMALL, color=style.DIM)


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
    ax.spines[["top", "right"]].set_visible(False)
    ax.axvline(0, color="black", linewidth=0.8)
    if mean.min() >= 0 and mean.max() <= 1:
        ax.set_xlim(0, 1.05)
