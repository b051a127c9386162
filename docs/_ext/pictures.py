"""Pictures of the site, drawn from the grammars, the worlds of games and the atlas themselves."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import gallery
import numpy as np
import rooms
import sheets
from generated import grammars_in_order
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

import icy
from icy.languages.language import Language

SEED = 123
SHOWN = "3x3"  # small enough to see the whole language: 27 messages of 12 tokens
MEASURED = "5x10"
# Four of Okabe and Ito's colors, two cool and two warm, which are distinct under every common color blindness.
TOKENS = ListedColormap(["#0072B2", "#56B4E9", "#E69F00", "#D55E00"])
BORDER = "#56B4E9"
GAP = 0.35  # between words, in tokens
INSET = 0.1  # between a word and the edges of its row
CAPTION, LABEL = 9.5, 8.0  # points
DPI = 140


def draw_all(folder: Path) -> list[Path]:
    """Draw every picture into a folder; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {f"grammar-{name}": picture_of(name) for name in icy.list_grammars()} | {"grammars": overview()}
    figures |= sheets.sheets() | {"rooms": rooms.picture(), "plot-placement": placement()}
    files = gallery.draw(folder)
    for name, figure in figures.items():
        files.append(folder / f"{name}.png")
        figure.savefig(files[-1], dpi=DPI, facecolor="white")
    return files


def placement() -> Figure:
    """Draw a sender of the atlas among the others."""
    from icy.records.load import select

    where = {"meanings": "3x4", "representation": "soft"}
    return icy.atlas().place(select(icy.atlas().to_dataframe(), ["sender/Transformer"], where=where)).plot()


def overview() -> Figure:
    """Draw the same meanings in every grammar."""
    names = grammars_in_order()
    figure = Figure(figsize=(9.6, 4.2))
    figure.subplots_adjust(left=0.005, right=0.995, top=0.93, bottom=0.005, wspace=0.1)
    for axes, name in zip(figure.subplots(1, len(names)), names, strict=True):
        draw_messages(axes, icy.make_language(name, SHOWN, seed=SEED), labeled=False)
        axes.set_title(name, fontsize=CAPTION)
    return figure


def picture_of(name: str) -> Figure:
    """Draw one grammar next to concat: messages, and the information of each position about each attribute."""
    names = ["concat"] if name == "concat" else ["concat", name]
    across = 4.0 * len(names) + 0.8
    figure = Figure(figsize=(across, 6.4))
    figure.subplots_adjust(
        left=0.42 / across, right=1 - 0.74 / across, top=0.955, bottom=0.075, hspace=0.05, wspace=0.05
    )
    grid = figure.subplots(2, len(names), height_ratios=(3.4, 1), squeeze=False)
    for i, (column, one) in enumerate(zip(grid.T, names, strict=True)):
        draw_messages(column[0], icy.make_language(one, SHOWN, seed=SEED), labeled=i == 0)
        column[0].set_title(one, fontsize=CAPTION + 1)
        image = draw_information(column[1], one, labeled=i == 0)
    below = grid[1, -1].get_position()
    bar = figure.colorbar(image, cax=figure.add_axes((below.x1 + 0.13 / across, below.y0, 0.11 / across, below.height)))
    bar.set_label("bits", fontsize=LABEL)
    bar.ax.tick_params(labelsize=LABEL)
    return figure


def draw_messages(axes: Axes, language: Language, labeled: bool) -> None:
    """Draw tokens as colored squares, a row per meaning, with outlined words."""
    words = language.messages.reshape(language.space.size, language.space.attributes, -1)
    rows, attributes, width = words.shape
    for a in range(attributes):
        left = a * (width + GAP)
        edges = left + np.arange(width + 1), np.arange(rows + 1)
        axes.pcolormesh(*edges, words[:, a], cmap=TOKENS, vmin=0, vmax=language.vocab_size - 1)
        axes.vlines(left + np.arange(1, width), 0, rows, color="white", linewidth=0.5)
        between = [Rectangle((left - GAP, row - INSET), width + 2 * GAP, 2 * INSET) for row in range(rows + 1)]
        axes.add_collection(PatchCollection(between, facecolor="white", edgecolor="none", zorder=3))
        outlines = [Rectangle((left, row + INSET), width, 1 - 2 * INSET) for row in range(rows)]
        axes.add_collection(PatchCollection(outlines, facecolor="none", edgecolor="black", linewidth=0.6, zorder=4))
    axes.set(ylim=(rows, 0), xlim=(-0.1, attributes * (width + GAP) - GAP + 0.1), xticks=[])
    axes.tick_params(length=0, labelsize=LABEL)
    axes.set_yticks(np.arange(rows) + 0.5, _labels(language.space.all()) if labeled else [])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _labels(meanings: Sequence[Sequence[int]]) -> list[str]:
    return [" ".join(map(str, meaning)) for meaning in meanings]


@functools.cache
def information(name: str) -> NDArray[np.float64]:
    """Return the mutual information of attributes and positions over all meanings, [attribute, position], in bits."""
    found = icy.metrics.information_table(icy.make_language(name, MEASURED, seed=SEED))
    return found.pivot(index="attribute", columns="position", values="information").to_numpy()


def draw_information(axes: Axes, name: str, labeled: bool) -> AxesImage:
    """Draw the mutual information of attributes and positions."""
    table = information(name)
    attributes, length = table.shape
    image = axes.imshow(table, cmap="Greys", vmin=0, vmax=2, aspect="auto")
    word = length // attributes
    axes.set_xticks(np.arange(0, length, word), np.arange(0, length, word) + 1)
    axes.set_yticks(range(attributes), range(1, attributes + 1) if labeled else [])
    for edge in range(word, length, word):
        axes.axvline(edge - 0.5, color=BORDER, linewidth=0.8)
    axes.tick_params(labelsize=LABEL)
    axes.set_xlabel("position", fontsize=LABEL)
    if labeled:
        axes.set_ylabel("attribute", fontsize=LABEL)
    return image
