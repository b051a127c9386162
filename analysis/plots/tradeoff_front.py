"""Compositional grammars against noise grammars, with the front of the best models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from icy.analysis import style
from icy.analysis.order import COMPOSITIONAL, NOISE
from icy.analysis.table_cells import LEAST_RATIO, checked_spread
from icy.core.errors import InvalidSettingError
from icy.records.load import Results

from .panels import (
    MOST_NAMED,
    Point,
    ResultBlock,
    blocks,
    describe_tradeoff,
    front,
    measured,
    place_labels,
    ranked,
    refuse_crowd,
)

PANEL_HEIGHT, SMALLER = 3.4, 2.6  # inches, for one panel across and for two
WIDER = 8.5  # width of each of several panels with a legend, in inches
LISTED, LONGEST = 0.135, 32  # height of a name in the legend, in inches; names per column, if there are several panels
MARK = 5.5  # points


@style.with_own_settings
def tradeoff(
    results: Results,
    *,
    spread: str = "sd",
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw accuracy on compositional grammars against accuracy on noise, with ranks and the Pareto front of models.

    The vertical axis is the accuracy on shufdet (for receivers the mean of shuf and shufdet), the horizontal axis the
    mean over rot, pairsum and proj, both averaged per seed. The upper left is better: a model there learns
    compositional grammars and not noise. Models are ranked by the difference of the two. For ratios, axes are
    logarithmic, means are geometric, and models are ranked by the quotient. As a small ratio is fast learning, the
    lower right is better.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have separate panels.
        spread: "sd", "sem" or "ci95".
        title: title; by default a sentence on the measure, "" for none.
        width: width of a new figure, in inches.
        axes: axes to draw on, one per panel; by default a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no model has all these grammars, an unknown spread, a wrong number of axes, or too many
            rows to be read.
    """
    checked_spread(spread)
    long = measured(results)
    parts, points = [], []
    for part in blocks(long):
        if found := ranked(part, spread):
            parts.append(part)
            points.append(found)
    if not parts:
        raise InvalidSettingError(_explain_no_models(long))
    width = style.width_of(width, 0) or None
    named = _has_names(points, width or style.WIDTH)
    below = style.CAPTIONED and not named and len(points) == 1 and axes is None  # names are in a legend below
    size, across = _size(points, named or below, width)
    if axes is None:
        refuse_crowd(size, parts)
    names = [part.name or "all models" for part in parts]
    figure, drawn = style.panels(names, axes, size, across)
    extent = size[0] / across, size[1] / -(-len(parts) // across)
    for ax, part, found in zip(drawn, parts, points, strict=True):
        _panel(ax, part, found, named or below, extent, several=len(parts) > 1)
        if below:
            tight = {"handlelength": 1.2, "handletextpad": 0.3, "columnspacing": 0.8}
            style.legend(figure, [ax], True, _handles(found), **tight)
    style.entitle(figure, drawn, axes is None, title, *describe_tradeoff(long, spread))
    for ax, part, found in zip(drawn, parts, points, strict=True):
        names = [point.name if named else str(point.rank) for point in found]
        lines = [front(found, part), *(bar for point in found for bar in point.bars)]
        place_labels(ax, [point.place for point in found], names, lines)
    return figure


def _has_names(points: Sequence[Sequence[Point]], width: float) -> bool:
    """Return whether to write names at the points: only for few models, with enough room."""
    longest = max(style.text_size(point.name, style.SMALL)[0] for found in points for point in found) / 72
    return max(map(len, points)) <= MOST_NAMED and longest < 0.5 * width / min(2, len(points))


def _size(points: Sequence[Sequence[Point]], named: bool, width: float | None) -> tuple[tuple[float, float], int]:
    """Return width and height of a new figure, in inches, and the number of panels side by side.

    Panels with names at their points are side by side. Panels with a legend are side by side, on a wider figure, only
    if they would otherwise be taller than a page.
    """
    listed = 0 if named else max(map(len, points))
    if len(points) == 1 or named:
        across, usual = min(2, len(points)), style.WIDTH
        panel = max(PANEL_HEIGHT if across == 1 else SMALLER, LISTED * (listed + 2))
    else:
        panel = max(PANEL_HEIGHT, LISTED * (min(listed, LONGEST) + 2))
        across = 1 if width else -(-len(points) // max(1, int(style.TALLEST / panel)))
        usual = WIDER * across
    return (width or usual, panel * -(-len(points) // across) + 0.5), across


def _explain_no_models(long: pd.DataFrame) -> str:
    present = set(long["grammar"])
    missing = [g for g in (*NOISE, "shufdet") if g not in present]
    options = " ".join(f"-g {g}" for g in missing) or "-g all"
    reason = (
        f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        if missing
        else ("no model has all of them")
    )
    return (
        f"The plot 'tradeoff' needs results on {', '.join(NOISE)} and on shufdet (or shuf), but {reason}: probe the "
        f"same models with {options}."
    )


# -- drawing -----------------------------------------------------------------------------------------------------------


def _panel(
    ax: Axes, part: ResultBlock, points: Sequence[Point], named: bool, extent: tuple[float, float], several: bool
) -> None:
    """Draw one panel of `extent` inches, alone or as one of several; names are in the legend unless `named`."""
    looks = style.model_looks([point.line.model for point in points])
    for point in points:
        look = looks[point.line.model]
        for bar in point.bars:
            ax.plot(*zip(*bar, strict=True), color="#d0d0d0", linewidth=0.8, zorder=1)
        ax.plot(*point.place, look.marker, markersize=MARK, markerfacecolor=look.face, markeredgecolor=look.color,
                markeredgewidth=1.0, zorder=3)  # fmt: skip
    if part.is_ratio:
        _log_axes(ax, points)
    ax.margins(0.08)
    ax.plot(*zip(*front(points, part), strict=True), color="black", linewidth=0.8, linestyle="--", zorder=2)
    style.tidy(ax, grid="both")
    easy = [g for g in COMPOSITIONAL if g in part.grammars]
    on = easy[0] if len(easy) == 1 else f"mean of {', '.join(easy)}"
    ax.set_xlabel(style.wrapped(f"{part.axis} on noise", 0.6 * extent[0], style.MEDIUM))
    ax.set_ylabel(style.wrapped(f"{part.axis} on {on}", 0.55 * extent[1], style.MEDIUM))
    style.name_block(ax, style.wrapped(part.name, 0.7 * extent[0], style.MEDIUM))
    if not named:
        columns = -(-len(points) // LONGEST) if several else 1
        ax.legend(handles=_handles(points), fontsize=style.SMALL, frameon=False, loc="center left",
                  bbox_to_anchor=(1.01, 0.5), borderaxespad=0, labelspacing=0.25, handletextpad=0.3, ncols=columns,
                  columnspacing=0.8)  # fmt: skip


def _log_axes(ax: Axes, points: Iterable[Point]) -> None:
    """Make both axes logarithmic."""
    for place, axis in enumerate((ax.xaxis, ax.yaxis)):
        ends = [(point.place[place], *point.ends[place]) for point in points]
        low = min(max(end, value / 2, LEAST_RATIO) for value, end, _ in ends) / 1.15
        high = max(end for _, _, end in ends) * 1.15
        (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log")
        (ax.set_xlim if axis is ax.xaxis else ax.set_ylim)(low, high)
        style.ratio_axis(axis, low, high)


def _handles(points: Sequence[Point]) -> list[Line2D]:
    """Return the entries of a legend: the models, by rank, with their marks."""
    looks = style.model_looks([point.line.model for point in points])
    return [looks[point.line.model].handle(point.name, MARK - 1, line=False) for point in points]
