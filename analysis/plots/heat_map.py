"""The bias table as a heat map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpecBase
from matplotlib.patches import Patch, Rectangle

from icy.analysis import style
from icy.analysis.table_cells import TableCell, checked_spread
from icy.records.load import Results

from .bar_panels import bars
from .panels import Line, ResultBlock, blocks, color_ends, describe, measured

COLORS = "viridis"  # perceptually uniform, also under color blindness and in gray; bright means easy
MISSING = {"facecolor": "#e6e6e6", "edgecolor": "#b0b0b0", "hatch": "////", "linewidth": 0}
KEYS = 0.52  # height of a row of color bars with their names, in inches
KEY_WIDTH, NARROWEST_KEY = 2.0, 1.4  # usual and least width of a color bar, in inches
NAME, GAP = 0.2, 0.12  # inches above a panel: its name, and the space around grammars
ABOUT, PADDING = 0.65, 0.15  # inches with title and notes, and without
MOST_SINGLE = 3  # up to this many panels with one row each are drawn as bars
FEWEST = 4  # least number of rows of a panel that is continued in the next column


@dataclass(frozen=True)
class Cells:
    """Width and height of cells, in inches, and sizes of names and numbers, in points."""

    width: float
    height: float
    names: float
    numbers: float


def _cells(several: bool) -> tuple[Cells, Cells]:
    """Return usual cells, and small ones for tables that otherwise do not fit on a page.

    Cells with `several` seeds have a second line with the spread.
    """
    found = []
    for width, height, names, numbers in ((0.62, 0.23, style.MEDIUM, style.SMALL), (0.42, 0.155, 6.0, 5.5)):
        names, numbers = max(names, style.LEAST), max(numbers, style.LEAST)
        found.append(Cells(width, max(height, (1.15 * numbers * (1 + several) + 3.5) / 72), names, numbers))
    return found[0], found[1]


@dataclass(frozen=True)
class HeatPanel:
    """Some rows of a block, drawn on separate axes."""

    block: ResultBlock
    lines: Sequence[Line]
    name: str

    def head(self, cells: Cells) -> float:
        """Return the height of the panel's name and grammar labels, in inches."""
        grammars = self.block.grammars
        tilted = style.tilt(grammars, cells.width, size=cells.names)
        tall = cells.names
        if tilted:
            longest, tilt = max(style.text_size(name, cells.names)[0] for name in grammars), math.radians(style.TILT)
            tall = longest * math.sin(tilt) + cells.names * math.cos(tilt)
        return NAME * bool(self.name) + GAP + tall / 72

    def height(self, cells: Cells) -> float:
        """Return the height of the panel in inches."""
        return self.head(cells) + cells.height * len(self.lines)


@style.with_own_settings
def heat(
    results: Results,
    *,
    spread: str = "sd",
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw the bias table as a heat map: a row per model, a column per grammar, center and spread in each cell.

    Bright cells were learned easily. A dagger marks a mean over runs if some were cut at the cap; cells that were not
    measured are hatched. The color scale of ratios is logarithmic, so their means are geometric and the spread is a
    factor, as in the line "log scale" of a table; the scale of accuracies is from 0 to 1. A figure that is too tall for
    a page gets smaller cells, and then several columns of panels. A single model is drawn as bars with errors (`bars`),
    unless axes are given.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have separate panels.
        spread: "sd", "sem" or "ci95".
        title: title; by default a sentence on the measure, "" for none.
        width: width of a new figure, in inches.
        axes: axes to draw on, one per panel; by default a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no results, a value that cannot be drawn, an unknown spread, or a wrong number of axes.

    Example:
        >>> import pandas as pd
        >>> from icy.analysis.plots import heat
        >>> long = pd.DataFrame({"model": ["FC1L", "FC2L"], "grammar": "rot", "seed": 1, "value": [0.99, 0.49]})
        >>> long["measure"], long["role"] = "accuracy", "sender"
        >>> [text.get_text() for text in heat(long).axes[0].texts]
        ['0.99', '0.49']
    """
    checked_spread(spread)
    long = measured(results)
    whole = [HeatPanel(part, part.lines, part.name) for part in blocks(long)]
    if axes is None and len(whole) <= MOST_SINGLE and all(len(panel.lines) == 1 for panel in whole):
        return bars(results, spread=spread, title=title, width=width)
    scales = {part.measure: _colors(part.measure, whole, spread) for part in (panel.block for panel in whole)}
    usual_cells, small = _cells(long["seed"].nunique() > 1)
    hatched = any(line.cell(g, spread) is None for panel in whole for line in panel.lines for g in panel.block.grammars)
    usual, notes = describe(long, spread)
    if axes is None:
        width = style.width_of(width, 0) or None
        columns, cells = _page(whole, width, len(scales) + 1, usual_cells, small)
        across = width or max(4.0, len(columns) * _across(whole, cells))
        rows = _key_rows(len(scales) + hatched, across)
        panels = [panel for column in columns for panel in column]
        room = (across / len(columns) - _names(whole, cells)) / max(len(panel.block.grammars) for panel in panels)
        cells = replace(cells, width=min(cells.width, max(0.0, room)))  # narrow columns have tilted, taller names
        figure, drawn, keys = _new_figure(columns, cells, across, KEYS * rows)
    else:
        drawn = style.given_axes([panel.name or "the table" for panel in whole], axes)
        figure, panels, cells, keys = style.figure_of(drawn[0]), whole, usual_cells, None
        room = min(ax.get_window_extent().width for ax in drawn) / figure.dpi
        room /= max(len(panel.block.grammars) for panel in panels)
    for ax, panel in zip(drawn, panels, strict=True):
        _draw(ax, panel, *scales[panel.block.measure], cells, room, spread)
    labels = {panel.block.measure: panel.block.axis for panel in panels}
    if keys is not None:
        _keys_below(figure, keys, [(labels[name], *scale) for name, scale in scales.items()], hatched)
    else:
        _keys_beside(figure, drawn, [panel.block for panel in panels], scales, hatched)
    style.entitle(figure, drawn, axes is None, title, usual, notes)
    return figure


# -- the page ----------------------------------------------------------------------------------------------------------


def _names(panels: Sequence[HeatPanel], cells: Cells) -> float:
    """Return the width of the column of model names, in inches."""
    return 0.15 + max(style.text_size(line.label, cells.names)[0] for panel in panels for line in panel.lines) / 72


def _across(panels: Sequence[HeatPanel], cells: Cells) -> float:
    """Return the width of one column of panels, in inches."""
    names = max(style.text_size(f"{panel.name} (continued)", style.MEDIUM)[0] for panel in panels) / 60  # bold
    columns = max(len(panel.block.grammars) for panel in panels)
    return _names(panels, cells) + max(cells.width * columns, names * (len(panels) > 1)) + 0.15


def _key_rows(keys: int, width: float) -> int:
    """Return the number of rows that the color bars need, so that their names do not overlap."""
    return -(-keys // max(1, int(width / NARROWEST_KEY)))


def _page(
    panels: Sequence[HeatPanel], width: float | None, keys: int, usual: Cells, small: Cells
) -> tuple[list[list[HeatPanel]], Cells]:
    """Arrange panels in columns that fit on a page; return the columns and the size of their cells.

    `keys` is the number of color bars.
    """
    room = style.TALLEST - KEYS * _key_rows(keys, width or max(4.0, _across(panels, small))) - ABOUT - 0.4
    if sum(panel.height(usual) for panel in panels) <= room:
        return [list(panels)], usual
    most = max(1, int(width / _across(panels, small))) if width else len(panels) * 100
    count, columns = 1, _columns(panels, small, room)
    while len(columns) > most:  # too many for this width: make columns taller
        room *= 1.1
        columns = _columns(panels, small, room)
    count, least = len(columns), sum(panel.height(small) for panel in panels) / len(columns)
    while least < room:  # find columns of similar height
        if len(found := _columns(panels, small, least)) <= count:
            return found, small
        least += small.height
    return columns, small


def _columns(panels: Sequence[HeatPanel], cells: Cells, room: float) -> list[list[HeatPanel]]:
    """Put panels into columns that are not taller than `room`; split a panel if it does not fit."""
    columns: list[list[HeatPanel]] = [[]]
    room_left = room
    for panel in panels:
        rest: HeatPanel | None = panel
        while rest is not None:
            count = len(rest.lines)
            fit = int((room_left - rest.head(cells)) / cells.height + 1e-6)
            if fit < min(FEWEST, count) and columns[-1]:
                columns.append([])
                room_left = room
                continue
            now, rest = _split(rest, fit if fit >= count else max(1, min(fit, count - FEWEST)))
            columns[-1].append(now)
            room_left -= now.height(cells)
    return columns


def _split(panel: HeatPanel, count: int) -> tuple[HeatPanel, HeatPanel | None]:
    """Split a panel into its first `count` rows and the rest, or None if there are no more."""
    if count >= len(panel.lines):
        return panel, None
    name = panel.name if panel.name.endswith("(continued)") else f"{panel.name} (continued)".strip()
    return replace(panel, lines=panel.lines[:count]), replace(panel, lines=panel.lines[count:], name=name)


def _new_figure(
    columns: Sequence[Sequence[HeatPanel]], cells: Cells, width: float, keys: float
) -> tuple[Figure, list[Axes], GridSpecBase]:
    """Return a figure with axes for panels in columns, and a grid below them for color bars.

    `keys` is the height of color bars, in inches.
    """
    tallest = max(sum(panel.height(cells) for panel in column) for column in columns)
    figure = style.figure(width, tallest + keys + (PADDING if style.CAPTIONED else ABOUT))
    page = figure.add_gridspec(2, 1, height_ratios=(tallest, keys))
    places = page[0].subgridspec(1, len(columns))
    drawn = []
    for i, column in enumerate(columns):
        free = tallest - sum(panel.height(cells) for panel in column)
        heights = [cells.height * len(panel.lines) for panel in column] + ([free] if free > 0.01 else [])
        grid = places[i].subgridspec(len(heights), 1, height_ratios=heights)
        drawn += [figure.add_subplot(grid[row]) for row in range(len(column))]
    return figure, drawn, page[1].subgridspec(1, 1)


# -- color bars --------------------------------------------------------------------------------------------------------


def _colors(measure: str, panels: Sequence[HeatPanel], spread: str) -> tuple[Normalize, Colormap]:
    """Return the color scale that all panels of a measure share."""
    same = [panel.block for panel in panels if panel.block.measure == measure]
    ends = color_ends(same, spread)
    return (LogNorm(*ends), colormaps[COLORS].reversed()) if same[0].is_ratio else (Normalize(*ends), colormaps[COLORS])


def _keys_below(
    figure: Figure, place: GridSpecBase, scales: Sequence[tuple[str, Normalize, Colormap]], hatched: bool
) -> None:
    """Draw a color bar per measure, side by side in rows, and a legend of hatching."""
    keys = len(scales) + hatched
    width = figure.get_figwidth()
    rows = _key_rows(keys, width)
    across = -(-keys // rows)
    bar = min(KEY_WIDTH, 0.9 * width / across)
    grid = place[0].subgridspec(rows, across + 1, width_ratios=[*[bar] * across, max(0.01, width - bar * across)])
    for i, (label, norm, colors) in enumerate(scales):
        ax = figure.add_subplot(grid[divmod(i, across)])
        shown = figure.colorbar(ScalarMappable(norm, colors), cax=ax, orientation="horizontal")
        _name_bar(shown, label, norm)
    if hatched:
        ax = figure.add_subplot(grid[divmod(len(scales), across)])
        ax.set(xticks=[], yticks=[])
        ax.set_axis_off()
        ax.legend(handles=_hatching(), loc="upper left", fontsize=style.SMALL, frameon=False, borderaxespad=0)


def _keys_beside(
    figure: Figure,
    axes: Sequence[Axes],
    parts: Sequence[ResultBlock],
    scales: dict[str, tuple[Normalize, Colormap]],
    hatched: bool,
) -> None:
    """Draw color bars next to the user's axes: one bar if all axes show one measure, else a bar per axes."""
    groups = [list(axes)] if len(scales) == 1 else [[ax] for ax in axes]
    for group, part in zip(groups, parts, strict=False):
        norm, colors = scales[part.measure]
        bar = figure.colorbar(ScalarMappable(norm, colors), ax=group, aspect=25, pad=0.015, fraction=0.05)
        _name_bar(bar, part.axis, norm)
    if hatched:
        axes[-1].legend(handles=_hatching(), loc="upper right", bbox_to_anchor=(1, 0), fontsize=style.SMALL,
                        frameon=False)  # fmt: skip


def _name_bar(bar: Colorbar, label: str, norm: Normalize) -> None:
    bar.set_label(label, fontsize=style.MEDIUM)
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.ax.tick_params(labelsize=style.SMALL, length=2)
    if isinstance(norm, LogNorm):
        axis = bar.ax.xaxis if bar.orientation == "horizontal" else bar.ax.yaxis
        style.ratio_axis(axis, float(norm.vmin or 1), float(norm.vmax or 1))


def _hatching() -> list[Patch]:
    return [Patch(**MISSING, label="not measured")]  # type: ignore[arg-type]


# -- panels ------------------------------------------------------------------------------------------------------------


def _draw(
    ax: Axes, panel: HeatPanel, norm: Normalize, colors: Colormap, sizes: Cells, room: float, spread: str
) -> None:
    """Draw a panel with columns of `room` inches."""
    part = panel.block
    cells = [[line.cell(grammar, spread) for grammar in part.grammars] for line in panel.lines]
    means = np.array([[cell.center if cell else math.nan for cell in row] for row in cells], dtype=float)
    ax.imshow(np.ma.masked_invalid(means), norm=norm, cmap=colors, aspect="auto", interpolation="nearest")
    form, size = _letters([cell for row in cells for cell in row if cell and cell.seeds], sizes.numbers, room, part)
    for y, row in enumerate(cells):
        for x, cell in enumerate(row):
            if cell is None or not cell.seeds:
                _missing(ax, x, y, cell, size)
                continue
            color = style.ink(colors(float(norm(max(cell.center, norm.vmin or 0)))))
            ax.text(x, y, _number(cell, *form), ha="center", va="center_baseline", fontsize=size, color=color,
                    linespacing=1.0)  # fmt: skip
    _name(ax, panel, sizes, room)


def _number(cell: TableCell, decimals: int, spread: bool) -> str:
    """Return center and spread of a cell; if `decimals` is 1, numbers from 10 on have no decimals."""
    return cell.lines(0 if decimals == 1 and cell.center >= 9.95 else decimals, spread)


def _letters(
    cells: Sequence[TableCell], usual: float, room: float, part: ResultBlock
) -> tuple[tuple[int, bool], float]:
    """Return decimals, whether spreads have room, and the size of letters in points, in cells of `room` inches."""
    for form in [(2, True), (1, True), (2, False), (1, False), (0, False)][: 5 if part.is_ratio else 4]:
        texts = {text for cell in cells for text in _number(cell, *form).split("\n")}
        widest = max((style.text_size(text, usual)[0] for text in texts), default=1.0)
        size = min(usual, usual * 66 * room / widest)
        if size >= style.LEAST:
            break
    return form, size


def _missing(ax: Axes, x: int, y: int, cell: TableCell | None, size: float) -> None:
    """Draw a cell without a number: not measured, or failed."""
    ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **MISSING))  # type: ignore[arg-type]
    if cell is not None:
        back = {"facecolor": "#e6e6e6", "edgecolor": "none", "pad": 1}
        shown = "failed" if cell.failed else "none"
        ax.text(x, y, shown, ha="center", va="center", fontsize=size, color=style.DIM, bbox=back)


def _name(ax: Axes, panel: HeatPanel, sizes: Cells, room: float) -> None:
    """Label the rows, and the columns of `room` inches each, and draw white lines between the cells."""
    grammars, rows = panel.block.grammars, [line.label for line in panel.lines]
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(grammars)), grammars, **style.tilt(grammars, room, "left", sizes.names))
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0, labelsize=sizes.names)
    ax.set_xticks(np.arange(len(grammars) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=min(1.2, 2 * sizes.width))
    ax.tick_params(which="minor", length=0)
    ax.spines[:].set_visible(False)
    style.name_block(ax, panel.name)
