"""Differences between two results as dots with intervals."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icy.analysis import style
from icy.analysis.row_types import Series
from icy.analysis.tables.differences import LEVEL, ResultsComparison, identifying_columns
from icy.core.errors import InvalidSettingError

ROW = 0.19  # inches
ROOM = 1.3  # factor between the limits of the axis and the smallest and largest quotient
UP, DOWN = style.COLORS[1], style.COLORS[0]  # colors of effects that are larger, or smaller, in the second result


@style.with_own_settings
def differences(comparison: ResultsComparison, width: float | None = None) -> Figure:
    """Draw each cell's effect with its 95 % interval, and its pairs of runs as small ticks.

    Ratios, on a logarithmic axis, and other values have separate panels. An effect that is significant after Holm's
    correction is in color. An effect that is only a bound is a hollow arrow. An interval beyond the axis ends in an
    arrow.

    Args:
        comparison: comparison of two results.
        width: width of the figure in inches.

    Raises:
        InvalidSettingError: more cells than fit on a page.
    """
    cells = comparison.cells.reset_index(drop=True)
    cells = cells[cells["effect"].notna()]
    if not len(cells):
        raise InvalidSettingError("Cannot draw differences: every cell was cut in both results.")
    if len(cells) * ROW > style.TALLEST - 1:
        raise InvalidSettingError(
            f"{len(cells)} cells do not fit on a page; choose some with --model or --grammar, or save the table."
        )
    parts = [part for _, part in cells.groupby(cells["measure"].eq("ratio"), sort=True)]
    counts = [len(part) for part in parts]
    size = (width or style.WIDTH, 1.2 + sum(0.4 + ROW * count for count in counts))
    names = ["ratios" if part["measure"].iloc[0] == "ratio" else "values" for part in parts]
    figure, axes = style.panels(names, None, size, 1, gridspec_kw={"height_ratios": counts})
    for ax, part in zip(axes, parts, strict=True):
        _panel(ax, part, comparison)
    shown = {_looks(cell, comparison) for _, cell in cells.iterrows()}
    entries = [(label, style.Look(color)) for label, color in sorted(shown)]
    if cells["bound"].ne("").any():
        entries.append(("a bound: further that way", style.Look("black", marker=">", hollow=True)))
    style.legend(figure, axes, True, [look.handle(label, 4.5, line=False) for label, look in entries])
    first, second = comparison.names
    notes = ["mark and line: effect and its 95 % interval; gray ticks: pairs of runs; arrow: the line continues"]
    style.entitle(figure, axes, True, None, f"How {second} differs from {first}", notes)
    return figure


def _looks(cell: Series, comparison: ResultsComparison) -> tuple[str, str]:
    """Return the legend text of a cell, and its color."""
    first, second = comparison.names
    if not cell["p_holm"] < LEVEL:
        return f"not significantly different from {first}", style.DIM
    larger = cell["effect"] > (1.0 if cell["measure"] == "ratio" else 0.0)
    return (f"larger in {second}", UP) if larger else (f"smaller in {second}", DOWN)


def _panel(ax: Axes, part: pd.DataFrame, comparison: ResultsComparison) -> None:
    ratio = part["measure"].iloc[0] == "ratio"
    if ratio:
        ax.set_xscale("log")
    ax.axvline(1.0 if ratio else 0.0, color="black", linewidth=0.8, zorder=1)
    for y, (place, cell) in enumerate(part.iterrows()):
        if y % 2 == 0:
            ax.axhspan(y - 0.5, y + 0.5, color="#f3f3f3", zorder=0, linewidth=0)
        runs = comparison.runs[comparison.runs["cell"] == place]
        gaps = runs["second"] / runs["first"] if ratio else runs["difference"]
        ax.plot(gaps, [y] * len(gaps), "|", color=style.GRAY, markersize=5, markeredgewidth=0.8, zorder=2)
        _, color = _looks(cell, comparison)
        face = "white" if cell["bound"] else color
        mark = cell["bound"] or "o"  # "<" and ">" are marks too
        ax.plot([cell["effect"]], [y], mark, markersize=4.5, markerfacecolor=face, markeredgecolor=color, zorder=4)
    low, high = _ends(ax, ratio)
    for y, (_, cell) in enumerate(part.iterrows()):
        if cell["test"] == "t":
            color = _looks(cell, comparison)[1]
            ax.plot([cell["low"], cell["high"]], [y, y], color=color, linewidth=1.2, zorder=3)
            for end, mark, beyond in ((low, "<", cell["low"] < low), (high, ">", cell["high"] > high)):
                if beyond:
                    ax.plot([end], [y], mark, color=color, markersize=4, clip_on=False, zorder=3)
    first, second = comparison.names
    effect = f"{second} / {first}, of geometric means" if ratio else f"{second} - {first}"
    ax.set_xlabel(effect)
    ax.set(ylim=(len(part) - 0.5, -0.5), xlim=(low, high))
    ax.set_yticks(range(len(part)), _labels(part))
    style.tidy(ax, grid="x")
    if ratio:
        style.ratio_axis(ax.xaxis, low, high)
    ax.tick_params(axis="y", length=0, labelsize=style.SMALL)


def _ends(ax: Axes, ratio: bool) -> tuple[float, float]:
    """Return axis limits with room around effects and seeds; intervals of few seeds may exceed them."""
    low, high = ax.get_xlim()
    return (low / ROOM, high * ROOM) if ratio else (low - (high - low) / 4, high + (high - low) / 4)


def _labels(part: pd.DataFrame) -> list[str]:
    """Return a label per cell: the values of its identifying columns, without empty values."""
    columns = part[identifying_columns(part)]
    rows = columns.astype(object).where(columns.notna(), "").to_numpy().tolist()
    return [", ".join(text for value in row if (text := str(value))) for row in rows]
