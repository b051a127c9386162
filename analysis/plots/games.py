"""Plots of single games: turns of multi-target games, stimuli of an S2B episode, and people in the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.order import in_order
from icy.analysis.people import PUBLISHED
from icy.analysis.picture import Panel, Picture, plot
from icy.analysis.statistics import Values
from icy.core.errors import InvalidSettingError

# -- turns of the multi-target games (CBM24 figure 3) ------------------------------------------------------------------


Floats = NDArray[np.floating[Any]]  # of any precision

Whole: TypeAlias = NDArray[np.int64]
GAP = 3  # pixels between images
PAPER = 0.85  # the gray between images on black
SIDES = (("targets", style.COLORS[0]), ("distractors", style.COLORS[1]))  # names and colors
FREE, MATCHED, VIOLATED = range(3)  # relation of a value to a rule: no condition, condition met, condition not met
CELLS = ListedColormap(["white", "#b8d9ef", "#f5c9a5"])
CELL_HEIGHT = 0.24  # inches


@plot
def plot_turns_of_images(images: Floats, rules: Sequence[str], targets: int) -> Picture:
    """Draw turns with images as objects: targets above, distractors below.

    Args:
        images: images of the candidates, from 0 to 1, [turn, candidate, channel, y, x]; the targets are first.
        rules: each turn's rule in words.
        targets: number of targets.

    Example:
        >>> import numpy as np
        >>> figure = plot_turns_of_images(np.zeros((2, 8, 3, 16, 16)), ["red", "blue and left"], 4)
        >>> [axes.get_title(loc="left") for axes in figure.axes]
        ['red', '', 'blue and left', '']
    """
    wide = max(targets, images.shape[1] - targets)
    panels = [
        Panel(partial(_images, candidates, wide, *side), block=rule * (candidates is above),
              height=(style.WIDTH - 1.2) / wide)
        for rule, above, below in zip(rules, images[:, :targets], images[:, targets:], strict=True)
        for candidates, side in zip((above, below), SIDES, strict=True)
    ]  # fmt: skip
    return Picture(panels)


def _images(candidates: Floats, wide: int, name: str, color: str, ax: Axes) -> None:
    """Draw the targets or the distractors of a turn."""
    draw_images(ax, candidates[None], wide=wide)
    ax.set_ylabel(name, color=color, fontsize=style.MEDIUM, rotation=0, ha="right", va="center")
    ax.set(xticks=[], yticks=[])


@plot
def plot_turns_of_values(
    objects: Whole, demanded: Whole, rules: Sequence[str], attributes: Sequence[str], targets: int
) -> Picture:
    """Draw turns with tuples of values as objects: a column per object, cells colored by the conditions of the rule.

    Args:
        objects: the candidates' values, from 0, [turn, candidate, attribute]; the targets are first.
        demanded: value that each turn's rule demands of each attribute, or -1, [turn, attribute].
        rules: each turn's rule in words.
        attributes: names of attributes.
        targets: number of targets.

    Example:
        >>> import numpy as np
        >>> objects, demanded = np.array([[[1, 2], [3, 2]]]), np.array([[1, -1]])
        >>> figure = plot_turns_of_values(objects, demanded, ["1.2"], ["first", "second"], 1)
        >>> [text.get_text() for axes in figure.axes for text in axes.texts]
        ['2', '3', '4', '3']
    """
    states = np.where(demanded[:, None] < 0, FREE, np.where(objects == demanded[:, None], MATCHED, VIOLATED))
    cuts = slice(0, targets), slice(targets, None)
    panels = [
        Panel(partial(_values, turn[cut], state[cut], names, *side), block=block,
              height=len(attributes) * CELL_HEIGHT)
        for turn, state, rule in zip(objects, states, rules, strict=True)
        for cut, names, block, side in zip(cuts, (attributes, ()), (rule, ""), SIDES, strict=True)
    ]  # fmt: skip
    notes = ["blue: the value that the rule demands (attribute.value); orange: another value; white: any value will do"]
    return Picture(panels, "", notes, columns=2, grid={"width_ratios": (targets, objects.shape[1] - targets)})


def _values(values: Whole, states: NDArray[Any], attributes: Sequence[str], name: str, color: str, ax: Axes) -> None:
    """Draw the targets or the distractors of a turn: a column per object."""
    draw_grid(ax, states.T, CELLS, VIOLATED)
    ax.set_aspect("auto")
    for (column, row), value in np.ndenumerate(values):
        ax.text(column + 0.5, row + 0.5, str(value + 1), ha="center", va="center", fontsize=style.SMALL)
    ax.set_xlabel(name, color=color, fontsize=style.MEDIUM, labelpad=2)
    ax.set_yticks(np.arange(len(attributes)) + 0.5, attributes, fontsize=style.SMALL)


def draw_images(axes: Axes, images: Floats, wide: int = 0) -> None:
    """Draw images [row, column, channel, y, x] side by side, in rows at least as wide as `wide` images."""
    down, across, _, height, width = images.shape
    sheet = np.ones((down * (height + GAP) + GAP, max(across, wide) * (width + GAP) + GAP, 3))
    sheet[:, : across * (width + GAP) + GAP] = PAPER
    for row, column in np.ndindex(down, across):
        top, column_start = row * (height + GAP) + GAP, column * (width + GAP) + GAP
        sheet[top : top + height, column_start : column_start + width] = images[row, column].transpose(1, 2, 0)
    axes.imshow(sheet, interpolation="nearest")
    axes.spines[:].set_visible(False)


def draw_grid(axes: Axes, cells: Values, colors: ListedColormap, most: int) -> None:
    """Draw cells [row, column] as squares with thin lines between."""
    down, across = cells.shape
    axes.pcolormesh(cells, cmap=colors, vmin=0, vmax=most, edgecolors="#cccccc", linewidth=0.4)
    axes.set(xlim=(0, across), ylim=(down, 0), xticks=[], yticks=[], aspect="equal")
    axes.tick_params(length=0)
    axes.spines[:].set_linewidth(0.6)


# -- stimuli of an S2B episode (MetaRG22 figure 3) ---------------------------------------------------------------------


STEPS, REACH = 200, 4.0  # of the curve of a density: points, and standard deviations on each side


@plot
def plot_stimuli(
    sizes: NDArray[np.int64], means: Values, deviations: Values, samples: Values, setting: str = ""
) -> Picture:
    """Draw the stimuli of one episode: a panel per dimension, with the density of every value and its samples.

    Args:
        sizes: number of values of each dimension, [N].
        means: means of the densities, [N, values].
        deviations: standard deviations of the densities, [N, values].
        samples: samples drawn from the densities, [N, values, O].
        setting: note on the setting.
    """
    panels = [
        Panel(partial(_densities, int(size), *own), height=1.1, x="number that is seen", y=f"dimension {dimension}")
        for dimension, (size, *own) in enumerate(zip(sizes, means, deviations, samples, strict=True))
    ]
    notes = [
        *filter(None, [setting]),
        "curve: density of the value with this number; ticks: samples; dotted: ends of the sections of the values",
    ]
    return Picture(panels, "Which numbers stand for each value in this episode", notes, grid={"sharex": True})


def _densities(count: int, means: Values, deviations: Values, samples: Values, ax: Axes) -> None:
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
    ax.set(xlim=(-1.02, 1.02), yticks=[])
    ax.margins(y=0.2)
    ax.spines["left"].set_visible(False)


# -- plot of the study: accuracy on held-out items by dataset and grammar ----------------------------------------------


SPREAD = 0.72  # fraction of the width of a grammar over which the marks of agents are spread
TITLE = "Secret Spy Codes: held-out items that are exactly right"


@plot
def draw_study(report: pd.DataFrame) -> Picture:
    """Draw accuracy on held-out items: a panel per dataset, a group per grammar, a mark per agent with its interval.

    Args:
        report: report of `icy.analysis.tables.study.study_report`.
        **look: title, width and axes; see `icy.analysis.picture.plot`.

    Raises:
        InvalidSettingError: the report is empty.
    """
    if not len(report):
        raise InvalidSettingError("Cannot draw an empty report.")
    named = report.assign(label=_labels(report))
    looks, grammars = _looks(named), in_order(named["grammar"].unique())
    panels = [
        Panel(partial(_dataset, named[named["dataset"] == name], grammars, looks), "", name, 1.5, "", "right, %", "y")
        for name in sorted(named["dataset"].unique(), reverse=True)
    ]
    notes = ["lines: 95 % interval of the mean, by bootstrap of persons (of machines: instances)"]
    if (named["agent_kind"] == PUBLISHED).any():
        notes.append("people (Icy22): middle and range of the counts that fit the printed numbers")
    legend = [look.handle(label, line=False) for label, look in looks.items()]
    return Picture(panels, TITLE, notes, legend, grid={"sharex": True})


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


def _dataset(part: pd.DataFrame, grammars: Sequence[str], looks: Mapping[str, style.Look], ax: Axes) -> None:
    """Draw the marks of one dataset."""
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
