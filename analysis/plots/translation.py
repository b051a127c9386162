"""The translation of a language, word by word (CBM24 figure 2)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from icy.analysis import style
from icy.analysis.picture import Panel, Picture, plot
from icy.core.conventions import Convention
from icy.core.errors import InvalidSettingError
from icy.metrics import Score

MOST = 30  # words, and concepts, shown
THICKEST, FAINT_THICKEST, THINNEST, DOT = 6.0, 2.5, 0.3, 7.0  # points
WEIGHT_AT = 0.82  # position of the weight between word (0) and concept (1)
GAP = 0.8  # rows between matched words and concepts, and the rest
Pair = tuple[Hashable, Hashable, int]  # word, concept, weight
ENDS = (0, 1)  # indices of word and concept in a Pair
PANEL_WIDTH, ROW_HEIGHT = 5.4, 0.27  # inches


@plot
def plot_translation(score: Score, axes: Axes | None = None, groups: Mapping[Hashable, int] | None = None) -> Picture:
    """Draw words on the left, and on the right the concepts that concept best matching (CBM) assigns to them.

    A thick line joins a word and its concept; its width and number show their weight, and its color the attribute.
    Faint lines join other words and concepts that occur together. Words and concepts without a partner are below, with
    hollow marks.

    Args:
        score: score of `icy.metrics.cbm`.
        axes: axes to draw on; by default a new figure.
        groups: group number of each concept, which sets its color. It is needed for concepts that are not pairs of
            attribute and value, which are colored by attribute.

    Returns:
        The figure. If there are more than 30 words or concepts, it shows the heaviest, with a note.

    Raises:
        InvalidSettingError: a score of another metric.

    Example:
        >>> import icy
        >>> from icy.analysis.plots.translation import plot_translation
        >>> figure = plot_translation(icy.metrics.cbm([["red"], ["blue"]], ["x", "y"]))
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['1', '1', 'y', 'x', '0 = blue', '0 = red', 'words', 'concepts']
    """
    if score.metric != "cbm" or "pairs" not in score.details:
        raise InvalidSettingError(f"A translation needs a score of cbm with its details; not {score!r}.")
    board = Board.of(score, groups)
    used = Convention("cbm", score.conventions).note("CBM")
    rates = [f"{name} {score.details[f'{name}_rate']:.2f}" for name in ("ambiguity", "paraphrase", "unmatched")]
    about = f"{', '.join([f'CBM {score.value:.2f}', *rates])}\n{board.legend()}\n{used}".strip()
    panel = Panel(partial(_translation, board, about), height=0.3 + ROW_HEIGHT * board.bottom)
    return Picture([panel], "Which concept each word stands for", width=PANEL_WIDTH)


@dataclass(frozen=True)
class Board:
    """The visible part of a translation, and its layout. Heights are in rows, from 0 at the top.

    Attributes:
        matched: word, concept and weight of the matched pairs.
        others: word, concept and weight of other pairs that occur together.
        words: height of each word.
        concepts: height of each concept; equal to the height of its word if it has one.
        of_attributes: whether concepts are pairs (attribute, value).
        counts: total numbers of words and of concepts.
        groups: group number of each concept that has a group.
    """

    matched: list[Pair]
    others: list[Pair]
    words: dict[Hashable, float]
    concepts: dict[Hashable, float]
    of_attributes: bool
    counts: tuple[int, int]
    groups: Mapping[Hashable, int] = field(default_factory=dict)

    @classmethod
    def of(cls, score: Score, groups: Mapping[Hashable, int] | None = None) -> Board:
        """Lay out the heaviest words and concepts of a score: matched pairs in the order of concepts, then the rest."""
        columns = ["word", "concept", "weight"]
        every, translation = (
            list(zip(*(score.details[name][column].tolist() for column in columns), strict=True))
            for name in ("pairs", "translation")
        )
        matched = heapq.nlargest(MOST, translation, key=itemgetter(2))
        matched.sort(key=translation.index)
        words, concepts = (
            _heights([pair[end] for pair in matched], _unmatched(every, translation, end)) for end in ENDS
        )
        chosen = set(matched)
        others = [pair for pair in every if pair not in chosen and pair[0] in words and pair[1] in concepts]
        counts = len({pair[0] for pair in every}), len({pair[1] for pair in every})
        of_attributes = score.conventions["concepts"] == "attributes"
        return cls(matched, others, words, concepts, of_attributes, counts, groups or {})

    @property
    def bottom(self) -> float:
        """Height of the lowest row."""
        return max(*self.words.values(), *self.concepts.values())

    def legend(self) -> str:
        """Return an explanation of the picture, with the numbers of words and concepts that it leaves out."""
        lines = ["thick, with number: how often a word and its concept occur together"]
        lines[0] += "; faint: other pairs" if self.others else ""
        hollow = len(self.words) > len(self.matched) or len(self.concepts) > len(self.matched)
        marks = ["color: attribute of the concept"] if self.of_attributes else ["color: group"] if self.groups else []
        lines += ["; ".join([*marks, "hollow: no partner"])] if hollow else marks
        shown = zip((self.words, self.concepts), self.counts, ("words", "concepts"), strict=True)
        cut = [f"{len(some)} of {every} {noun}" for some, every, noun in shown if len(some) < every]
        return "\n".join(lines + ([f"the heaviest {' and '.join(cut)}"] if cut else []))

    def name(self, concept: Any) -> str:
        """Return a concept as text."""
        return f"{concept[0]} = {concept[1]}" if self.of_attributes else str(concept)

    def color(self, concept: Any) -> str:
        """Return the color of a concept, by its attribute or group."""
        number = concept[0] if self.of_attributes else self.groups.get(concept, 0)
        return style.COLORS[number % len(style.COLORS)]


def _unmatched(every: list[Pair], translation: list[Pair], side: int) -> list[Hashable]:
    """Return the words (side 0) or the concepts (side 1) without a partner, the heaviest first."""
    matched = {pair[side] for pair in translation}
    weights: Counter[Hashable] = Counter()
    for pair in every:
        if pair[side] not in matched:
            weights[pair[side]] += pair[2]
    return [name for name, _ in weights.most_common()]


def _heights(matched: list[Hashable], unmatched: list[Hashable]) -> dict[Hashable, float]:
    """Return the heights of matched words or concepts, and below them of unmatched ones, up to MOST in total."""
    start = len(matched) + (GAP if matched else 0)
    heights = {name: float(row) for row, name in enumerate(matched)}
    return heights | {name: start + row for row, name in enumerate(unmatched[: MOST - len(matched)])}


def _translation(board: Board, about: str, axes: Axes) -> None:
    """Draw lines, marks and names, and a text below."""
    heaviest = max(pair[2] for pair in board.matched + board.others)
    faintness = min(0.5, 60 / max(1, len(board.others)))  # many lines must not become a gray surface
    gray, colors = [style.GRAY] * len(board.others), [board.color(pair[1]) for pair in board.matched]
    _draw_lines(axes, board, board.others, heaviest * THICKEST / FAINT_THICKEST, gray, faintness)
    _draw_lines(axes, board, board.matched, heaviest, colors, 0.85)
    for word, concept, weight in board.matched:
        box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": board.color(concept), "linewidth": 0.8}
        axes.text(WEIGHT_AT, board.words[word], str(weight), ha="center", va="center", fontsize=7, bbox=box)
    partners = {word: board.color(concept) for word, concept, _ in board.matched}
    for word, height in board.words.items():
        _mark(axes, 0, height, str(word), partners.get(word))
    matched = {pair[1] for pair in board.matched}
    for concept, height in board.concepts.items():
        _mark(axes, 1, height, board.name(concept), board.color(concept) if concept in matched else None)
    for place, side, title in ((0, "right", "words"), (1, "left", "concepts")):
        axes.annotate(title, (place, 1), (0, 4), xycoords=("data", "axes fraction"), textcoords="offset points",
                      ha=side, va="bottom", fontsize=8, color=style.GRAY)  # fmt: skip
    axes.set(xlim=(-0.35, 1.45), ylim=(board.bottom + 0.7, -0.7), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_xlabel(about, fontsize=style.SMALL, color=style.DIM, loc="left")


def _draw_lines(
    axes: Axes, board: Board, pairs: list[Pair], heaviest: float, colors: list[str], opacity: float
) -> None:
    """Draw lines between words and concepts; their width is proportional to the weight."""
    ends = [((0, board.words[word]), (1, board.concepts[concept])) for word, concept, _ in pairs]
    widths = [max(THINNEST, THICKEST * pair[2] / heaviest) for pair in pairs]
    axes.add_collection(LineCollection(ends, linewidths=widths, colors=colors, alpha=opacity, capstyle="butt"))


def _mark(axes: Axes, place: int, height: float, name: str, color: str | None) -> None:
    """Draw a dot and its name, at the left (0) or the right (1); without a color, the dot is hollow."""
    axes.plot([place], [height], "o", markersize=DOT, markeredgewidth=1.2, markeredgecolor=color or style.GRAY,
              markerfacecolor=color or "white", clip_on=False)  # fmt: skip
    away, side = (8, "left") if place else (-8, "right")
    axes.annotate(name, (place, height), (away, 0), textcoords="offset points", ha=side, va="center", fontsize=9,
                  color="black" if color else style.GRAY)  # fmt: skip
