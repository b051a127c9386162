"""Curves of end-to-end runs (in the form of Icy22 figure 7)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from icy.analysis import style
from icy.analysis.cells import SPREADS, checked_spread
from icy.analysis.order import in_order
from icy.config.protocols import SCRATCH
from icy.core.errors import InvalidSettingError
from icy.records.long_table import ROW, game_curves
from icy.records.record import HasRecords

from .panels import Line, lines_of, records_of

PANELS = {  # columns of the curves, and labels of their axes
    "sender_accuracy": "sender accuracy\non the language",
    "receiver_accuracy": "receiver accuracy\non the language",
    "loss": "end-to-end loss",
    "accuracy": "end-to-end accuracy",
    "topsim": "topsim",
}
# Columns in which games from scratch always differ from others; the two share a panel all the same.
SCRATCH_DIFFERS = ("target", "cap", "most", "pretrain_representation", "game_steps", "report_every")


def e2e(
    results: HasRecords | pd.DataFrame,
    *,
    spread: str = "sem",
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw the evaluations of games over updates: a row of panels per pair, a line per grammar, a band over seeds.

    A line goes as far as all seeds of its grammar do.

    Args:
        results: an EndToEndResult, or its curves (`EndToEndResult.curves`).
        spread: of the band, "sem", "sd" or "ci95".
        title: by default none.
        width: of a new figure, in inches.
        axes: to draw on, one per panel; by default those of a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no end-to-end runs, another spread, or a wrong number of axes.
    """
    checked_spread(spread)
    curves = _curves(results)
    wanted = [name for name in PANELS if curves[name].notna().any()]
    pairs = _pairs(curves)
    names = [f"{name} of {pair.label}" for pair in pairs for name in wanted]
    size = (width or 1.6 * len(wanted), 1.65 * len(pairs) + 0.4)
    figure, drawn = style.panels(names, axes, size, across=len(wanted))
    for place, ax in enumerate(drawn):
        pair = pairs[place // len(wanted)]
        draw_panel(ax, pair.long, wanted[place % len(wanted)], spread)
        if place % len(wanted) == 0:
            ax.set_title(pair.label, loc="left", fontsize=style.LARGE, fontweight="bold")
    for ax in drawn[-len(wanted) :]:
        ax.set_xlabel("updates")
    _legend(figure, drawn, axes is None)
    style.entitle(figure, drawn, axes is None, title, "")
    return figure


def _pairs(curves: pd.DataFrame) -> list[Line]:
    """Return a line per pair and setting, with its curves."""
    scratch = curves["grammar"] == SCRATCH
    keys = ["representation"]
    for name in (name for name in ROW if name in curves and name not in ("model", *keys)):
        parts = [curves[scratch], curves[~scratch]] if name in SCRATCH_DIFFERS else [curves]
        keys += [name] if any(part[name].nunique(dropna=False) > 1 for part in parts) else []
    return lines_of(curves, keys, sides=True)


def _curves(results: HasRecords | pd.DataFrame) -> pd.DataFrame:
    if isinstance(results, HasRecords):
        curves = game_curves(results.records)
    elif set(PANELS) <= set(results):
        curves = results
    else:
        curves = game_curves(records_of(results, "e2e"))  # raises, as a table holds no curves
    if not len(curves) or not {*PANELS, "steps", "seed", "representation"} <= set(curves):
        raise InvalidSettingError(
            "There are no curves of end-to-end runs in these results: `icy e2e` trains a sender and a receiver "
            "together, and `icy plot curves` draws those that learnt alone."
        )
    return curves


def draw_panel(ax: Axes, curves: pd.DataFrame, panel: str, spread: str = "sem") -> None:
    """Draw one measure of one pair over updates; hide the axes where it was not measured."""
    if not curves[panel].notna().any():
        ax.set_axis_off()
        return
    grammars = in_order(curves["grammar"])
    looks = {SCRATCH: style.Look(style.COLOURS[0])} | style.grammar_looks(g for g in grammars if g != SCRATCH)
    for grammar in grammars:
        part = curves[curves["grammar"] == grammar]
        runs = part.pivot_table(index="steps", columns="seed", values=panel).sort_index()
        runs = runs.dropna()  # a mean over fewer seeds would jump where one ends
        if not len(runs):
            continue
        mean, error = runs.mean(axis=1), runs.apply(SPREADS[spread][1], axis=1).fillna(0)
        look = looks[grammar]
        ax.plot(runs.index, mean, color=look.colour, linestyle=look.dash, linewidth=style.LINE, label=grammar)
        ax.fill_between(runs.index, mean - error, mean + error, color=look.colour, alpha=0.2, linewidth=0)
    ax.set_ylabel(PANELS[panel])
    style.tidy(ax)
    ax.margins(x=0)
    ax.xaxis.set_major_locator(MaxNLocator(3))  # more numbers of five digits would overlap
    if "accuracy" in panel:
        ax.set_ylim(0, 1.02)
    elif panel == "loss":
        ax.set_ylim(bottom=0)


def _legend(figure: Figure, axes: Sequence[Axes], own: bool) -> None:
    """Draw a legend of the grammars, unless all games are from scratch."""
    found = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    labels = in_order(found)
    handles = [found[label] for label in labels]
    if labels == [SCRATCH]:
        return
    labels = ["from scratch" if label == SCRATCH else label for label in labels]
    if own:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(8, len(labels)), frameon=False,
                      fontsize=style.MEDIUM, handlelength=3)  # fmt: skip
    else:
        axes[-1].legend(handles, labels, fontsize=style.SMALL)
