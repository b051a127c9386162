"""Results arranged for plots: blocks that share an axis, lines with a label, cells with mean and spread."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.order import (
    COMPOSITIONAL,
    LETTERS,
    NOISE,
    ORDERED,
    SortKey,
    heading,
    in_order,
    place_of,
    place_of_model,
    without_hashes,
)
from icy.analysis.table_cells import COARSE, CUT, LEAST_RATIO, SPREADS, TableCell, cell_in_row
from icy.analysis.tables.bias import GEOMETRIC, bias_table
from icy.core.errors import InvalidSettingError
from icy.core.text import counted, natural
from icy.languages.meanings import MeaningSpace
from icy.records.load import NONE, Results, long_of, records_in
from icy.records.long_table import ROW
from icy.records.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.text import Annotation

# -- labels of points, placed so that they do not overlap --------------------------------------------------------------


DIRECTIONS = ((1, 0), (-1, 0), (-1, 1), (0, 1), (1, 1), (0, -1), (1, -1), (-1, -1))  # in order of preference
DISTANCES = (4.5, 9.0, 15.0, 23.0, 33.0, 45.0, 60.0)  # points
LEADER = 12.0  # points; labels at a larger distance have a line to their point
MARK, STROKE = 3.5, 1.0  # half the width of a mark and of a line, in points
STEP = 0.5  # by which marks are moved aside, in points
COVERED, CROSSED = 100.0, 0.5  # costs per square point of overlap with a mark or text, and with a line

Polyline: TypeAlias = Sequence[tuple[float, float]]  # corners of a line, in data coordinates
Array: TypeAlias = NDArray[np.float64]  # of boxes, [n, 4]: left, bottom, right, top; of places, [n, 2]; in points

# Offsets from a point to the nearest edge or corner of its text, [n, 2], in points.
OFFSETS = np.array([
    (across * distance * (0.7 if across and up else 1), up * distance * (0.7 if across and up else 1))
    for distance in DISTANCES for across, up in DIRECTIONS
])  # fmt: skip


def place_labels(
    ax: Axes, points: Polyline, texts: Sequence[str], lines: Sequence[Polyline] = (), size: float | None = None
) -> list[Annotation]:
    """Write a text next to each point, with as little overlap as possible with marks, lines and other texts.

    Texts are placed one after another, each at the offset with the lowest cost. Call this last, when the axes have
    their limits and positions and everything else is drawn.

    Args:
        ax: axes of the points.
        points: data coordinates (x, y) of the points.
        texts: one text per point.
        lines: drawn lines to avoid.
        size: size of the letters, in points; by default `style.SMALL`.
    """
    size = size or style.SMALL
    scale = 72 / style.figure_of(ax).dpi
    where = scale * ax.transData.transform(points)
    along = [_along(scale * ax.transData.transform(line)) for line in lines]
    strokes = np.concatenate([np.empty((0, 2)), *along])
    around = [np.hstack([places - half, places + half]) for places, half in ((where, MARK), (strokes, STROKE))]
    occupied = np.concatenate(around)
    weights = np.repeat([COVERED, CROSSED], [len(where), len(strokes)])
    frame = scale * np.array([ax.bbox.extents])
    line = {"arrowstyle": "-", "color": style.DIM, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2}
    written = []
    for place, point, text in zip(where, points, texts, strict=True):
        extent = np.array(style.text_size(text, size))
        low = place + OFFSETS - extent * (1 - np.sign(OFFSETS)) / 2
        boxes = np.hstack([low - 1, low + extent + 1])  # with a margin
        outside = (extent + 2).prod() - _overlaps(boxes, frame)[:, 0]
        best = int(np.argmin(_overlaps(boxes, occupied) @ weights + COVERED * outside + np.hypot(*OFFSETS.T)))
        occupied, weights = np.concatenate([occupied, boxes[best : best + 1]]), np.append(weights, COVERED)
        across, up = map(float, OFFSETS[best])
        label = ax.annotate(
            text, point, (across, up), textcoords="offset points", fontsize=size, annotation_clip=False,
            parse_math=False, arrowprops=line if np.hypot(across, up) > LEADER else None,
            ha="left" if across > 0 else "right" if across < 0 else "center",
            va="bottom" if up > 0 else "top" if up < 0 else "center",
        )  # fmt: skip
        written.append(label)
    return written


def _along(corners: Array) -> Array:
    """Return places along a line, as far apart as its stroke is wide."""
    counts = 1 + (np.abs(np.diff(corners, axis=0)).max(axis=1) / (2 * STROKE)).astype(int)
    pieces = [np.linspace(corners[i], corners[i + 1], count, endpoint=False) for i, count in enumerate(counts)]
    return np.concatenate([*pieces, corners[-1:]])


def _overlaps(some: Array, others: Array) -> Array:
    """Return the areas of the intersections of each of `some` boxes with each of `others`."""
    low = np.maximum(some[:, None, :2], others[None, :, :2])
    high = np.minimum(some[:, None, 2:], others[None, :, 2:])
    areas: Array = np.prod(np.clip(high - low, 0, None), axis=2)
    return areas


def move_apart(ax: Axes, points: Polyline, size: float, farthest: float) -> list[float]:
    """Return the x coordinates of marks, moved aside as little as possible so that they do not cover each other.

    Args:
        ax: axes with their limits and positions.
        points: data coordinates (x, y) of the marks.
        size: least distance of two marks, in points.
        farthest: most that a mark is moved, in points.
    """
    scale = 72 / style.figure_of(ax).dpi
    steps = np.arange(0, farthest + STEP, STEP)
    offsets = np.column_stack([np.column_stack([steps, -steps]).ravel(), np.zeros(2 * len(steps))])
    occupied = np.empty((0, 2))
    for place in scale * ax.transData.transform(np.reshape(points, (-1, 2))):
        places = place + offsets
        nearest = np.min(np.hypot(*(places[:, None] - occupied[None]).T).T, axis=1, initial=math.inf)
        free = np.flatnonzero(nearest >= size)
        occupied = np.vstack([occupied, places[free[0] if len(free) else int(nearest.argmax())]])
    return [float(x) for x, _ in ax.transData.inverted().transform(occupied / scale)]


ARROW_LENGTH = 9  # points
MOST_NAMED = 12  # up to this many models, points of a trade-off have names; else ranks, and names are in a legend
BLOCK = ("role", "protocol", "measure", "representation")  # columns in which the results of one block agree
# Settings that all rows of a protocol share only by chance, in contrast to its target and its cap.
SETTINGS = ("meanings", "vocab_size", "word_length", "hidden_size", "preset", "settings", "options")
PLURAL = {"sender": "senders", "receiver": "receivers", "pair": "sender and receiver"}
AXIS_NAMES = {  # by measure
    "ratio": "ratio to concat",
    "held_out": "held-out accuracy",
    "end_to_end": "end-to-end accuracy",
}
TITLES = {  # of charts of a single measure
    "ratio": "How much longer than concat each model takes to learn a grammar",
    "accuracy": "How accurate each model is on each grammar",
    "held_out": "How accurate each model is on meanings that it was not trained on",
    "end_to_end": "How well a sender and a receiver understand each other",
}
CURVES = {  # titles of curves, by measure or kind of job
    "": "How accurate each model is during training",
    "context": "How accurate each model is after more examples",
    "survival": "How much of its language each model keeps",
}
TITLE = "How well each model learns each grammar"


def curves_title(long: pd.DataFrame) -> str:
    """Return the title of the curves of the rows of a long table."""
    first = long.iloc[0]
    return next(CURVES[name] for name in (first["measure"], first["job_kind"], "") if name in CURVES)


@dataclass(frozen=True, eq=False)
class Line:
    """One row of a bias table: a model under one setting.

    Attributes:
        label: name of the model, and the settings that distinguish it from other lines.
        model: full name.
        long: its rows of the long table.
    """

    label: str
    model: str
    long: pd.DataFrame
    _cells: dict[tuple[str, str], TableCell | None] = field(default_factory=dict, repr=False)

    def cell(self, grammar: str, spread: str) -> TableCell | None:
        """Return the center and the spread on a grammar, of ratios on the log scale; None if it was not measured."""
        if (grammar, spread) not in self._cells:
            part, seeds = self.long[self.long["grammar"] == grammar], int(self.long["seed"].nunique())
            cell = cell_in_row(part, spread, "only") if len(part) else None
            lacks = cell is not None and len(part) < seeds
            self._cells[grammar, spread] = replace(cell, row_seeds=seeds) if cell is not None and lacks else cell
        return self._cells[grammar, spread]

    @cached_property
    def is_ratio(self) -> bool:
        """Whether its values are ratios."""
        return bool(self.long["measure"].iloc[0] == "ratio")

    @cached_property
    def cap(self) -> float:
        """The cap of ratios; infinite for other measures, or if it is unknown."""
        cap = self.long["cap"].iloc[0]
        return math.inf if not self.is_ratio or pd.isna(cap) else float(cap)

    def bar(self, cell: TableCell) -> tuple[float, float]:
        """Return the lengths of the error bar of a cell, down and up."""
        low, high = cell.interval(self.cap)
        return cell.center - low, high - cell.center


@dataclass(frozen=True, eq=False)
class ResultBlock:
    """Results with the same side, protocol, measure and representation, which can share an axis.

    Attributes:
        name: name that distinguishes it from other blocks; "" if it is the only block.
        measure: "accuracy", "ratio", "held_out" or "end_to_end".
        long: its rows of the long table.
        apart: settings in which it may differ from other blocks. The labels of its lines show them.
    """

    name: str
    measure: str
    long: pd.DataFrame
    apart: Sequence[str] = ()

    @cached_property
    def grammars(self) -> list[str]:
        """Grammars of the results, in the order of the papers' tables."""
        return in_order(self.long["grammar"])

    @property
    def axis(self) -> str:
        """Axis label for the values."""
        return AXIS_NAMES.get(self.measure, self.measure)

    @property
    def is_ratio(self) -> bool:
        """Whether values are ratios: small values are good, and the axis is logarithmic."""
        return self.measure == "ratio"

    @property
    def target(self) -> float | None:
        """The accuracy at which training ended, if it is the same in all rows."""
        return _number(self.long["target"].dropna())

    @property
    def chance(self) -> float | None:
        """The accuracy of a guess: 1/V of a sender's tokens, 1/K of a receiver's attributes; None if it varies."""
        kind, side = _single(self.long["job_kind"]), _single(self.long["role"])
        ends = self.long["options"].astype(str).str.contains("word_lengths=").any() if "options" in self.long else False
        if kind != "probe" or ends:
            return None
        if side == "sender":
            return _number(1 / self.long["vocab_size"].dropna())
        spaces = self.long["meanings"].dropna().unique()
        return _number(pd.Series([MeaningSpace.parse(str(s)).chance for s in spaces])) if side == "receiver" else None

    @cached_property
    def lines(self) -> list[Line]:
        """Lines of the block, one per row of the bias table."""
        return self.lines_over()

    def cells(self, spread: str, grammars: Iterable[str] | None = None) -> list[tuple[Line, TableCell]]:
        """Return the cells with results on some grammars, by default on all, with their lines."""
        names = self.grammars if grammars is None else list(grammars)
        cells = [(line, line.cell(name, spread)) for line in self.lines for name in names]
        return [(line, cell) for line, cell in cells if cell is not None and cell.seeds]

    def has_gaps(self, grammars: Iterable[str], spread: str) -> bool:
        """Whether a line was not measured on one of these grammars."""
        return any(line.cell(name, spread) is None for name in grammars for line in self.lines)

    def lines_over(self, *together: str) -> list[Line]:
        """Return the lines; rows that differ only in the columns `together` share a line."""
        apart = [name for name in ROW[1:] if name not in together]
        varying = [name for name in apart if name in self.apart or self.long[name].nunique(dropna=False) > 1]
        return lines_of(self.long, varying, sides=self.long["role"].nunique(dropna=False) > 1)


def measured(results: Results) -> pd.DataFrame:
    """Return results in long form for plots; the column `value` of pairs is their end-to-end accuracy.

    Raises:
        InvalidSettingError: no results, or an invalid value.
    """
    long = without_hashes(long_of(results))
    pairs = long["role"].eq("pair")
    if not pairs.any():
        return long
    value = long["end_to_end_accuracy"].where(pairs & ~long["failed"].astype(bool), long["value"])
    return long.assign(value=value, measure=long["measure"].mask(pairs, "end_to_end"))


def blocks(long: pd.DataFrame) -> list[ResultBlock]:
    """Split results by side, protocol, measure and representation."""
    varying = [name for name in BLOCK if long[name].nunique(dropna=False) > 1]
    if not varying:
        return [ResultBlock("", str(long["measure"].iloc[0]), long)]
    found, apart = [], [name for name in SETTINGS if long[name].nunique(dropna=False) > 1]
    for _, part in long.groupby(varying, sort=False, dropna=False):
        first = part.iloc[0]
        names = [str(first[name]) for name in varying if name != "measure" or "protocol" not in varying]
        name = ", ".join(PLURAL.get(one, one) for one in names)
        found.append(ResultBlock(name, str(first["measure"]), part, apart))
    return sorted(found, key=_place)


def lines_of(long: pd.DataFrame, varying: Sequence[str], sides: bool) -> list[Line]:
    """Split runs into the lines of a plot: one line per model and setting, with its label and its rows.

    Lines are sorted by model, then as in tables, then by label.

    Models are sorted by name, or as in `icy.analysis.order.models_in_order`.

    Args:
        long: rows of the long table, or curves.
        varying: columns that distinguish settings.
        sides: whether labels include the side of a model.
    """
    found = []
    for _, part in long.groupby(["model", *varying], sort=False, dropna=False):
        first = part.iloc[0]
        model = str(first["model"])
        words = [_word(name, first[name]) for name in varying if not pd.isna(first[name]) and first[name] != ""]
        label = ", ".join([model if sides else model.rpartition("/")[2], *words])
        usual = [place_of(name, first[name]) for name in varying if name in ORDERED]
        found.append(((place_of_model(model), usual, natural(label)), Line(label, model, part)))
    return [line for _, line in sorted(found, key=lambda one: one[0])]


def records_of(results: Results, kind: str) -> list[Record]:
    """Return the records of results, for plots that need learning curves.

    Args:
        results: results with records, not a table.
        kind: name of the plot, for the error.

    Raises:
        InvalidSettingError: `results` is a table, or is empty.
    """
    records = records_in(results)
    if records is not None:
        if not records:
            raise InvalidSettingError(NONE)
        return list(records)
    raise InvalidSettingError(
        f"The plot '{kind}' needs every evaluation of training, and a table does not have them: use the results "
        "folder, or a ProbeResult."
    )


@dataclass(frozen=True)
class Point:
    """A model of a trade-off between noise and compositional grammars.

    Attributes:
        line: the model's row of the bias table.
        noise: mean over the noise grammars and seeds; of ratios, geometric.
        compositional: mean over the compositional grammars and seeds.
        rank: 1 for the best model.
        front: whether no other model is better on one axis and at least as good on the other.
    """

    line: Line
    noise: TableCell
    compositional: TableCell
    rank: int = 0
    front: bool = False

    @property
    def place(self) -> tuple[float, float]:
        """The data coordinates of the point, (x, y)."""
        return self.noise.center, self.compositional.center

    @property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The ends of the error bars along x and along y."""
        return self.noise.interval(self.line.cap), self.compositional.interval(self.line.cap)

    @property
    def bars(self) -> list[list[tuple[float, float]]]:
        """The error bars as lines."""
        (x, y), (across, up) = self.place, self.ends
        return [[(end, y) for end in across], [(x, end) for end in up]]

    @property
    def name(self) -> str:
        """Rank and label, with a dagger if runs were cut."""
        return f"{self.rank} {self.line.label}{CUT if self.noise.censored or self.compositional.censored else ''}"


def ranked(part: ResultBlock, spread: str = "sd") -> list[Point]:
    """Return the models of a block that have results on all grammars of a trade-off, the best first."""
    easy = [g for g in COMPOSITIONAL if g in part.grammars]
    if not easy or not set(NOISE) <= set(part.grammars):
        return []
    found = [point for line in part.lines if (point := _point(line, easy, spread)) is not None]
    sign = -1 if part.is_ratio else 1  # a large ratio is slow learning

    def score(point: Point) -> float:
        x, y = point.place
        return x / max(y, LEAST_RATIO) if part.is_ratio else y - x

    def beaten(point: Point) -> bool:
        gaps = [(sign * (point.place[0] - o.place[0]), sign * (o.place[1] - point.place[1])) for o in found]
        return any(min(gap) >= 0 and max(gap) > 0 for gap in gaps)

    order = sorted(found, key=lambda point: -score(point))
    return [replace(point, rank=rank, front=not beaten(point)) for rank, point in enumerate(order, 1)]


def _point(line: Line, easy: Sequence[str], spread: str) -> Point | None:
    good = line.long[~line.long["failed"].astype(bool)]
    values = good.pivot_table(index="seed", columns="grammar", values="value").reindex(columns=[*easy, *NOISE]).dropna()
    if not len(values):
        return None
    ratio = line.long["measure"].iloc[0] == "ratio"
    cuts = good.assign(cut=good["censored"].astype(float)).pivot_table(index="seed", columns="grammar", values="cut")

    def cell(names: list[str]) -> TableCell:
        own = values[names].clip(lower=LEAST_RATIO)
        means = np.exp(np.log(own).mean(axis=1)) if ratio else values[names].mean(axis=1)
        cut = cuts.loc[values.index, names].gt(0).any(axis=1)
        rows = pd.DataFrame({"value": means, "censored": cut, "failed": False, "grammar": names[0]})
        return cell_in_row(rows.assign(measure=good["measure"].iloc[0]), spread, "only")

    return Point(line, cell(list(NOISE)), cell(list(easy)))


def front(points: Sequence[Point], part: ResultBlock) -> list[tuple[float, float]]:
    """Return the corners of the stepped line through the models on the Pareto front."""
    best = sorted((point.place for point in points if point.front), reverse=part.is_ratio)
    corners = [(after[0], before[1]) for before, after in pairwise(best)]
    return [place for both in zip_longest(best, corners) for place in both if place is not None]


def tradeoff_limits(points: Sequence[Point], ratio: bool) -> list[tuple[float, float]]:
    """Return the limits of the x axis and of the y axis of a trade-off, with room for its error bars."""
    found = []
    for along in (0, 1):
        ends = [(point.place[along], *point.ends[along]) for point in points]
        high = max(end for _, _, end in ends)
        if ratio:
            found.append((min(max(end, value / 2, LEAST_RATIO) for value, end, _ in ends) / 1.15, high * 1.15))
        else:
            low = min(end for _, end, _ in ends)
            found.append((low - 0.08 * (high - low or 1), high + 0.08 * (high - low or 1)))
    return found


def describe_tradeoff(long: pd.DataFrame, spread: str) -> tuple[str, list[str]]:
    """Return the title and the caption of a trade-off, as `describe` does for other charts."""
    setting, *notes = describe(long, spread, bars=True)[1]
    parts = blocks(long)
    ratio = [part.is_ratio for part in parts]
    by = ["the difference of the two"] * (not all(ratio)) + ["how many times longer noise takes"] * any(ratio)
    better = ["the upper left"] * (not all(ratio)) + ["the lower right (fast on them, slow on noise)"] * any(ratio)
    shown, whole = (sum(map(len, found)) for found in zip(*((ranked(p), p.lines) for p in parts), strict=True))
    easy = [g for g in COMPOSITIONAL if g in set(long["grammar"])]
    lacking = [f"not shown, for lack of some of these grammars: {whole - shown} of {counted(whole, 'row')}"]
    return "How easily each model learns compositional grammars, against noise", [
        f"better: {', for ratios '.join(better)}; dashed: models that no other model beats",
        f"compositional: mean of {', '.join(easy)}; noise: mean of {', '.join(NOISE)}; ranked by {', or '.join(by)}",
        setting,
        *(note for note in notes if not note.startswith(COARSE)),
        *lacking * (whole > shown),
    ]


def describe(long: pd.DataFrame, spread: str, bars: bool = False) -> tuple[str, list[str]]:
    """Return the title of a chart, a plain sentence, and its caption: the setting and the notes of the bias table.

    Args:
        long: results in long form.
        spread: spread of the chart.
        bars: whether the chart has error bars.
    """
    table = bias_table(long, spread, log="only")
    notes = [f"{table.title}; {seeds_note(long)}", *table.notes]
    if bars and (long["censored"].astype(bool) & long["measure"].eq("ratio") & long["cap"].notna()).any():
        notes = [f"{note}; error bars end at the cap" if note.startswith(GEOMETRIC) else note for note in notes]
    return TITLES.get(str(_single(long["measure"])), TITLE), notes


def seeds_note(long: pd.DataFrame) -> str:
    """Return the number of seeds of each mean of a chart that did not fail, such as "3 seeds" or "2 to 5 seeds"."""
    good = long[~long["failed"].astype(bool)]
    names = [name for name in dict.fromkeys((*BLOCK, *ROW, "grammar")) if name in good]
    seeds = good.groupby(names, dropna=False, sort=False)["seed"].nunique()
    least, most = (int(seeds.min()), int(seeds.max())) if len(seeds) else (0, 0)
    return counted(most, "seed") if least == most else f"{least} to {most} seeds"


def limits(cells: Iterable[tuple[Line, TableCell]], ratio: bool) -> tuple[float, float]:
    """Return axis limits that include all cells and error bars and, for ratios, 1 (the ratio of concat)."""
    found = [(cell.center, *cell.interval(line.cap)) for line, cell in cells]
    high = max([high for _, _, high in found], default=1.0)
    if ratio:
        low = min([0.9, *(max(low, center / 2, LEAST_RATIO) for center, low, _ in found)])
        return low / 1.1, max(2.0, high) * 1.35
    least = min([center for center, _, _ in found], default=0.0)
    return min(low for _, low, _ in found) - 0.05 if least < 0 else 0.0, max(1.05, high)


def value_axis(ax: Axes, along: str, part: ResultBlock, ends: tuple[float, float]) -> None:
    """Set limits and scale of the axis of values ("x" or "y"), with a line at the ratio of concat, or at chance."""
    straight, axis = (ax.axvline, ax.xaxis) if along == "x" else (ax.axhline, ax.yaxis)
    ax.set(**{f"{along}scale": "log" if part.is_ratio else "linear", f"{along}lim": ends})
    if part.is_ratio:
        straight(1, color="black", linewidth=0.8, zorder=1)
        style.ratio_axis(axis, *ends)
    elif part.chance:
        straight(part.chance, **style.CHANCE)


def mean_and_band(
    every: pd.DataFrame, spread: str, most: int | None = None, shortest: bool = True
) -> tuple[pd.DataFrame, pd.Series[float], pd.Series[float]]:
    """Return the evaluations that all runs have, and their mean and spread over runs.

    Args:
        every: values, with a row per evaluation and a column per run; NaN after the end of a run.
        spread: a name of SPREADS.
        most: maximum number of evaluations, which include the last; None for all.
        shortest: whether to leave out evaluations that only some runs have.
    """
    shared = every.dropna() if shortest else every
    step = -(-len(shared) // most) if most else 1
    shared = shared.iloc[::-1].iloc[:: max(1, step)].iloc[::-1]
    mean = shared.mean(axis=1)
    several = len(shared) and every.shape[1] > 1
    return shared, mean, shared.apply(SPREADS[spread][1], axis=1).fillna(0) if several else mean * 0


def draw_band(
    ax: Axes, every: pd.DataFrame, spread: str, look: style.Look, shortest: bool = True, **more: Any
) -> pd.DataFrame:
    """Draw the mean of values and a band of their spread; return the rows that are drawn.

    Args:
        ax: axes to draw on.
        every: values, with a row per place on the x axis and a column per run.
        spread: a name of SPREADS.
        look: color and dash of the line.
        shortest: whether the line ends with the shortest run.
        **more: passed to `Axes.plot`.
    """
    shared, mean, wide = mean_and_band(every, spread, shortest=shortest)
    ax.fill_between(shared.index, mean - wide, mean + wide, color=look.color, alpha=0.2, linewidth=0)
    ax.plot(shared.index, mean, **{"color": look.color, "linestyle": look.dash, "linewidth": style.LINE, **more})
    return shared


def draw_means(
    ax: Axes, along: str, means: Iterable[tuple[float, Line, TableCell | None]], color: str, /, **look: Any
) -> ErrorbarContainer | None:
    """Draw means with error bars; return None if there are none.

    After its error bar, a mean has an arrow if the true ratio is larger, because runs were cut, else ~ if coarse. An
    error bar that leaves the axis at its lower end has an arrow there.

    Args:
        ax: axes, with their final limits.
        along: "x" or "y", the axis of the values.
        means: for each mean, the coordinate on the other axis, and its line and cell.
        color: color of the error bars and arrows.
        **look: passed to `Axes.errorbar`.
    """
    found = [(place, line, cell) for place, line, cell in means if cell is not None and cell.seeds]
    if not found:
        return None
    upright, arrow = along == "y", {**style.ARROW, "color": color}
    places, centers = [place for place, _, _ in found], [cell.center for _, _, cell in found]
    errors = np.array([line.bar(cell) for _, line, cell in found]).T
    errors[:, ~errors.any(axis=0)] = np.nan  # a bar of no length would read as certainty
    x, y = (places, centers) if upright else (centers, places)
    drawn = ax.errorbar(x, y, **{f"{along}err": errors, "ecolor": color, "elinewidth": 0.9, **look})
    least = (ax.get_ylim() if upright else ax.get_xlim())[0]

    def put(place: float, text: str, end: float, points: float, **more: Any) -> None:
        xy, offset = ((place, end), (0, points)) if upright else ((end, place), (points, 0))
        ax.annotate(text, xy, offset, textcoords="offset points", color=color, **more)

    for place, line, cell in found:
        low, high = cell.interval(line.cap)
        if cell.censored and line.is_ratio:
            reverse = str(style.ARROW["arrowstyle"]).replace("-|>", "<|-")
            put(place, "", high, ARROW_LENGTH, arrowprops={**arrow, "arrowstyle": reverse})
        elif cell.coarse:
            ends = ("center", "bottom") if upright else ("left", "center_baseline")
            put(place, COARSE, high, 1.5, ha=ends[0], va=ends[1], fontsize=style.SMALL)
        if low < least:
            put(place, "", least, ARROW_LENGTH, arrowprops=arrow)
    return drawn


def notes_on_ends(parts: Sequence[ResultBlock], grammars: Iterable[str], spread: str) -> list[str]:
    """Return a note on error bars that leave the axis at its lower end; empty if there are none."""
    names = list(grammars)
    for part in parts:
        cells = part.cells(spread, names)
        if any(cell.interval(line.cap)[0] < limits(cells, part.is_ratio)[0] for line, cell in cells):
            return ["arrow at the end of the axis: the error bar is longer"]
    return []


def color_ends(parts: Sequence[ResultBlock], spread: str) -> tuple[float, float]:
    """Return the ends of the color scale of blocks of one measure: at most 0 and at least 1; of ratios, 1 and 2."""
    centers = [cell.center for part in parts for _, cell in part.cells(spread) if math.isfinite(cell.center)]
    low, high, least = (1.0, 2.0, LEAST_RATIO) if parts[0].is_ratio else (0.0, 1.0, -math.inf)  # a log scale is above 0
    return max(min([low, *centers]), least), max([high, *centers])


def _place(block: ResultBlock) -> SortKey:
    first = block.long.iloc[0]
    representation = place_of("representation", first["representation"])
    return str(first["role"]) != "sender", str(first["role"]), str(first["protocol"]), block.measure, representation


def _single(values: pd.Series[Any]) -> Any:
    """Return the value that all rows share; None if they differ, or there are none."""
    return values.iloc[0] if values.nunique(dropna=False) == 1 else None


def _number(values: pd.Series[Any]) -> float | None:
    found = _single(values)
    return None if found is None else float(found)


def _word(name: str, value: Any) -> str:
    """Return a setting as short text, such as "E=128"."""
    if name in LETTERS:
        return f"{LETTERS[name]}={value}"
    return value if isinstance(value, str) else f"{heading(name)} {value:g}"
