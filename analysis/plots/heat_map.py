"""Heat maps: the bias table, and the accuracy of every pairing in a population."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.order import Facts, setting, without_hashes
from icy.analysis.picture import Panel, Picture, plot
from icy.analysis.table_cells import TableCell
from icy.core.errors import InvalidSettingError
from icy.languages.meanings import MeaningSpace
from icy.records.load import Results
from icy.records.long_table import ROW, to_long
from icy.records.record import Record

from .panels import ResultBlock, blocks, color_ends, describe, lines_of, measured, records_of

COLORS = "viridis"  # perceptually uniform, also under color blindness and in gray; bright means easy
MISSING = {"facecolor": "#e6e6e6", "edgecolor": "#b0b0b0", "hatch": "////", "linewidth": 0}
KEY_WIDTH = 2.0  # usual width of a color bar, in inches


@plot
def heat(
    results: Results, *, spread: str = "sd", width: float | None = None, axes: Axes | Sequence[Axes] | None = None
) -> Picture:
    """Heat map of the bias table: a row per model, a column per grammar, a mean and spread each.

    Bright cells were learned easily. A dagger marks a mean over runs if some were cut at the cap; cells that were not
    measured are hatched. The color scale of ratios is logarithmic, so their means are geometric and the spread is a
    factor, as in the line "log scale" of a table; the scale of accuracies is from 0 to 1. A figure that is too tall for
    a page gets smaller cells.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have separate panels.
        spread: "sd", "sem" or "ci95".
        **look: title, width and axes; see `icy.analysis.picture.plot`.

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
    long = measured(results)
    parts = blocks(long)
    title, notes = describe(long, spread)
    lines = 1 + max([cell.lines(2).count("\n") for part in parts for _, cell in part.cells(spread)], default=0)
    for wide, names, numbers in ((0.62, style.MEDIUM, style.SMALL), (0.42, 6.0, 5.5)):
        names, numbers = max(names, style.LEAST), max(numbers, style.LEAST)
        height = max(0.37 * wide, (1.15 * numbers * lines + 3.5) / 72)
        if sum(height * len(part.lines) + 0.5 for part in parts) < style.TALLEST - 1.5:
            break  # else cells are small
    labels = 0.2 + 1.05 * max(style.text_size(line.label, names)[0] for part in parts for line in part.lines) / 72
    most = max(len(part.grammars) for part in parts)
    named = max(style.text_size(part.name, style.MEDIUM)[0] for part in parts) / 60  # bold
    usual = max(4.0, labels + max(wide * most, named) + 0.15)
    across = width or (usual if style.FITTED else style.WIDTH)
    room = min(wide, max(0.0, (across - labels) / most))
    scales = _scales(parts, spread)
    panels = []
    for part in parts:
        draw = partial(_draw, part, *scales[part.measure], (names, numbers), room if axes is None else 0.0, spread)
        panels.append(Panel(draw, "", part.name, height * len(part.lines)))
    if not all(_letters(part, spread, numbers, room)[0][1] for part in parts):  # narrow cells have no room for spreads
        notes = [re.sub(r"^((geometric )?mean)(,| ±).*", r"\1", note) for note in notes]
    return Picture(panels, title, notes, width=usual, blocks=parts, after=partial(_keys, parts, scales, spread))


def _scales(parts: Sequence[ResultBlock], spread: str) -> dict[str, tuple[Normalize, Colormap]]:
    """Return the color scale of each measure, which its panels share."""
    found: dict[str, tuple[Normalize, Colormap]] = {}
    for measure in dict.fromkeys(part.measure for part in parts):
        same = [part for part in parts if part.measure == measure]
        ends = color_ends(same, spread)
        ratio = LogNorm(*ends), colormaps[COLORS].reversed()
        found[measure] = ratio if same[0].is_ratio else (Normalize(*ends), colormaps[COLORS])
    return found


def _keys(
    parts: Sequence[ResultBlock], scales: Mapping[str, tuple[Normalize, Colormap]], spread: str, figure: Figure,
    axes: Sequence[Axes], own: bool,
) -> None:  # fmt: skip
    """Draw a color bar per measure, below its panels in a new figure (`own`), else at their right; and the hatch."""
    for measure, (norm, colors) in scales.items():
        group = [ax for ax, part in zip(axes, parts, strict=True) if part.measure == measure]
        shrink = min(1.0, KEY_WIDTH / (0.7 * figure.get_figwidth()))
        below: Facts = {"location": "bottom", "shrink": shrink, "anchor": (0, 1), "aspect": 15, "pad": 0.01}
        place = below if own else {"aspect": 25, "pad": 0.015, "fraction": 0.05}
        bar = figure.colorbar(ScalarMappable(norm, colors), ax=group, **place)
        bar.set_label(next(part.axis for part in parts if part.measure == measure), fontsize=style.MEDIUM)
        bar.outline.set_visible(False)  # type: ignore[operator]
        bar.ax.tick_params(labelsize=style.SMALL, length=2)
        if isinstance(norm, LogNorm):
            axis = bar.ax.xaxis if own else bar.ax.yaxis
            style.ratio_axis(axis, float(norm.vmin or 1), float(norm.vmax or 1))
    if any(part.has_gaps(part.grammars, spread) for part in parts):
        missing = Patch(**MISSING, label="not measured")  # type: ignore[arg-type]
        axes[-1].legend(handles=[missing], loc="upper right", bbox_to_anchor=(1, 0), fontsize=style.SMALL,
                        frameon=False)  # fmt: skip


def _draw(
    part: ResultBlock, norm: Normalize, colors: Colormap, sizes: tuple[float, float], room: float, spread: str, ax: Axes
) -> None:
    """Draw a panel with columns of `room` inches; `sizes` are the sizes of names and numbers in points."""
    grammars, (names, numbers) = part.grammars, sizes
    room = room or style.room(ax) / len(grammars)
    form, size = _letters(part, spread, numbers, room)
    cells = [[line.cell(grammar, spread) for grammar in grammars] for line in part.lines]
    means = np.array([[cell.center if cell else math.nan for cell in row] for row in cells], dtype=float)
    texts = [[_number(cell, *form) if cell and cell.seeds else "" for cell in row] for row in cells]
    _cells(ax, means, texts, (norm, colors), size)
    for (y, x), mean in np.ndenumerate(means):
        cell = cells[y][x]
        if math.isnan(mean):  # not measured, or failed
            ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **MISSING))  # type: ignore[arg-type]
        if cell is not None and not cell.seeds:
            back = {"facecolor": "#e6e6e6", "edgecolor": "none", "pad": 1}
            shown = "failed" if cell.failed else "none"
            ax.text(x, y, shown, ha="center", va="center", fontsize=size, color=style.DIM, bbox=back)
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(grammars)), grammars, **style.tilt(grammars, room, "left", names))
    ax.set_yticks(range(len(cells)), [line.label for line in part.lines])
    ax.tick_params(which="both", length=0, labelsize=names)


def _cells(
    ax: Axes, values: NDArray[np.float64], texts: Sequence[Sequence[str]], scale: tuple[Normalize, Colormap],
    size: float,
) -> None:  # fmt: skip
    """Draw cells [row, column] with texts, and white lines between the cells."""
    norm, colors = scale
    ax.imshow(np.ma.masked_invalid(values), norm=norm, cmap=colors, aspect="auto", interpolation="nearest")
    for (y, x), value in np.ndenumerate(values):
        if texts[y][x]:
            color = style.ink(colors(float(norm(max(value, norm.vmin or 0)))))
            ax.text(x, y, texts[y][x], ha="center", va="center_baseline", fontsize=size, color=color, linespacing=1.0)
    for axis, count in zip((ax.yaxis, ax.xaxis), values.shape, strict=True):
        axis.set_ticks(np.arange(count + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.2)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)


def _number(cell: TableCell, decimals: int, spread: bool) -> str:
    """Return center and spread of a cell; if `decimals` is 1, numbers from 10 on have no decimals."""
    return cell.lines(0 if decimals == 1 and cell.center >= 9.95 else decimals, spread)


def _letters(part: ResultBlock, spread: str, usual: float, room: float) -> tuple[tuple[int, bool], float]:
    """Return decimals, whether spreads have room, and the size of letters in points, in cells of `room` inches."""
    for form in [(2, True), (1, True), (2, False), (1, False), (0, False)][: 5 if part.is_ratio else 4]:
        texts = {text for _, cell in part.cells(spread) for text in _number(cell, *form).split("\n")}
        widest = max((style.text_size(text, usual)[0] for text in texts), default=1.0)
        size = min(usual, usual * 66 * room / widest)
        if size >= style.LEAST:
            break
    return form, size


# -- populations of senders and receivers: the accuracy of every pairing -----------------------------------------------


CELL = 0.3  # height of a cell, in inches
LEAST = 5.5  # least width of a figure, in inches


@plot
def pairings(results: Results) -> Picture:
    """Populations: the accuracy of every pairing of sender and receiver, a panel per seed.

    Args:
        results: results with end-to-end runs of populations; a table does not have their pairings.
        **look: title, width and axes; see `icy.analysis.picture.plot`.

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
    panels = []
    for line in lines:
        own = [by_key[key] for key in line.long.sort_values("seed")["key"]]
        height = CELL * max(len(record["pairings"]) for record in own)
        panels += [Panel(partial(_pairing, r), f"seed {r['seed']}", line.label, height) for r in own]
    chance = sorted({f"{MeaningSpace.of(space).chance:.2g}" for space in long["meanings"]})
    notes = [
        "row: sender; column: receiver; number and color: accuracy of this pairing at the end "
        f"(by chance: {' to '.join(chance)})",
        setting(long),
    ]
    title = "How well each sender of a population is understood by each receiver"
    width = max(LEAST, style.NARROWEST * max(len(line.long) for line in lines))
    return Picture(panels, title, notes, columns=None, width=width, grouped=True)


def _pairing(record: Record, ax: Axes) -> None:
    """Draw the accuracies of one population."""
    values: NDArray[np.float64] = np.array(record["pairings"], dtype=float)
    scale = Normalize(0, 1), colormaps[COLORS]
    _cells(ax, values, [[f"{accuracy:.2f}" for accuracy in row] for row in values], scale, style.SMALL)
    ax.set_yticks(range(len(values)), [f"s{i + 1}" for i in range(len(values))])
    ax.set_xticks(range(values.shape[1]), [f"r{j + 1}" for j in range(values.shape[1])])
