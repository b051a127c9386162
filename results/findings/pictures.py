"""Pictures of the findings: models as dots, by side, family or grammar."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icy.analysis import style
from results.findings.data import FAMILIES, GRAMMARS, SIDES, Table

RATIO = "updates as a ratio to concat's"
UPDATES = "updates"


def by_family(ratios: Table, updates: Table) -> Figure:
    """Draw ratios above and updates below, a panel per side: a dot per model, a bar at the mean of each family.

    Models with cut runs are hollow. The mean of a family with cut runs is a bound, drawn as ">".
    """
    names = [f"{side}s" for side in SIDES]
    figure, axes = style.panels(names * 2, None, (6.4, 6.0), 2, sharex="row", sharey=True)
    for ax, (table, label), side in zip(axes, ((t, x) for t, x in ((ratios, RATIO), (updates, UPDATES)) for _ in SIDES),
                                        SIDES * 2, strict=True):  # fmt: skip
        for place, family in enumerate(FAMILIES):
            of, color = table.side(side).families(family), style.COLORS[place]
            for at, grammar in enumerate(GRAMMARS):
                y = at + (place - (len(FAMILIES) - 1) / 2) * 0.15
                _dots(ax, np.exp(of.values[grammar]), [y] * len(of), of.cut[grammar], color, markersize=2.5)
                if len(of):
                    mean, bar = math.exp(of.values[grammar].mean()), "$>$" if of.cut[grammar].any() else "|"
                    ax.plot(
                        [mean], [y], marker=bar, markersize=6, markeredgewidth=2 if bar == "|" else 0.8, color=color
                    )
        ax.set_ylim(len(GRAMMARS) - 0.5, -0.5)
        if label == RATIO:
            _logarithmic(ax, "x", label)
            ax.axvline(1, color="black", linewidth=0.8)
        else:
            ax.set(xscale="log", xlabel=label)
            style.count_axis(ax.xaxis, *ax.get_xlim())
        ax.set_yticks(range(len(GRAMMARS)), GRAMMARS)
        style.head(ax, f"{side}s", 3)
        style.tidy(ax, "x")
    _legend(figure, axes[0], dict(zip(FAMILIES, style.COLORS, strict=False)))
    return figure


def _dots(ax: Axes, x: Any, y: Any, cut: Any, color: str, marker: str = "o", **more: Any) -> None:
    """Draw models; models with cut runs are hollow."""
    x, y, cut = np.asarray(x, float), np.asarray(y, float), np.asarray(cut, bool)
    for mask, face in ((~cut, color), (cut, "white")):
        marks: dict[str, Any] = {"markersize": 3.5, "color": color, "markerfacecolor": face, "alpha": 0.7, **more}
        ax.plot(x[mask], y[mask], marker, **marks)


def by_grammar(
    panels: Mapping[str, tuple[Table, Table]],
    grammars: Sequence[str],
    x: str,
    y: str,
    ratios: bool = True,
) -> Figure:
    """Draw the values of models in one table against their values in another, colored by grammar.

    Models with cut runs are hollow.

    Args:
        panels: names of panels, with two tables each: logarithms of ratios, and logarithms of ratios or accuracies.
        grammars: grammars to draw.
        x: label of the first table's values.
        y: label of the second table's values.
        ratios: whether the second table also has ratios; if so, a line shows where both are equal.
    """
    looks = style.grammar_looks(grammars)
    height = 0.6 + 2.4 * -(-len(panels) // 2)
    figure, axes = style.panels(list(panels), None, (6.4, height), 2, sharey=True, sharex=True)
    for ax, (name, (first, second)) in zip(axes, panels.items(), strict=True):
        both = [model for model in first.models if model in set(second.models)]
        for grammar, look in looks.items():
            values = second.values.loc[both, grammar]
            cut = first.cut.loc[both, grammar] | second.cut.loc[both, grammar]
            x_of, y_of = np.exp(first.values.loc[both, grammar]), np.exp(values) if ratios else values
            _dots(ax, x_of, y_of, cut, look.color, look.marker)
        style.head(ax, name, 3)
        style.tidy(ax)
    for place, ax in enumerate(axes):
        _logarithmic(ax, "x", x if place >= len(axes) - 2 else "")
        label = y if place % 2 == 0 else ""
        if ratios:
            _logarithmic(ax, "y", label)
            ax.axline((1, 1), (2, 2), color="black", linewidth=0.6)
        else:
            ax.set(ylim=(-0.03, 1.03), ylabel=label)
    colors, marks = ({g: getattr(look, name) for g, look in looks.items()} for name in ("color", "marker"))
    _legend(figure, axes[0], colors, marks)
    return figure


def both_ways(sides: Mapping[str, tuple[Table, Table, Table]], ordered: Mapping[str, Sequence[str]]) -> Figure:
    """Draw accuracies against ratios, a dot per grammar, and against ratios and updates, a dot per model.

    Dots are means: of the models on a grammar (chains are gray), or of a model over grammars. Models are colored by
    cell.

    Args:
        sides: names of panels, with tables of logarithms of ratios, logarithms of updates, and accuracies.
        ordered: grammars of the means over grammars, of each side.
    """
    figure, axes = style.panels(list(sides) * 3, None, (6.4, 7.6), 2, sharey="row")
    cells = list(dict.fromkeys(cell for tables in sides.values() for cell in tables[0].clusters()))
    looks = {cell: (style.COLORS[i % len(style.COLORS)], style.MARKERS[i % 3]) for i, cell in enumerate(cells)}
    for i, (name, (ratios, updates, accuracies)) in enumerate(sides.items()):
        top, by_ratio, by_updates = axes[i::2]
        style.head(top, name, 3)
        for grammar in (str(g) for g in ratios.values if g != "concat"):
            x, y = math.exp(ratios.values[grammar].mean()), accuracies.values[grammar].mean()
            chain = "+" in grammar
            _dots(top, [x], [y], [False], style.GRAY if chain else style.COLORS[0])
            label = "" if chain else grammar
            top.annotate(label, (x, y), (4, 2), textcoords="offset points", fontsize=style.SMALL, color=style.DIM)
        for ax, speeds in ((by_ratio, ratios), (by_updates, updates)):
            for model, cell in zip(speeds.models, speeds.clusters(), strict=True):
                means = (of.values.loc[[model], list(ordered[name])].to_numpy().mean() for of in (speeds, accuracies))
                x, y = map(float, means)
                _dots(ax, [math.exp(x)], [y], [False], looks[cell][0], looks[cell][1])
        for ax, label in ((top, f"{RATIO}, of a grammar"), (by_ratio, "ratio, of a model")):
            _logarithmic(ax, "x", label)
        by_updates.set(xscale="log", xlabel="updates, of a model")
        for ax in (top, by_ratio, by_updates):
            ax.set(ylabel="" if i else "held-out accuracy")
            style.tidy(ax)
        style.count_axis(by_updates.xaxis, *by_updates.get_xlim())
    _legend(figure, axes[2], *({cell: look[part] for cell, look in looks.items()} for part in (0, 1)))
    return figure


def factors(rows: Mapping[str, tuple[Table, Sequence[tuple[str, str]]]], grammars: Sequence[str], x: str) -> Figure:
    """Draw quotients of pairs of models: a line of dots per grammar and row, with a bar at the mean.

    Pairs are hollow if one model has cut runs, and left out if both have.
    """
    figure, (ax,) = style.panels(["factors"], None, (6.4, 2.9))
    for place, (table, pairs) in enumerate(rows.values()):
        a, b = (table.values.loc[list(of)].to_numpy() for of in zip(*pairs, strict=True))
        cuts = [table.cut.loc[list(of)].to_numpy() for of in zip(*pairs, strict=True)]
        for at, grammar in enumerate(grammars):
            column, y = list(table.values).index(grammar), at + (place - (len(rows) - 1) / 2) * 0.2
            one, both = cuts[0][:, column] ^ cuts[1][:, column], cuts[0][:, column] & cuts[1][:, column]
            logs = (a - b)[~both, column]
            _dots(ax, np.exp(logs), [y] * len(logs), one[~both], style.COLORS[place], markersize=3)
            if not one.any():
                ax.plot([np.exp(logs.mean())], [y], "|", markersize=8, markeredgewidth=2, color=style.COLORS[place])
    _logarithmic(ax, "x", x)
    ax.set_ylim(len(grammars) - 0.5, -0.5)
    ax.set_yticks(range(len(grammars)), grammars)
    ax.axvline(1, color="black", linewidth=0.8)
    style.tidy(ax, "x")
    _legend(figure, ax, dict(zip(rows, style.COLORS, strict=False)))
    return figure


def stacked(panels: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Figure:
    """Draw shares of a whole as stacked bars: a panel per mapping, a bar per row."""
    figure, axes = style.panels(list(panels), None, (6.4, 2.4), len(panels), sharey=True)
    rows = list(dict.fromkeys(row for panel in panels.values() for row in panel))
    names = list(next(iter(next(iter(panels.values())).values())))
    for ax, (title, panel) in zip(axes, panels.items(), strict=True):
        for row, shares in panel.items():
            offset = 0.0
            for place, name in enumerate(names):
                ax.barh(rows.index(row), shares[name], left=offset, height=0.65, color=style.COLORS[place])
                offset += shares[name]
        ax.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, 1), xlabel="share of the variance")
        ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        ax.set_yticks(range(len(rows)), rows)
        style.head(ax, title, 2)
        style.tidy(ax)
    _legend(figure, axes[0], dict(zip(names, style.COLORS, strict=False)))
    return figure


def by_sender(runs: pd.DataFrame, scores: Mapping[str, str]) -> Figure:
    """Draw scores of senders, a panel per score: a dot per seed, a bar at the mean; the last score sorts senders."""
    names = [str(name) for name in runs.groupby("sender")[list(scores)[-1]].mean().sort_values().index]
    figure, axes = style.panels(list(scores), None, (6.4, 4.2), len(scores), sharey=True)
    for ax, (score, label) in zip(axes, scores.items(), strict=True):
        for at, name in enumerate(names):
            values, color = runs.loc[runs["sender"].eq(name), score], style.COLORS[0]
            ax.plot(values, [at] * len(values), "o", markersize=3, color=color, alpha=0.5)
            ax.plot([values.mean()], [at], "|", markersize=8, markeredgewidth=2, color=color)
        ax.set(xlabel=label, ylim=(-0.7, len(names) - 0.3))
        ax.set_yticks(range(len(names)), names, fontsize=style.SMALL)
        style.tidy(ax, "x")
    return figure


def _logarithmic(ax: Axes, axis: str, label: str) -> None:
    """Make an axis logarithmic, with plain numbers at its ticks."""
    ax.set(**{f"{axis}scale": "log", f"{axis}label": label})
    limits = ax.get_xlim() if axis == "x" else ax.get_ylim()
    style.ratio_axis(ax.xaxis if axis == "x" else ax.yaxis, *limits)


def _legend(figure: Figure, ax: Axes, colors: Mapping[str, str], marks: Mapping[str, str] | None = None) -> None:
    """Draw a legend of colors, and of `marks` if there are any, below a figure."""
    of = {name: "o" if marks is None else marks[name] for name in colors}
    handles = [ax.plot([], [], of[name], color=color, label=name)[0] for name, color in colors.items()]
    long = max(map(len, colors)) > 10
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": 3 if long else len(colors)}
    figure.legend(handles=handles, fontsize=style.SMALL, frameon=False, **place)
