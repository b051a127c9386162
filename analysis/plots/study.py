"""Plots of the study: accuracy on held-out items by dataset and grammar, and accuracy over the course of a game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from icy.analysis import style
from icy.analysis.literature.people import PUBLISHED
from icy.analysis.order import in_order
from icy.analysis.row_types import Facts
from icy.core.errors import InvalidSettingError

SPREAD = 0.72  # fraction of the width of a grammar over which the marks of agents are spread
PANEL_HEIGHT = 1.9  # inches
WINDOW = 8  # number of examples of the moving average: as many as between two cards
TITLE = "Secret Spy Codes: held-out items that are exactly right"


@style.with_own_settings
def draw_study(report: pd.DataFrame, title: str | None = None, width: float = style.WIDTH) -> Figure:
    """Draw accuracy on held-out items: a panel per dataset, a group per grammar, a mark per agent with its interval.

    Args:
        report: report of `icy.analysis.tables.study.study_report`.
        title: title; by default a description, "" for none.
        width: width of the figure, in inches.

    Raises:
        InvalidSettingError: the report is empty.
    """
    if not len(report):
        raise InvalidSettingError("Cannot draw an empty report.")
    named = report.assign(label=_labels(report))
    datasets = sorted(named["dataset"].unique(), reverse=True)
    figure = style.figure(width, PANEL_HEIGHT * len(datasets) + 0.5)
    axes = figure.subplots(len(datasets), 1, squeeze=False, sharex=True)[:, 0]
    looks = _looks(named)
    grammars = in_order(named["grammar"].unique())
    for ax, dataset in zip(axes, datasets, strict=True):
        _draw_dataset(ax, named[named["dataset"] == dataset], grammars, looks)
        style.name_block(ax, dataset)
    style.legend(figure, list(axes), True, [look.handle(label, line=False) for label, look in looks.items()])
    style.entitle(figure, list(axes), True, title, TITLE, _notes(named))
    return figure


def _labels(report: pd.DataFrame) -> list[str]:
    """Return labels of agents, with protocol and preset if these vary within a kind of agent."""
    labels = []
    for row in report.to_dict("records"):
        own = report[report["agent_kind"] == row["agent_kind"]]
        more = [str(row[name]) for name in ("protocol", "preset") if own[name].nunique() > 1]
        labels.append(f"{row['agent']} ({', '.join(more)})" if more else str(row["agent"]))
    return labels


def _looks(named: pd.DataFrame) -> dict[str, style.Look]:
    """Return the look of each agent: black for published people, hollow marks for further protocols and presets."""
    colors = [color for color in style.COLORS if color != "#000000"]
    found = {label: style.Look("#000000", marker="_") for label in named.loc[named["agent_kind"] == PUBLISHED, "label"]}
    others = named[named["agent_kind"] != PUBLISHED].drop_duplicates("label")
    agents, variants = (list(dict.fromkeys(keys)) for keys in (others["agent"], _variants(others)))
    for label, agent, variant in zip(others["label"], others["agent"], _variants(others), strict=True):
        i = agents.index(agent)
        color, marker = colors[i % len(colors)], style.MARKERS[i % len(style.MARKERS)]
        found[label] = style.Look(color, marker=marker, hollow=variant != variants[0])
    return found


def _variants(named: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(named["protocol"], named["preset"], strict=True))


def _draw_dataset(ax: Axes, part: pd.DataFrame, grammars: Sequence[str], looks: Mapping[str, style.Look]) -> None:
    offsets = dict(zip(looks, np.linspace(-SPREAD / 2, SPREAD / 2, max(2, len(looks))), strict=False))
    for row in part.to_dict("records"):
        look, x = looks[row["label"]], grammars.index(row["grammar"]) + offsets[row["label"]]
        mean, low, high = (100 * float(row[name]) for name in ("accuracy", "low", "high"))
        ax.plot([x, x], [low, high], color=look.color, linewidth=1.0, solid_capstyle="butt")
        size = 7 if look.marker == "_" else 4
        ax.plot(x, mean, look.marker, color=look.color, markerfacecolor=look.face, markersize=size, clip_on=False)
    for place in range(1, len(grammars)):
        ax.axvline(place - 0.5, color="#dddddd", linewidth=0.6)
    ax.set(xticks=range(len(grammars)), xticklabels=grammars, xlim=(-0.5, len(grammars) - 0.5), ylim=(0, 100))
    ax.set_ylabel("right, %")
    style.tidy(ax, "y")


def _notes(named: pd.DataFrame) -> list[str]:
    notes = ["lines: 95 % interval of the mean, by bootstrap of persons (of machines: instances)"]
    if (named["agent_kind"] == PUBLISHED).any():
        notes.append("people (Icy22): middle and range of the counts that fit the printed numbers")
    return notes


@style.with_own_settings
def draw_course(items: pd.DataFrame, title: str | None = None, width: float = style.WIDTH) -> Figure:
    """Draw the accuracy over the course of a game: a panel per dataset and grammar, a line per agent.

    Lines are moving averages of ordinary items over the number of examples between two cards; marks are held-out items.
    Bands and error bars are standard errors over instances, which the column `seed` numbers, if there is one.

    Args:
        items: one row per item, as `icy.study.rows.items_of_records` returns: agent, dataset, grammar, example (from
            1), correct and held_out.
        title: title; by default a description, "" for none.
        width: width of the figure, in inches.

    Raises:
        InvalidSettingError: `items` is empty.
    """
    if not len(items):
        raise InvalidSettingError("Cannot draw a course without items.")
    datasets, grammars = sorted(items["dataset"].unique(), reverse=True), in_order(items["grammar"].unique())
    names = [f"{dataset}, {grammar}" for dataset in datasets for grammar in grammars]
    across = len(grammars)
    figure, axes = style.panels(names, None, (width, 1.5 * len(datasets) + 0.6), across, sharex=True, sharey=True)
    agents = list(dict.fromkeys(items["agent"]))
    looks = style.model_looks(agents)
    for ax, name in zip(axes, names, strict=True):
        dataset, _, grammar = name.partition(", ")
        part = items[(items["dataset"] == dataset) & (items["grammar"] == grammar)]
        for agent, own in part.groupby("agent", sort=False):
            _draw_line(ax, own, looks[str(agent)])
        style.head(ax, name, width / across)
        ax.set(ylim=(0, 102))
        style.tidy(ax, "y")
    style.outer_labels(axes, across, "example", ["right, %"] * len(axes))
    handles = [replace(looks[agent], dash="-").handle(agent) for agent in agents]
    style.legend(figure, axes, True, handles)
    usual = "Secret Spy Codes: right answers over the course of a game"
    several = "seed" in items and items.groupby("agent")["seed"].nunique().max() > 1
    notes = [f"lines: ordinary items, over {WINDOW} examples; marks: held-out items"]
    notes += ["bands and error bars: standard error of the mean over instances"] if several else []
    style.entitle(figure, axes, True, title, usual, notes)
    return figure


def _draw_line(ax: Axes, own: pd.DataFrame, look: style.Look) -> None:
    each = own.assign(seed=own.get("seed", 0), right=100 * own["correct"])
    usual, marks = (
        part.pivot_table(index="example", columns="seed", values="right")
        for _, part in each.groupby(each["held_out"].astype(bool))
    )
    smooth = usual.rolling(WINDOW, min_periods=1, center=True).mean()
    mean, error = smooth.mean(axis=1), smooth.sem(axis=1).fillna(0)
    ax.plot(mean.index, mean, color=look.color, linestyle=look.dash, linewidth=1.0)
    ax.fill_between(mean.index, mean - error, mean + error, color=look.color, alpha=0.15, linewidth=0)
    marked: Facts = {"markerfacecolor": look.face, "markersize": 3.5, "linewidth": 0.7, "clip_on": False}
    error = marks.sem(axis=1).fillna(0)
    ax.errorbar(marks.index, marks.mean(axis=1), yerr=error, fmt=look.marker, color=look.color, **marked)


@style.with_own_settings
def draw_design(design: pd.DataFrame, title: str | None = None, width: float = style.WIDTH) -> Figure:
    """Draw how much earlier cards reveal about each held-out item: a panel per dataset and preset, bars per item.

    The two bars of an item show how many earlier cards have its color, and how many have its shape. The marks show the
    accuracy of a perfect composer, with and without correction of errors in earlier held-out items.

    Args:
        design: one row per dataset, preset and held-out item: `item` (its name or number), `colour`, `shape`, `told`
            (errors are corrected) and `untold` (they are not).
        title: title; by default a description, "" for none.
        width: width of the figure, in inches.
    """
    keys = list(dict.fromkeys(zip(design["dataset"], design["preset"], strict=True)))
    names = [f"{dataset}, {preset}" for dataset, preset in keys]
    figure, axes = style.panels(names, None, (width, 2.4), len(names), sharey=True)
    seconds = [ax.twinx() for ax in axes]
    for ax, second, (dataset, preset) in zip(axes, seconds, keys, strict=True):
        part = design[(design["dataset"] == dataset) & (design["preset"] == preset)]
        _draw_items(ax, second, part)
        style.head(ax, f"{dataset}, {preset}", width / len(names))
    for second in seconds[:-1]:
        second.tick_params(labelright=False)
    seconds[-1].set_ylabel("composer right, %", fontsize=style.MEDIUM)
    axes[0].set_ylabel("other cards that showed it")
    style.legend(figure, axes, True, _design_handles(), loc="outside lower center", ncols=4)
    style.entitle(figure, axes, True, title, "Held-out items that the order of cards makes answerable")
    return figure


def _draw_items(ax: Axes, second: Axes, part: pd.DataFrame) -> None:
    places = np.arange(len(part))
    for offset, name, color in ((-0.19, "colour", style.COLORS[1]), (0.19, "shape", style.COLORS[0])):
        ax.bar(places + offset, part[name], 0.36, color=color)
    for name, face in (("told", "white"), ("untold", "black")):
        second.plot(places, 100 * part[name], "D", color="black", markerfacecolor=face, markersize=4.5, clip_on=False)
    ax.set_xticks(places, [text.replace(" ", "\n") for text in part["item"]])
    ax.set(ylim=(0, 3.2), yticks=range(4))
    second.set(ylim=(0, 160), yticks=[0, 50, 100])
    style.tidy(ax, "y")
    second.spines[["top"]].set_visible(False)
    second.tick_params(labelsize=style.SMALL, length=2.5, pad=2)


def _design_handles() -> list[Artist]:
    bars = [Patch(color=style.COLORS[1], label="its color"), Patch(color=style.COLORS[0], label="its shape")]
    marks = {"composer, errors corrected": True, "composer, not corrected": False}
    looks = {name: style.Look("black", marker="D", hollow=hollow) for name, hollow in marks.items()}
    return [*bars, *(look.handle(name, 4.5, line=False) for name, look in looks.items())]
