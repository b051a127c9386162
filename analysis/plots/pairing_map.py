"""Populations of senders and receivers: the accuracy of every pairing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.order import without_hashes
from icy.analysis.tables.e2e import setting
from icy.core.errors import InvalidSettingError
from icy.languages.meanings import MeaningSpace
from icy.records.load import Results
from icy.records.long_table import ROW, to_long
from icy.records.record import Record

from .heat_map import COLORS
from .panels import lines_of, records_of

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
    if axes is None:
        blocks = [(line.label, len(some)) for line, some in zip(lines, shown, strict=True)]
        figure, drawn = style.grids(blocks, width, heights)
    else:
        drawn = style.given_axes(names, axes)
        figure = style.figure_of(drawn[0])
    norm, colors = Normalize(0, 1), colormaps[COLORS]
    for ax, record, name in zip(drawn, [record for some in shown for record in some], names, strict=True):
        _draw(ax, record, norm, colors)
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


def _draw(ax: Axes, record: Record, norm: Normalize, colors: Colormap) -> None:
    """Draw the accuracies of one population."""
    accuracies: NDArray[np.float64] = np.array(record["pairings"], dtype=float)
    ax.imshow(accuracies, norm=norm, cmap=colors, aspect="auto", interpolation="nearest")
    for (i, j), accuracy in np.ndenumerate(accuracies):
        color = style.ink(colors(float(norm(accuracy))))
        ax.text(j, i, f"{accuracy:.2f}", ha="center", va="center", fontsize=style.SMALL, color=color)
    senders, receivers = accuracies.shape
    ax.set_xticks(range(receivers), [f"r{j + 1}" for j in range(receivers)])
    ax.set_yticks(range(senders), [f"s{i + 1}" for i in range(senders)])
    ax.set_xticks(np.arange(receivers + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(senders + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.2)
    ax.tick_params(which="both", length=0, labelsize=style.SMALL)
    ax.spines[:].set_visible(False)
