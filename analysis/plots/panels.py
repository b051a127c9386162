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
    from matplotlib.text import Annotation

# -- labels of points, placed so that they do not overlap --------------------------------------------------------------


DIRECTIONS = ((1, 0), (-1, 0), (-1, 1), (0, 1), (1, 1), (0, -1), (1, -1), (-1, -1))  # in order of preference
DISTANCES = (4.5, 9.0, 15.0, 23.0, 33.0, 45.0, 60.0)  # points
LEADER = 12.0  # points; labels at a larger distance have a line to their point
MARK, STROKE = 3.5, 1.0  # half the width of a mark and of a line, in points
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
    their limits and everything else is drawn.

    Args:
        ax: axes of the points.
        points: data coordinates (x, y) of the points.
        texts: one text per point.
        lines: drawn lines to avoid.
        size: size of the letters, in points; by default `style.SMALL`.
    """
    size = size or style.SMALL
    figure = style.figure_of(ax)
    figure.draw_without_rendering()  # fixes the position of the axes
    scale = 72 / figure.dpi
    where = scale * ax.transData.transform(points)
    strokes = [_along(scale * ax.transData.transform(line)) for line in lines]
    occupied = np.concatenate([_around(where, MARK), *strokes])
    weights = np.concatenate([np.full(len(where), COVERED), np.full(len(occupied) - len(where), CROSSED)])
    written = []
    for place, point, text in zip(where, points, texts, strict=True):
        boxes = _boxes(place, style.text_size(text, size))
        best = int(np.argmin(_costs(boxes, occupied, weights, scale * np.array(ax.bbox.extents))))
        occupied, weights = np.concatenate([occupied, boxes[best : best + 1]]), np.append(weights, COVERED)
        written.append(_write(ax, point, text, OFFSETS[best], size))
    return written


def _around(places: Array, half: float) -> Array:
    return np.concatenate([places - half, places + half], axis=1)


def _along(corners: Array) -> Array:
    """Return small boxes along a line, which stand for the line in the costs."""
    counts = 1 + (np.abs(np.diff(corners, axis=0)).max(axis=1) / (2 * STROKE)).astype(int)
    pieces = [np.linspace(corners[i], corners[i + 1], count, endpoint=False) for i, count in enumerate(counts)]
    return _around(np.concatenate([*pieces, corners[-1:]]), STROKE)


def _boxes(place: Array, extent: tuple[float, float]) -> Array:
    """Return the box of a text, of the size `extent`, at each of OFFSETS, with a margin."""
    nearest = place + OFFSETS
    lowest = nearest - np.array(extent) * (1 - np.sign(OFFSETS)) / 2
    return np.concatenate([lowest - 1, lowest + np.array(extent) + 1], axis=1)


def _costs(boxes: Array, occupied: Array, weights: Array, frame: Array) -> Array:
    """Return the cost of each box: its overlap with marks and lines, its area outside the frame, and its distance."""
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    outside = area - _overlaps(boxes, frame.reshape(1, 4))[:, 0]
    costs: Array = _overlaps(boxes, occupied) @ weights + COVERED * outside + np.hypot(*OFFSETS.T)
    return costs


def _overlaps(some: Array, others: Array) -> Array:
    """Return the areas of the intersections of each of `some` boxes with each of `others`."""
    low = np.maximum(some[:, None, :2], others[None, :, :2])
    high = np.minimum(some[:, None, 2:], others[None, :, 2:])
    areas: Array = np.prod(np.clip(high - low, 0, None), axis=2)
    return areas


def _write(ax: Axes, point: tuple[float, float], text: str, offset: Array, size: float) -> Annotation:
    across, up = map(float, offset)
    line = {"arrowstyle": "-", "color": style.DIM, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2}
    return ax.annotate(
        text,
        point,
        (across, up),
        textcoords="offset points",
        ha="left" if across > 0 else "right" if across < 0 else "center",
        va="bottom" if up > 0 else "top" if up < 0 else "center",
        fontsize=size,
        arrowprops=line if np.hypot(across, up) > LEADER else None,
        annotation_clip=False,
        parse_math=False,
    )


ARROW_LENGTH = 9  # points
LARGEST = 25.0  # largest width or height of a readable figure, in inches; two and a half pages
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
CURVES = {"": "How accurate each model is during training", "survival": "How much of its language each model keeps"}
TITLE = "How well each model learns each grammar"


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
            part = self.long[self.long["grammar"] == grammar]
            self._cells[grammar, spread] = cell_in_row(part, spread, "only") if len(part) else None
        return self._cells[grammar, spread]

    @property
    def cap(self) -> float:
        """The cap of ratios; infinite for other measures, or if it is unknown."""
        first = self.long.iloc[0]
        return math.inf if first["measure"] != "ratio" or pd.isna(first["cap"]) else float(first["cap"])

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
        differing = {name: str(first[name]) for name in varying if name != "measure" or "protocol" not in varying}
        if "role" in differing:
            differing["role"] = PLURAL.get(differing["role"], differing["role"])
        name = ", ".join(differing.values())
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


def refuse_crowd(size: Iterable[float], parts: Sequence[ResultBlock]) -> None:
    """Raise an error if a new figure would be too large to read.

    Args:
        size: width and height of the figure, in inches.
        parts: blocks that the figure would show.

    Raises:
        InvalidSettingError: the width or the height is larger than LARGEST.
    """
    width, height = size
    if max(width, height) <= LARGEST:
        return
    rows, long = sum(len(part.lines) for part in parts), pd.concat([part.long for part in parts])
    varying = [name for name in ("protocol", *ROW[1:]) if long[name].nunique(dropna=True) > 1]
    example = f", as in --where {varying[0]}={long[varying[0]].dropna().iloc[0]}" if varying else ""
    raise InvalidSettingError(
        f"These results have {counted(rows, 'row')} in {counted(len(parts), 'panel')}. Their plot would be "
        f"{width:.0f} by {height:.0f} inches, too large to read: choose some with --model, --grammar or "
        f"--where{example}."
    )


def limits(lines: Iterable[Line], grammars: Iterable[str], spread: str, ratio: bool) -> tuple[float, float]:
    """Return axis limits that include all lines and error bars and, for ratios, 1 (the ratio of concat)."""
    names = list(grammars)
    cells = [(line, line.cell(grammar, spread)) for line in lines for grammar in names]
    found = [(cell.center, *line.bar(cell)) for line, cell in cells if cell is not None and cell.seeds]
    high = max([mean + up for mean, _, up in found], default=1.0)
    if not ratio:
        lowest = min([mean for mean, _, _ in found], default=0.0)
        return (min(mean - down for mean, down, _ in found) - 0.05 if lowest < 0 else 0.0), max(1.05, high)
    low = min([0.9, *(max(mean - down, mean / 2, LEAST_RATIO) for mean, down, _ in found)])
    return low / 1.1, max(2.0, high) * 1.35


def mean_and_band(
    every: pd.DataFrame, spread: str, most: int | None = None
) -> tuple[pd.DataFrame, pd.Series[float], pd.Series[float]]:
    """Return the evaluations that all runs have, and their mean and spread over runs.

    Args:
        every: values, with a row per evaluation and a column per run; NaN after the end of a run.
        spread: a name of SPREADS.
        most: maximum number of evaluations, which include the last; None for all.
    """
    shared = every.dropna()
    step = -(-len(shared) // most) if most else 1
    shared = shared.iloc[::-1].iloc[:: max(1, step)].iloc[::-1]
    mean = shared.mean(axis=1)
    return shared, mean, shared.apply(SPREADS[spread][1], axis=1) if len(shared) and every.shape[1] > 1 else mean * 0


def mark_mean(ax: Axes, along: str, place: float, line: Line, cell: TableCell, color: str) -> None:
    """Mark a mean after its error bar: an arrow if the true ratio is larger, because runs were cut, else ~ if coarse.

    An error bar that leaves the axis at its lower end has an arrow there.

    Args:
        ax: axes, with their final limits.
        along: "x" or "y", the axis of the values.
        place: coordinate on the other axis.
        line: the line of the mean.
        cell: the mean and its error.
        color: color of the marks.
    """
    low, high = cell.interval(line.cap)
    least, upright = (ax.get_xlim() if along == "x" else ax.get_ylim())[0], along == "y"

    def put(text: str, end: float, points: float, **more: Any) -> None:
        xy, offset = ((place, end), (0, points)) if upright else ((end, place), (points, 0))
        ax.annotate(text, xy, offset, textcoords="offset points", color=color, **more)

    arrow = {**style.ARROW, "color": color}
    if cell.censored and line.long["measure"].iloc[0] == "ratio":
        reverse = str(style.ARROW["arrowstyle"]).replace("-|>", "<|-")
        put("", high, ARROW_LENGTH, arrowprops={**arrow, "arrowstyle": reverse})
    elif cell.coarse:
        ends = ("center", "bottom") if upright else ("left", "center_baseline")
        put(COARSE, high, 1.5, ha=ends[0], va=ends[1], fontsize=style.SMALL)
    if low < least:
        put("", least, ARROW_LENGTH, arrowprops=arrow)


def notes_on_ends(parts: Sequence[ResultBlock], grammars: Iterable[str], spread: str) -> list[str]:
    """Return a note on error bars that leave the axis at its lower end; empty if there are none."""
    names = list(grammars)
    for part in parts:
        found = [(line, cell) for line in part.lines for g in names if (cell := line.cell(g, spread)) and cell.seeds]
        least = limits(part.lines, names, spread, part.is_ratio)[0]
        if any(cell.interval(line.cap)[0] < least for line, cell in found):
            return ["arrow at the end of the axis: the error bar is longer"]
    return []


def color_ends(parts: Sequence[ResultBlock], spread: str) -> tuple[float, float]:
    """Return the ends of the color scale of blocks of one measure: at most 0 and at least 1; of ratios, 1 and 2."""
    cells = [line.cell(grammar, spread) for part in parts for line in part.lines for grammar in part.grammars]
    centers = [cell.center for cell in cells if cell is not None and math.isfinite(cell.center)]
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
