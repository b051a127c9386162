"""The bias table as a heat map."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from icy.analysis import style
from icy.analysis.cells import CUT, Cell
from icy.records.load import Results

from .panels import Block, Line, blocks, measured, title_and_notes

CELL = 0.62, 0.23  # inches, across and down
BAR_WIDTH = 1.0  # inches, of the colour bar with its labels
COLOURS = "viridis"  # perceptually uniform, also under colour blindness and in grey; bright means easy


def heat(
    results: Results,
    *,
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw the bias table as a heat map: a row per model, a column per grammar, the mean in each cell.

    Bright cells were learnt easily. A dagger marks a mean over runs of which some were cut at the cap; cells that were
    not measured are hatched. The colours of ratios are logarithmic; those of accuracies go from 0 to 1.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have a panel each.
        title: by default what was measured; "" for none.
        width: of a new figure, in inches.
        axes: to draw on, one per panel; by default those of a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no results, or a wrong number of axes.

    Example:
        >>> import pandas as pd
        >>> from icy.analysis.plots import heat
        >>> long = pd.DataFrame({"model": "sender/FC2L", "grammar": ["perm", "rot"], "seed": 1, "value": [0.99, 0.49]})
        >>> long["measure"] = "accuracy"
        >>> [text.get_text() for text in heat(long).axes[0].texts]
        ['0.99', '0.49']
    """
    long = measured(results)
    parts = blocks(long)
    lines = [part.lines for part in parts]
    names = max(style.text_size(line.label, style.MEDIUM)[0] for rows in lines for line in rows) / 72
    columns = max(len(part.grammars) for part in parts)
    width = width or max(4.0, names + CELL[0] * columns + BAR_WIDTH)
    figure, drawn = style.panels(
        [part.name or "the table" for part in parts],
        axes,
        (width, 0.75 + sum(CELL[1] * len(rows) + 0.55 for rows in lines)),
        gridspec_kw={"height_ratios": [len(rows) + 1 for rows in lines]},
    )
    for measure in dict.fromkeys(part.measure for part in parts):
        same = [(ax, part, rows) for ax, part, rows in zip(drawn, parts, lines, strict=True) if part.measure == measure]
        _draw_measure(figure, same, (width - names - BAR_WIDTH) / columns)
    style.entitle(figure, drawn, axes is None, title, *title_and_notes(long))
    return figure


def _draw_measure(figure: Figure, panels: Sequence[tuple[Axes, Block, list[Line]]], room: float) -> None:
    """Draw the panels of one measure, which share their colours, with columns of `room` inches."""
    cells = [_cells(part, rows) for _, part, rows in panels]
    first = panels[0][1]
    norm = _norm(first, [cell for rows in cells for row in rows for cell in row])
    colours = colormaps[COLOURS].reversed() if first.is_ratio else colormaps[COLOURS]
    for (ax, part, rows), found in zip(panels, cells, strict=True):
        _draw_cells(ax, found, norm, colours, room)
        _name(ax, [line.label for line in rows], part, room)
    own = [ax for ax, _, _ in panels]
    bar = figure.colorbar(own[0].images[0], ax=own, aspect=25, pad=0.015, fraction=0.05)
    bar.set_label(first.axis, fontsize=style.MEDIUM)
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.ax.tick_params(labelsize=style.SMALL, length=2)
    if first.is_ratio:
        style.ratio_axis(bar.ax.yaxis, float(norm.vmin or 1), float(norm.vmax or 1))


def _cells(part: Block, rows: Sequence[Line]) -> list[list[Cell | None]]:
    return [[line.cell(grammar, "sd") for grammar in part.grammars] for line in rows]


def _norm(part: Block, cells: Sequence[Cell | None]) -> Normalize:
    """Return the scale of colours: 0 to 1 for accuracies, logarithmic around 1, which is concat's, for ratios."""
    means = [cell.mean for cell in cells if cell is not None and math.isfinite(cell.mean)]
    if not part.is_ratio:
        return Normalize(0, max([1.0, *means]))
    return LogNorm(min([1.0, *(m for m in means if m > 0)]), max([2.0, *means]))


def _draw_cells(
    ax: Axes, cells: Sequence[Sequence[Cell | None]], norm: Normalize, colours: Colormap, room: float
) -> None:
    means = np.array([[cell.mean if cell else math.nan for cell in row] for row in cells], dtype=float)
    ax.imshow(np.ma.masked_invalid(means), norm=norm, cmap=colours, aspect="auto", interpolation="nearest")
    size = style.SMALL * min(1.0, 66 * room / style.text_size(f"20.00{CUT}", style.SMALL)[0])
    for y, row in enumerate(cells):
        for x, cell in enumerate(row):
            if cell is None or not cell.seeds:
                _missing(ax, x, y, cell)
                continue
            shown = f"{cell.mean:.2f}{CUT if cell.cut else ''}"
            colour = style.ink(colours(float(norm(max(cell.mean, norm.vmin or 0)))))
            ax.text(x, y, shown, ha="center", va="center", fontsize=size, color=colour)


def _missing(ax: Axes, x: int, y: int, cell: Cell | None) -> None:
    """Draw a cell without a number: not measured, or failed."""
    box = {"facecolor": "#e6e6e6", "edgecolor": "#b0b0b0", "hatch": "////", "linewidth": 0}
    ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **box))  # type: ignore[arg-type]
    if cell is not None and cell.failed:
        back = {"facecolor": "#e6e6e6", "edgecolor": "none", "pad": 1}
        ax.text(x, y, "failed", ha="center", va="center", fontsize=style.SMALL, color=style.DIM, bbox=back)


def _name(ax: Axes, rows: Sequence[str], part: Block, room: float) -> None:
    """Label the rows and the columns of `room` inches, and draw white lines between the cells."""
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(part.grammars)), part.grammars, **style.tilt(part.grammars, room, "left"))
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0, labelsize=style.MEDIUM)
    ax.set_xticks(np.arange(len(part.grammars) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.2)
    ax.tick_params(which="minor", length=0)
    ax.spines[:].set_visible(False)
    if part.name:
        ax.set_title(part.name, loc="left", fontsize=style.MEDIUM, fontweight="bold")
