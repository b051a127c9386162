"""S2B: tables of how players did, and the plot of an episode's stimuli (MetaRG22 figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from . import style
from .cells import SPREADS, Cell, cell_of, checked_spread
from .tables import BiasTable

MEASURES = {
    "zsct": "query",
    "support": "support",
    "yes": "says yes",
    "kept": "is yes",
}
STEPS, REACH = 200, 4.0  # of a density's curve: points, and standard deviations to either side


def evaluation_table(
    rows: pd.DataFrame, labels: Mapping[str, str], spread: str = "sd", notes: Sequence[str] = ()
) -> BiasTable:
    """A row per pair of players and game, a column per measure, in per cent over seeds.

    Args:
        rows: one per seed, with the measures of `icy.s2b.Evaluation.table` and the columns of `labels`.
        labels: columns that tell rows of the table apart, and what they are called in it.
        spread: "sd", "sem" or "ci95".
        notes: to stand under the table.

    Raises:
        InvalidSettingError: another spread.
    """
    checked_spread(spread)
    lines = []
    for key, part in rows.groupby(list(labels), sort=False):
        cells = {shown: _cell(100 * part[name], spread) for name, shown in MEASURES.items()}
        lines.append(([*map(str, key), str(len(part))], cells))
    said = (
        "query: zero-shot compositional test accuracy (ZSCT), %; says yes, is yes: how often in the query the listener"
    )
    meant = [
        f"{said} said that it saw the target's meaning, and how often it did",
        f"mean ± {SPREADS[spread][0]}, of means over episodes",
    ]
    return BiasTable("games", [*labels.values(), "seeds"], list(MEASURES.values()), lines, [*meant, *notes], decimals=1)


def scores_table(
    rows: pd.DataFrame, label: str, metrics: Sequence[str], spread: str = "sd", title: str = ""
) -> BiasTable:
    """A row per thing that was measured, a column per metric, over episodes.

    Args:
        rows: one per episode, as of `icy.s2b.probe_language`.
        label: the column that says what was measured.
        metrics: which of its columns.
        spread: "sd", "sem" or "ci95".
        title: of the table.

    Raises:
        InvalidSettingError: another spread.
    """
    checked_spread(spread)
    lines = [
        ([str(name), str(len(part))], {metric: _cell(part[metric], spread) for metric in metrics})
        for name, part in rows.groupby(label, sort=False)
    ]
    said = f"mean ± {SPREADS[spread][0].replace('seeds', 'episodes')}"
    return BiasTable(title, [label, "episodes"], list(metrics), lines, [said], decimals=3)


def _cell(values: pd.Series[float], spread: str) -> Cell:
    cell = cell_of(pd.DataFrame({"value": values, "failed": values.isna(), "cut": False}), spread)
    return Cell(cell.mean, cell.spread, cell.seeds, 0, 0)  # a measure that is undefined here has not failed


def plot_stimuli(
    sizes: NDArray[Any], means: NDArray[Any], deviations: NDArray[Any], samples: NDArray[Any], title: str = ""
) -> Figure:
    """The stimuli of one episode: a panel per dimension, with the density of every value and its samples.

    Args:
        sizes: numbers of values, [N].
        means: of the values, [N, values].
        deviations: [N, values].
        samples: [N, values, O].
        title: of the figure.
    """
    figure = style.figure(style.WIDTH, 1.5 * len(sizes) + 0.7)
    axes = figure.subplots(len(sizes), 1, squeeze=False, sharex=True)[:, 0]
    for dimension, ax in enumerate(axes):
        _densities(ax, int(sizes[dimension]), means[dimension], deviations[dimension], samples[dimension])
        ax.set_ylabel(f"dimension {dimension}")
    axes[-1].set_xlabel("number that is seen")
    if title:
        figure.suptitle(title, fontsize="medium")
    return figure


def _densities(ax: Axes, count: int, means: NDArray[Any], deviations: NDArray[Any], samples: NDArray[Any]) -> None:
    for value in range(count):
        x = means[value] + deviations[value] * np.linspace(-REACH, REACH, STEPS)
        colour = style.COLOURS[value % len(style.COLOURS)]
        height = np.exp(-0.5 * ((x - means[value]) / deviations[value]) ** 2) / (deviations[value] * np.sqrt(2 * np.pi))
        ax.plot(x, height, color=colour, linewidth=1.5)
        ax.fill_between(x, height, color=colour, alpha=0.15, linewidth=0)
        ax.plot(samples[value], np.zeros(samples.shape[1]), "|", color=colour, markersize=12, markeredgewidth=1.5)
        ax.annotate(str(value), (means[value], height.max()), ha="center", va="bottom", color=colour, fontsize="small")
    for edge in np.linspace(-1, 1, count + 1):
        ax.axvline(edge, color="grey", linewidth=0.8, linestyle=":")
    ax.set_xlim(-1.02, 1.02)
    ax.margins(y=0.2)
    ax.set_yticks([])
    ax.spines[["top", "right", "left"]].set_visible(False)
