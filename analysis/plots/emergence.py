"""Bias of senders against the compositionality of their emergent languages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icy.analysis import style
from icy.analysis.emergence import Emergence

HEIGHT = 2.8  # inches
SCORES = ("topsim", "above_chance")  # both are 0 by chance
TITLE = "Do senders with a bias towards composition develop compositional languages?"


@style.with_own_settings
def plot_emergence(
    emergence: Emergence, bias: str = "bias", scores: Sequence[str] = SCORES, axes: Sequence[Axes] | None = None
) -> Figure:
    """Draw a panel per score: a point per sender (x: bias, y: score of the language), with the correlation.

    Senders of one family have the same mark. Error bars are standard errors over seeds. A dotted line is the value by
    chance.

    Args:
        emergence: biases of senders, and scores of their languages.
        bias: column on the x axis, "bias" or "against_holistic".
        scores: columns on the y axes.
        axes: axes to draw on, one per score; by default a new figure.

    Returns:
        The figure.
    """
    notes = [
        "error bars: standard error over seeds; dotted line: by chance",
        *(f"{emergence.heading(score)}: Spearman {emergence.correlation(score, bias)}" for score in scores),
    ]
    size = (style.WIDTH, HEIGHT)
    figure, drawn = style.panels([emergence.heading(name) for name in scores], axes, size, len(scores), sharex=True)
    family = emergence.table.index.str.partition(":").get_level_values(0)
    looks = style.model_looks(family)
    for ax, score in zip(drawn, scores, strict=True):
        for name, look in looks.items():
            part = emergence.table[family == name]
            errors = part[f"{bias}_error"].fillna(0), (part[f"{score}_sd"] / np.sqrt(part["seeds"])).fillna(0)
            ax.errorbar(
                part[bias], part[score], xerr=errors[0], yerr=errors[1], fmt=look.marker, markersize=4, linewidth=0.7,
                color=look.color, markerfacecolor=look.face,
            )  # fmt: skip
        if score in SCORES:
            ax.axhline(0, **style.CHANCE)
        ax.set_xlabel("bias towards composition (log ratio)")
        ax.set_ylabel(style.wrapped(emergence.heading(score), 0.6 * HEIGHT, style.MEDIUM))
        style.tidy(ax, "both")
    style.legend(figure, drawn, axes is None, [look.handle(name, line=False) for name, look in looks.items()])
    style.entitle(figure, drawn, axes is None, None, TITLE, notes)
    return figure
