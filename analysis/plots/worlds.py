"""Turns of the multi-target games (CBM24 figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.statistics import Values

Floats = NDArray[np.floating[Any]]  # of any precision

Whole: TypeAlias = NDArray[np.int64]
GAP = 3  # pixels between images
PAPER = 0.85  # the gray between images on black
TARGET, DISTRACTOR = style.COLORS[0], style.COLORS[1]
FREE, MATCHED, VIOLATED = range(3)  # relation of a value to a rule: no condition, condition met, condition not met
CELLS = ListedColormap(["white", "#b8d9ef", "#f5c9a5"])
NAME_HEIGHT, CELL_HEIGHT = 0.3, 0.24  # inches


@style.with_own_settings
def plot_turns_of_images(images: Floats, rules: Sequence[str], targets: int) -> Figure:
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
    counts = targets, images.shape[1] - targets
    side = (style.WIDTH - 0.9) / max(counts)
    figure = style.figure(style.WIDTH, len(images) * (2 * side + NAME_HEIGHT + 0.1))
    for part, turn, rule in _turns(figure, images, rules):
        shares = zip(part.subplots(2, 1), (turn[:targets], turn[targets:]), _sides(), strict=True)
        for axes, candidates, (name, color) in shares:
            draw_images(axes, candidates[None], wide=max(counts))
            _name_side(axes, name, color)
        part.axes[0].set_title(rule, fontsize=style.LARGE, loc="left", pad=3)
    return figure


@style.with_own_settings
def plot_turns_of_values(
    objects: Whole, demanded: Whole, rules: Sequence[str], attributes: Sequence[str], targets: int
) -> Figure:
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
    cell = (style.WIDTH - 1.1) / objects.shape[1]
    figure = style.figure(style.WIDTH, len(objects) * (len(attributes) * CELL_HEIGHT + 2 * NAME_HEIGHT) + 0.2)
    states = np.where(demanded[:, None] < 0, FREE, np.where(objects == demanded[:, None], MATCHED, VIOLATED))
    for part, (turn, state), rule in _turns(figure, list(zip(objects, states, strict=True)), rules):
        cuts = slice(0, targets), slice(targets, None)
        panels = part.subplots(1, 2, width_ratios=(targets, len(turn) - targets), squeeze=False)[0]
        for axes, cut, (name, color) in zip(panels, cuts, _sides(), strict=True):
            draw_grid(axes, state[cut].T, CELLS, VIOLATED)
            axes.set_aspect(CELL_HEIGHT / cell)
            for (column, row), value in np.ndenumerate(turn[cut]):
                axes.text(column + 0.5, row + 0.5, str(value + 1), ha="center", va="center", fontsize=style.SMALL)
            axes.set_xlabel(name, color=color, fontsize=style.MEDIUM, labelpad=2)
        panels[0].set_yticks(np.arange(len(attributes)) + 0.5, attributes, fontsize=style.SMALL)
        panels[0].set_title(rule, fontsize=style.LARGE, loc="left", pad=3)
    notes = ["blue: the value that the rule demands (attribute.value); orange: another value; white: any value will do"]
    style.entitle(figure, figure.axes, True, "", "", notes)
    return figure


def _turns(figure: Figure, turns: Sequence[Any] | Floats, rules: Sequence[str]) -> list[tuple[SubFigure, Any, str]]:
    """Return a subfigure for each turn, with the turn and its rule."""
    parts = figure.subfigures(len(turns), 1, squeeze=False)[:, 0]
    return list(zip(parts, turns, rules, strict=True))


def _sides() -> tuple[tuple[str, str], tuple[str, str]]:
    return ("targets", TARGET), ("distractors", DISTRACTOR)


def _name_side(axes: Axes, name: str, color: str) -> None:
    axes.set_ylabel(name, color=color, fontsize=style.MEDIUM, rotation=0, ha="right", va="center")
    axes.set(xticks=[], yticks=[])


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
