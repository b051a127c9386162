"""Pictures of findings.py: models as dots, by side, family or grammar."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from findings_data import FAMILIES, GRAMMARS, SIDES, Table
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icy.analysis import style

RATIO = "updates as a ratio to concat's"


def by_family(table: Table) -> Figure:
    """Draw the ratios of every model, a panel per side, a line of dots per grammar and family, its mean as a bar."""
    figure, axes = style.panels([f"{side}s" for side in SIDES], None, (6.4, 3.2), 2, sharey=True)
    for ax, side in zip(axes, SIDES, strict=True):
        for place, family in enumerate(FAMILIES):
            of, colour = table.side(side).families(family).values, style.COLOURS[place]
            for at, grammar in enumerate(GRAMMARS):
                y = at + (place - (len(FAMILIES) - 1) / 2) * 0.15
                ax.plot(np.exp(of[grammar]), [y] * len(of), "o", markersize=2.5, color=colour, alpha=0.4)
                if len(of):
                    ax.plot([math.exp(of[grammar].mean())], [y], "|", markersize=6, markeredgewidth=2, color=colour)
        ax.set(xscale="log", xlim=(0.5, 25), ylim=(len(GRAMMARS) - 0.5, -0.5), xlabel=RATIO)
        style.ratio_axis(ax.xaxis, 0.5, 25)
        ax.set_yticks(range(len(GRAMMARS)), GRAMMARS)
        ax.axvline(1, color="black", linewidth=0.8)
        style.head(ax, f"{side}s", 3)
        style.tidy(ax, "x")
    _legend(figure, axes[0], dict(zip(FAMILIES, style.COLOURS, strict=False)))
    return figure


def families_against(table: Table, best: Mapping[str, str], other: str) -> Figure:
    """Draw the ratios of one grammar against those of another, which differs between sides, coloured by family."""
    figure, axes = style.panels([f"{side}s" for side in SIDES], None, (6.4, 3.0), 2, sharey=True)
    for ax, side in zip(axes, SIDES, strict=True):
        for place, family in enumerate(FAMILIES):
            of = table.side(side).families(family).values
            ax.plot(np.exp(of[best[side]]), np.exp(of[other]), "o", markersize=3.5, color=style.COLOURS[place])
        _logarithmic(ax, "x", f"ratio on {best[side]}")
        _logarithmic(ax, "y", f"ratio on {other}" if side == SIDES[0] else "")
        style.head(ax, f"{side}s", 3)
        style.tidy(ax)
    _legend(figure, axes[0], dict(zip(FAMILIES, style.COLOURS, strict=False)))
    return figure


def by_grammar(
    panels: Mapping[str, tuple[Table, Table]],
    grammars: Sequence[str],
    x: str,
    y: str,
    ratios: bool = True,
) -> Figure:
    """Draw what models have in one table against what they have in another, coloured by grammar.

    Args:
        panels: names of panels, and two tables each, of logarithms of ratios, or the second of accuracies.
        grammars: to draw.
        x: what the first table holds.
        y: what the second holds.
        ratios: whether that is ratios too; a line is drawn where both are alike.
    """
    looks = style.grammar_looks(grammars)
    height = 0.6 + 2.4 * -(-len(panels) // 2)
    figure, axes = style.panels(list(panels), None, (6.4, height), 2, sharey=True, sharex=True)
    for ax, (name, (first, second)) in zip(axes, panels.items(), strict=True):
        both = [model for model in first.models if model in set(second.models)]
        for grammar, look in looks.items():
            values = second.values.loc[both, grammar]
            marks: dict[str, Any] = {"markersize": 3.5, "color": look.colour, "alpha": 0.7}
            ax.plot(np.exp(first.values.loc[both, grammar]), np.exp(values) if ratios else values, look.marker, **marks)
        style.head(ax, name, 3)
        style.tidy(ax)
    for place, ax in enumerate(axes):
        _logarithmic(ax, "x", x if place >= len(axes) - 2 else "")
        beside = y if place % 2 == 0 else ""
        if ratios:
            _logarithmic(ax, "y", beside)
            ax.axline((1, 1), (2, 2), color="black", linewidth=0.6)
        else:
            ax.set(ylim=(-0.03, 1.03), ylabel=beside)
    colours, marks = ({g: getattr(look, what) for g, look in looks.items()} for what in ("colour", "marker"))
    _legend(figure, axes[0], colours, marks)
    return figure


def factors(rows: Mapping[str, Mapping[str, Sequence[float]]], grammars: Sequence[str], x: str) -> Figure:
    """Draw quotients, given by their logarithms: a line of dots per grammar and row, the mean of each as a bar."""
    figure, (ax,) = style.panels(["factors"], None, (6.4, 2.9))
    for place, of in enumerate(rows.values()):
        for at, grammar in enumerate(grammars):
            y, logs = at + (place - (len(rows) - 1) / 2) * 0.2, np.asarray(of[grammar], float)
            if not len(logs):
                continue
            ax.plot(np.exp(logs), [y] * len(logs), "o", markersize=3, color=style.COLOURS[place], alpha=0.4)
            ax.plot([np.exp(logs.mean())], [y], "|", markersize=8, markeredgewidth=2, color=style.COLOURS[place])
    _logarithmic(ax, "x", x)
    ax.set_ylim(len(grammars) - 0.5, -0.5)
    ax.set_yticks(range(len(grammars)), grammars)
    ax.axvline(1, color="black", linewidth=0.8)
    style.tidy(ax, "x")
    _legend(figure, ax, dict(zip(rows, style.COLOURS, strict=False)))
    return figure


def stacked(rows: Mapping[str, Mapping[str, float]], x: str) -> Figure:
    """Draw shares of a whole as bars, a bar per row."""
    figure, (ax,) = style.panels(["shares"], None, (6.4, 2.2))
    names = list(next(iter(rows.values())))
    for at, shares in enumerate(rows.values()):
        left = 0.0
        for place, name in enumerate(names):
            ax.barh(at, shares[name], left=left, height=0.65, color=style.COLOURS[place])
            left += shares[name]
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, 1), xlabel=x)
    ax.set_yticks(range(len(rows)), list(rows))
    style.tidy(ax)
    _legend(figure, ax, dict(zip(names, style.COLOURS, strict=False)))
    return figure


def _logarithmic(ax: Axes, axis: str, label: str) -> None:
    """Make an axis logarithmic, with plain numbers at its ticks."""
    ax.set(**{f"{axis}scale": "log", f"{axis}label": label})
    limits = ax.get_xlim() if axis == "x" else ax.get_ylim()
    style.ratio_axis(ax.xaxis if axis == "x" else ax.yaxis, *limits)


def _legend(figure: Figure, ax: Axes, colours: Mapping[str, str], marks: Mapping[str, str] | None = None) -> None:
    """Draw a legend of colours, and of marks if they differ, below a figure."""
    of = {name: "o" if marks is None else marks[name] for name in colours}
    handles = [ax.plot([], [], of[name], color=colour, label=name)[0] for name, colour in colours.items()]
    long = max(map(len, colours)) > 10
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": 3 if long else len(colours)}
    figure.legend(handles=handles, fontsize=style.SMALL, frameon=False, **place)
