"""Stimuli of an S2B episode (MetaRG22 figure 3)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.statistics import Values

STEPS, REACH = 200, 4.0  # of the curve of a density: points, and standard deviations on each side


@style.with_own_settings
def plot_stimuli(
    sizes: NDArray[np.int64], means: Values, deviations: Values, samples: Values, title: str = ""
) -> Figure:
    """Draw the stimuli of one episode: a panel per dimension, with the density of every value and its samples.

    Args:
        sizes: number of values of each dimension, [N].
        means: means of the densities, [N, values].
        deviations: standard deviations of the densities, [N, values].
        samples: samples drawn from the densities, [N, values, O].
        title: text below the figure, such as the setting.
    """
    figure, axes = style.panels([""] * len(sizes), None, (style.WIDTH, 1.3 * len(sizes) + 0.8), sharex=True)
    for dimension, ax in enumerate(axes):
        _densities(ax, int(sizes[dimension]), means[dimension], deviations[dimension], samples[dimension])
        ax.set_ylabel(f"dimension {dimension}")
    axes[-1].set_xlabel("number that is seen")
    notes = [
        *filter(None, [title]),
        "curve: density of the value with this number; ticks: samples; dotted: ends of the sections of the values",
    ]
    style.entitle(figure, axes, True, None, "Which numbers stand for each value in this episode", notes)
    return figure


def _densities(ax: Axes, count: int, means: Values, deviations: Values, samples: Values) -> None:
    for value in range(count):
        x = means[value] + deviations[value] * np.linspace(-REACH, REACH, STEPS)
        color = style.COLORS[value % len(style.COLORS)]
        height = np.exp(-0.5 * ((x - means[value]) / deviations[value]) ** 2) / (deviations[value] * np.sqrt(2 * np.pi))
        ax.plot(x, height, color=color, linewidth=1.5)
        ax.fill_between(x, height, color=color, alpha=0.15, linewidth=0)
        ax.plot(samples[value], np.zeros(samples.shape[1]), "|", color=color, markersize=12, markeredgewidth=1.5)
        ax.annotate(
            str(value), (means[value], height.max()), ha="center", va="bottom", color=color, fontsize=style.SMALL
        )
    for edge in np.linspace(-1, 1, count + 1):
        ax.axvline(edge, color="grey", linewidth=0.8, linestyle=":")
    ax.set_xlim(-1.02, 1.02)
    ax.margins(y=0.2)
    ax.set_yticks([])
    style.tidy(ax)
    ax.spines["left"].set_visible(False)
