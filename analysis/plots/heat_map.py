"""Heat maps: the bias table, and the accuracy of every pairing in a population."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.order import Facts, without_hashes
from icy.analysis.table_cells import TableCell, checked_spread
from icy.analysis.tables.e2e import setting
from icy.core.errors import InvalidSettingError
from icy.languages.meanings import MeaningSpace
from icy.records.load import Results
from icy.records.long_table import ROW, to_long
from icy.records.record import Record

from .panels import ResultBlock, blocks, color_ends, describe, lines_of, measured, records_of, refuse_crowd

COLORS = "viridis"  # perceptually uniform, also under color blindness and in gray; bright means easy
MISSING = {"facecolor": "#e6e6e6", "edgecolor": "#b0b0b0", "hatch": "////", "linewidth": 0}
KEY, KEY_WIDTH = 0.5, 2.0  # height of a color bar with its name, and its usual width, in inches
NAME, GAP = 0.2, 0.12  # inches above a panel: its name, and the space around grammars
ABOUT, PADDING = 0.58, 0.15  # inches with title and notes, and without


@dataclass(frozen=True)
class Cells:
    """Width and height of cells, in inches, and sizes of names and numbers, in points."""

    width: float
    height: float
    names: float
    numbers: float

    def block(self, part: ResultBlock) -> float:
        """Return the height of a panel, with its name and grammar labels, in inches."""
        tall = self.names
        if style.tilt(part.grammars, self.width, size=self.names):
            longest = max(style.text_size(name, self.names)[0] for name in part.grammars)
            tilt = math.radians(style.TILT)
            tall = longest * math.sin(tilt) + self.names * math.cos(tilt)
        return NAME * bool(part.name) + GAP + tall / 72 + self.height * len(part.lines)


def _cells(parts: Sequence[ResultBlock], width: float | None, several: bool) -> tuple[Cells, float]:
    """Return cells, which are small if the figure is otherwise taller than a page, and the width of the figure.

    Cells with `several` seeds have a second line with the spread.
    """
    count = max(len(part.grammars) for part in parts)
    for wide, height, names, numbers in ((0.62, 0.23, style.MEDIUM, style.SMALL), (0.42, 0.155, 6.0, 5.5)):
        names, numbers = max(names, style.LEAST), max(numbers, style.LEAST)
        height = max(height, (1.15 * numbers * (1 + several) + 3.5) / 72)
        labels = 0.2 + 1.05 * max(style.text_size(line.label, names)[0] for part in parts for line in part.lines) / 72
        title = max(style.text_size(part.name, style.MEDIUM)[0] for part in parts) / 60  # bold
        across = width or max(4.0, labels + max(wide * count, title) + 0.15)
        cells = Cells(min(wide, max(0.0, (across - labels) / count)), height, names, numbers)
        if sum(map(cells.block, parts)) <= style.TALLEST - KEY - ABOUT - 0.4:
            break
    return cells, across


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
    a page gets smaller cells.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have separate panels.
        spread: "sd", "sem" or "ci95".
        title: title; by default a sentence on the measure, "" for none.
        width: width of a new figure, in inches.
        axes: axes to draw on, one per panel; by default a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no results, a value that cannot be drawn, an unknown spread, a wrong number of axes, or too
            many rows to read.

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
    parts = blocks(long)
    usual, notes = describe(long, spread)
    cells, across = _cells(parts, style.width_of(width, 0) or None, long["seed"].nunique() > 1)
    scales: dict[str, tuple[Normalize, Colormap]] = {}  # which all panels of a measure share
    for measure in dict.fromkeys(part.measure for part in parts):
        same = [part for part in parts if part.measure == measure]
        ends = color_ends(same, spread)
        ratio = LogNorm(*ends), colormaps[COLORS].reversed()
        scales[measure] = ratio if same[0].is_ratio else (Normalize(*ends), colormaps[COLORS])
    if axes is None:
        tall = sum(map(cells.block, parts)) + KEY * len(scales) + (PADDING if style.CAPTIONED else ABOUT)
        refuse_crowd((across, tall), parts)
        figure: Figure = style.figure(across, tall)
        room = cells.width
        grid = figure.add_gridspec(len(parts), 1, height_ratios=[len(part.lines) for part in parts])
        drawn = [figure.add_subplot(grid[row]) for row in range(len(parts))]
    else:
        drawn = style.given_axes([part.name or "the table" for part in parts], axes)
        figure = style.figure_of(drawn[0])
        room = min(ax.get_window_extent().width for ax in drawn) / figure.dpi
        room /= max(len(part.grammars) for part in parts)
    shown = [_draw(ax, part, *scales[part.measure], cells, room, spread) for ax, part in zip(drawn, parts, strict=True)]
    if not all(shown):  # narrow cells have no room for spreads
        notes = [re.sub(r"^((geometric )?mean)(,| ±).*", r"\1", note) for note in notes]
    _keys(figure, drawn, parts, scales, axes is None)
    if any(line.cell(g, spread) is None for part in parts for line in part.lines for g in part.grammars):
        missing = Patch(**MISSING, label="not measured")  # type: ignore[arg-type]
        drawn[-1].legend(handles=[missing], loc="upper right", bbox_to_anchor=(1, 0), fontsize=style.SMALL,
                         frameon=False)  # fmt: skip
    style.entitle(figure, drawn, axes is None, title, usual, notes)
    return figure


# -- color bars --------------------------------------------------------------------------------------------------------


def _keys(
    figure: Figure,
    axes: Sequence[Axes],
    parts: Sequence[ResultBlock],
    scales: Mapping[str, tuple[Normalize, Colormap]],
    own: bool,
) -> None:
    """Draw a color bar per measure, below its panels in a new figure (`own`), else at their right."""
    for measure, (norm, colors) in scales.items():
        group = [ax for ax, part in zip(axes, parts, strict=True) if part.measure == measure]
        shrink = min(1.0, KEY_WIDTH / (0.7 * figure.get_figwidth()))
        place: Facts = {"location": "bottom", "shrink": shrink, "anchor": (0, 1), "aspect": 15, "pad": 0.01}
        beside: Facts = {"aspect": 25, "pad": 0.015, "fraction": 0.05}
        bar = figure.colorbar(ScalarMappable(norm, colors), ax=group, **(place if own else beside))
        bar.set_label(next(part.axis for part in parts if part.measure == measure), fontsize=style.MEDIUM)
        bar.outline.set_visible(False)  # type: ignore[operator]
        bar.ax.tick_params(labelsize=style.SMALL, length=2)
        if isinstance(norm, LogNorm):
            axis = bar.ax.xaxis if own else bar.ax.yaxis
            style.ratio_axis(axis, float(norm.vmin or 1), float(norm.vmax or 1))


# -- panels ------------------------------------------------------------------------------------------------------------


def _draw(
    ax: Axes, part: ResultBlock, norm: Normalize, colors: Colormap, sizes: Cells, room: float, spread: str
) -> bool:
    """Draw a panel with columns of `room` inches; return whether there was room for spreads."""
    cells = [[line.cell(grammar, spread) for grammar in part.grammars] for line in part.lines]
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
    _name(ax, part, sizes, room)
    return form[1]


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


def _name(ax: Axes, part: ResultBlock, sizes: Cells, room: float) -> None:
    """Label the rows, and the columns of `room` inches each, and draw white lines between the cells."""
    grammars, rows = part.grammars, [line.label for line in part.lines]
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(grammars)), grammars, **style.tilt(grammars, room, "left", sizes.names))
    ax.set_yticks(range(len(rows)), rows)
    _part_cells(ax, (len(rows), len(grammars)), min(1.2, 2 * sizes.width), sizes.names)
    style.name_block(ax, part.name)


def _part_cells(ax: Axes, shape: Sequence[int], width: float, size: float) -> None:
    """Draw white lines between the cells of a heat map [row, column]; `size`: of the names of rows and columns."""
    for axis, count in zip((ax.yaxis, ax.xaxis), shape, strict=True):
        axis.set_ticks(np.arange(count + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=width)
    ax.tick_params(which="both", length=0, labelsize=size)
    ax.spines[:].set_visible(False)


# -- populations of senders and receivers: the accuracy of every pairing -----------------------------------------------


CELL, MARGIN = 0.3, 0.6  # inches: the height of a cell, and of the names of a panel
LEAST = 5.5  # least width of a figure, in inches


@style.with_own_settings
def pairings(
    results: Results, *, title: str | None = None, width: float | None = None, axes: Axes | Sequence[Axes] | None = None
) -> Figure:
    """Draw the accuracy of every pairing of populations: a panel per seed, a row per sender, a column per receiver.

    Args:
        results: results with end-to-end runs of populations; a table does not have their pairings.
        title: title; by default a sentence, "" for none.
        width: width of a new figure, in inches.
        axes: axes to draw on, one per panel; by default a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no populations, or a wrong number of axes.
    """
    records = [record for record in records_of(results, "pairings") if record.get("pairings")]
    if not records:
        raise InvalidSettingError(
            "These results have no populations: `icy e2e --senders 3 --receivers 3` trains one, and `icy plot e2e` "
            "draws single pairs."
        )
    by_key = {record["key"]: record for record in records}
    long = without_hashes(to_long(records))
    varying = [name for name in ROW[1:] if long[name].nunique(dropna=False) > 1]
    lines = lines_of(long, varying, sides=True)
    shown = [[by_key[key] for key in line.long.sort_values("seed")["key"]] for line in lines]
    names = [f"{line.label}, seed {record['seed']}" for line, some in zip(lines, shown, strict=True) for record in some]
    heights = [MARGIN + CELL * max(len(record["pairings"]) for record in some) for some in shown]
    width = style.width_of(width, max(LEAST, style.NARROWEST * max(map(len, shown))))
    blocks = [(line.label, len(some)) for line, some in zip(lines, shown, strict=True)]
    figure, drawn = style.grids(blocks, names, axes, width, heights)
    norm, colors = Normalize(0, 1), colormaps[COLORS]
    for ax, record, name in zip(drawn, [record for some in shown for record in some], names, strict=True):
        _draw_pairings(ax, record, norm, colors)
        ax.set_title(f"seed {record['seed']}" if axes is None else name, fontsize=style.SMALL)
    chance = sorted({f"{MeaningSpace.of(space).chance:.2g}" for space in long["meanings"]})
    notes = [
        "row: sender; column: receiver; number and color: accuracy of this pairing at the end "
        f"(by chance: {' to '.join(chance)})",
        setting(long),
    ]
    usual = "How well each sender of a population is understood by each receiver"
    style.entitle(figure, drawn, axes is None, title, usual, notes)
    return figure


def _draw_pairings(ax: Axes, record: Record, norm: Normalize, colors: Colormap) -> None:
    """Draw the accuracies of one population."""
    accuracies: NDArray[np.float64] = np.array(record["pairings"], dtype=float)
    ax.imshow(accuracies, norm=norm, cmap=colors, aspect="auto", interpolation="nearest")
    for (i, j), accuracy in np.ndenumerate(accuracies):
        color = style.ink(colors(float(norm(accuracy))))
        ax.text(j, i, f"{accuracy:.2f}", ha="center", va="center", fontsize=style.SMALL, color=color)
    senders, receivers = accuracies.shape
    ax.set_xticks(range(receivers), [f"r{j + 1}" for j in range(receivers)])
    ax.set_yticks(range(senders), [f"s{i + 1}" for i in range(senders)])
    _part_cells(ax, accuracies.shape, 1.2, style.SMALL)
