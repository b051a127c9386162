"""Where models stand in the atlas: a column per grammar, a dot per model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from icy.analysis import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from icy.analysis.placing import Placement

SPREAD = 0.34  # of a column: how far dots of like values move aside
BINS = 24
MOST_NEIGHBOURS = 3
MEASURES = {"ratio": "steps to the target, as a ratio to concat's", "accuracy": "accuracy"}


def plot_placement(placement: Placement, axes: Axes | None = None) -> Figure:
    """Every model of the atlas as a grey dot, the placed rows as large marks, and their nearest neighbours as rings.

    Args:
        placement: of `Atlas.place`.
        axes: where to draw; a figure of its own unless given.

    Returns:
        The figure.
    """
    names = placement.grammars
    figure, (ax,) = style.panels(["placement"], axes, (1.4 + 0.75 * max(3, len(names)) + 1.9, 3.6))
    log = placement.measure == "ratio"
    if log:
        ax.set_yscale("log")
    for place, grammar in enumerate(names):
        _column(ax, place, placement.others[grammar].dropna(), log)
    mine, others = (table[names].T for table in (placement.mine, placement.others))
    handles = [_line(ax, mine[name], name, look) for name, look in _looks(placement)]
    handles += [
        _ring(ax, others[name], name, colour, place) for place, (name, colour) in enumerate(_nearest(placement))
    ]
    ax.set_xticks(range(len(names)), names, fontsize=style.MEDIUM)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_ylabel(MEASURES.get(placement.measure, "accuracy on held-out meanings"))
    style.tidy(ax, "y")
    if log:
        low, high = ax.get_ylim()
        style.ratio_axis(ax.yaxis, low, high)
    style.legend(figure, [ax], axes is None, handles)
    good = "low is easily learnt" if log else "high is easily learnt"
    title = f"Among {len(placement.others)} of the {placement.atlas.name}: {placement.setting}; {good}"
    style.entitle(figure, [ax], axes is None, None, title, placement.notes())
    return figure


def _looks(placement: Placement) -> list[tuple[str, style.Look]]:
    return list(style.model_looks([str(name) for name in placement.mine.index]).items())


def _nearest(placement: Placement) -> list[tuple[str, str]]:
    """The nearest neighbours, each once, in the colour of the row that they are next to."""
    looks = dict(_looks(placement))
    found: dict[str, str] = {}
    near = placement.neighbours.groupby("model", sort=False).head(MOST_NEIGHBOURS if len(looks) == 1 else 1)
    for model, name in near[["model", "neighbour"]].itertuples(index=False):
        if name not in looks:
            found.setdefault(str(name), "black" if len(looks) == 1 else looks[model].colour)
    return list(found.items())[:MOST_NEIGHBOURS]


def _column(ax: Axes, place: int, values: pd.Series[float], log: bool) -> None:
    """The dots of one grammar, those of like values side by side."""
    heights = np.log(values.to_numpy(float)) if log else values.to_numpy(float)
    if not len(heights):
        return
    bins = np.digitize(heights, np.linspace(heights.min(), heights.max(), BINS))
    aside = np.zeros(len(heights))
    for one in np.unique(bins):
        members = np.flatnonzero(bins == one)
        aside[members] = np.arange(len(members)) - (len(members) - 1) / 2
    widest = max(8.0, 2 * np.abs(aside).max())
    ax.plot(place + aside * 2 * SPREAD / widest, values, "o", color=style.GREY, alpha=0.55, markersize=3.2, mew=0)


def _line(ax: Axes, values: pd.Series[float], name: str, look: style.Look) -> Any:
    (line,) = ax.plot(
        range(len(values)), values, color=look.colour, marker=look.marker, markersize=7, linewidth=style.LINE,
        linestyle=look.dash, label=name, zorder=4,
    )  # fmt: skip
    return line


RINGS = ("o", "s", "^")
ASIDE = 0.16  # of a column: so that the marks of neighbours of like values are seen


def _ring(ax: Axes, values: pd.Series[float], name: str, colour: str, place: int) -> Any:
    (line,) = ax.plot(
        np.arange(len(values)) + ASIDE * (place - 1), values, RINGS[place % len(RINGS)], color=colour,
        markerfacecolor="white", markersize=6, markeredgewidth=1.3, label=f"near: {name}", zorder=5,
    )  # fmt: skip
    return line
