"""Bias of senders against the compositionality of their emergent languages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icy.analysis import style
from icy.analysis.emergence import Emergence

HEIGHT = 2.9  # inches
SCORES = ("topsim", "above_chance")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


@style.with_own_settings
def plot_emergence(
    emergence: Emergence, bias: str = "bias", scores: Sequence[str] = SCORES, axes: Sequence[Axes] | None = None
) -> Figure:
    """Draw a panel per score: a point per sender (x: bias, y: score of the language), with the correlation.

    Senders of one family have the same mark. Error bars are standard errors over seeds.

    Args:
        emergence: biases of senders, and scores of their languages.
        bias: column on the x axis, "bias" or "against_holistic".
        scores: columns on the y axes.
        axes: axes to draw on, one per score; by default a new figure.

    Returns:
        The figure.
    """
    figure, drawn = style.panels(
        [emergence.heading(name) for name in scores], axes, (style.WIDTH, HEIGHT), len(scores), sharex=True
    )
    families = list(dict.fromkeys(name.partition(":")[0] for name in emergence.table.index))
    for ax, score in zip(drawn, scores, strict=True):
        for place, family in enumerate(families):
            part = emergence.table[[name.partition(":")[0] == family for name in emergence.table.index]]
            error = part[f"{score}_sd"] / np.sqrt(part["seeds"])
            ax.errorbar(
                part[bias], part[score], yerr=error.fillna(0), fmt=MARKS[place % len(MARKS)], markersize=4,
                linewidth=0.7, color=style.COLORS[place % len(style.COLORS)], label=family,
            )  # fmt: skip
        rho = emergence.correlation(score, bias)
        style.head(ax, f"{emergence.heading(score)}\nSpearman {rho}", style.WIDTH / len(scores))
        ax.set_xlabel("bias towards composition (log ratio)")
        ax.set_ylabel(emergence.heading(score))
        style.tidy(ax, "both")
    style.legend(figure, drawn, axes is None, drawn[0].get_legend_handles_labels()[0])
    return figure
