"""Pictures of the findings: one panel as wide as a phone, with models as dots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icy.analysis import style
from results.findings.data import Estimate

RATIO = "ratio to the updates for concat"
LINE, GAP = 0.15, 0.12  # inches: height of an estimate, and between rows


def marks(rows: Mapping[str, Mapping[str, Estimate]], x: str, at: float | None = 1.0) -> Figure:
    """Draw estimates: a row per name, and in it a color per series.

    Faint dots are models (hollow: with cut runs), a bar is a mean, a line its interval, and ">" or "<" a bound.

    Args:
        rows: estimates by row and series; the series "" has no legend.
        x: label of the values.
        at: value of no effect, which has a line: 1 for ratios, on a logarithmic axis, or 0. Without one, all series of
            a row are on one line.
    """
    series = list(dict.fromkeys(name for row in rows.values() for name in row))
    step = 0.0 if at is None else LINE  # between the series of a row
    height = 0.6 + len(rows) * (max(LINE, step * len(series)) + GAP)
    figure, (ax,) = style.panels(["marks"], (style.WIDTH, height))
    for place, row in enumerate(rows.values()):
        for name, one in row.items():
            y = place + (series.index(name) - (len(series) - 1) / 2) * step / (step * len(series) + GAP)
            color = style.COLORS[series.index(name)]
            bounds = one.bounds or [False] * len(one.values)
            alpha = 0.9 if np.isnan([one.low, one.high]).all() else 0.35
            _dots(ax, one.values, [y] * len(one.values), bounds, color, markersize=3.5, alpha=alpha)
            if np.isinf([one.low, one.high]).any():
                end, mark = (one.low, "$>$") if np.isinf(one.high) else (one.high, "$<$")
                ax.plot([end], [y], marker=mark, markersize=6, markeredgewidth=1, color=color)
            else:
                ax.plot([one.low, one.high], [y, y], color=color, linewidth=1.5)
                ax.plot([one.mean], [y], "|", markersize=7, markeredgewidth=2, color=color)
    if at is not None:
        ax.axvline(at, color="black", linewidth=0.8, zorder=1)
    if at == 1:
        _logarithmic(ax)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set_xlabel(x, loc="right")  # a long label extends to the left, below the names
    style.tidy(ax, "x")
    if len(series) > 1:
        _legend(figure, {name: style.Look(color) for name, color in zip(series, style.COLORS, strict=False)})
    return figure


def _dots(ax: Axes, x: Any, y: Any, cut: Any, color: str, marker: str = "o", **more: Any) -> None:
    """Draw models; models with cut runs are hollow."""
    x, y, cut = np.asarray(x, float), np.asarray(y, float), np.asarray(cut, bool)
    for mask, face in ((~cut, color), (cut, "white")):
        marks: dict[str, Any] = {"markersize": 3.5, "color": color, "markerfacecolor": face, "alpha": 0.7, **more}
        ax.plot(x[mask], y[mask], marker, **marks)


def ranks(panels: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw how each model ranks the columns of a table: a panel per table, a row per model, dark for a large value."""
    figure, axes = style.panels(list(panels), (style.WIDTH, 3.0), len(panels))
    for ax, (name, values) in zip(axes, panels.items(), strict=True):
        order = values[values.mean().sort_values().index].rank(axis=1)
        image = ax.imshow(order.sort_values(list(order)[::-1]), cmap="cividis_r", aspect="auto", interpolation="none")
        ax.set_xticks(range(len(order.columns)), list(order), rotation=90)
        ax.set_yticks([])
        style.head(ax, name, style.WIDTH / len(panels))
        style.tidy(ax)
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.6, aspect=30)
    bar.set_ticks([1, len(order.columns)], labels=["easiest", "hardest"])
    bar.ax.tick_params(labelsize=style.SMALL)
    return figure


def scatter(panels: Mapping[str, pd.DataFrame], x: str, y: str) -> Figure:
    """Draw points: a panel per table with the columns x (logarithmic), y, and `name`, which determines the look.

    If a table has the column `line`, a line connects the points with the same value in it.
    """
    figure, axes = style.panels(list(panels), (style.WIDTH, 2.6), len(panels), sharey=True)
    looks = style.grammar_looks(dict.fromkeys(name for table in panels.values() for name in table["name"]))
    for ax, (title, table) in zip(axes, panels.items(), strict=True):
        for _, part in table.sort_values("x").groupby("line") if "line" in table else ():
            ax.plot(part["x"], part["y"], color=style.GRAY, linewidth=0.6)
        for name, part in table.groupby("name", sort=False):
            look = looks[str(name)]
            hollow = [look.hollow] * len(part)
            _dots(ax, part["x"], part["y"], hollow, look.color, look.marker, markersize=4.5)
        style.head(ax, title, style.WIDTH / len(panels))
        style.tidy(ax, "both")
        _logarithmic(ax)
    axes[0].set_ylabel(y)
    axes[-1].set_xlabel(x, loc="right", fontsize=style.MEDIUM)
    _legend(figure, looks)
    return figure


def stacked(panels: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Figure:
    """Draw shares of a whole as stacked bars: a panel per mapping, a bar per row."""
    width = 6.4 if len(panels) > 1 else style.WIDTH
    figure, axes = style.panels(list(panels), (width, 2.4), len(panels), sharey=True)
    rows = list(dict.fromkeys(row for panel in panels.values() for row in panel))
    names = list(next(iter(next(iter(panels.values())).values())))
    for ax, (title, panel) in zip(axes, panels.items(), strict=True):
        for row, shares in panel.items():
            offset = 0.0
            for place, name in enumerate(names):
                ax.barh(rows.index(row), shares[name], left=offset, height=0.65, color=style.COLORS[place])
                offset += shares[name]
        ax.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, 1), xlabel="share of the variance")
        ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        ax.set_yticks(range(len(rows)), rows)
        style.head(ax, title, 2)
        style.tidy(ax)
    _legend(figure, {name: style.Look(color) for name, color in zip(names, style.COLORS, strict=False)})
    return figure


def _logarithmic(ax: Axes) -> None:
    """Make the horizontal axis logarithmic, with plain numbers at its ticks."""
    ax.set_xscale("log")
    style.ratio_axis(ax.xaxis, *ax.get_xlim())


def _legend(figure: Figure, looks: Mapping[str, style.Look]) -> None:
    """Draw a legend of marks below a figure."""
    handles = [look.handle(name, line=False) for name, look in looks.items()]
    style.legend(figure, figure.axes, True, handles, loc="outside lower center", ncols=len(looks))
