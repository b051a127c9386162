"""Accuracy on compositional grammars against accuracy on noise, with the front of the best models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from icy.analysis import style
from icy.analysis.order import COMPOSITIONAL, NOISE
from icy.analysis.table_cells import CI95, LEAST_RATIO, SPREADS, cell_in_row, checked_spread
from icy.core.errors import InvalidSettingError
from icy.core.text import counted
from icy.records.load import Results

from .labels import Polyline, place_labels
from .panels import Line, ResultBlock, blocks, measured, refuse_crowd, title_and_notes

PANEL_HEIGHT, SMALLER = 3.4, 2.6  # inches, for one panel across and for two
MOST_NAMED = 12  # up to this many models, points are labeled with names; else with ranks, and names are in a legend
WIDER = 8.5  # width of each of several panels with a legend, in inches
LISTED, LONGEST = 0.135, 32  # height of a name in the legend, in inches; names per column, if there are several panels
BETTER = "better: upper left"
MARK = 5.5  # points


@dataclass(frozen=True)
class Point:
    """A model as a point of the plot.

    Attributes:
        line: the model's row of the bias table.
        noise: mean over the noise grammars and seeds.
        compositional: mean over the compositional grammars and seeds.
        errors: lengths of the error bars of both means, down and up; 0 for a single seed.
        cut: whether any run was cut at the cap.
        rank: 1 for the best model.
        front: whether no other model is better on one axis and at least as good on the other.
    """

    line: Line
    noise: float
    compositional: float
    errors: tuple[tuple[float, float], tuple[float, float]]
    cut: bool
    rank: int = 0
    front: bool = False

    @property
    def place(self) -> tuple[float, float]:
        """The data coordinates of the point, (x, y)."""
        return self.noise, self.compositional


@style.with_own_settings
def tradeoff(
    results: Results,
    *,
    spread: str = "sd",
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw accuracy on compositional grammars against accuracy on noise, with ranks and the Pareto front of models.

    The vertical axis is the accuracy on shufdet (for receivers the mean of shuf and shufdet), the horizontal axis the
    mean over rot, pairsum and proj, both averaged per seed. The upper left is better: a model there learns
    compositional grammars and not noise. Models are ranked by the difference of the two. For ratios, both axes are
    logarithmic and inverted, so that the upper left is also better, and models are ranked by the quotient.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have separate panels.
        spread: "sd", "sem" or "ci95".
        title: title; by default the measure and its setting, "" for none.
        width: width of a new figure, in inches.
        axes: axes to draw on, one per panel; by default a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no model has all these grammars, an unknown spread, a wrong number of axes, or too many
            rows to be read.
    """
    checked_spread(spread)
    long = measured(results)
    parts, points = [], []
    for part in blocks(long):
        if found := ranked(part, spread):
            parts.append(part)
            points.append(found)
    if not parts:
        raise InvalidSettingError(_explain_no_models(long))
    width = style.width_of(width, 0) or None
    named = _has_names(points, width or style.WIDTH)
    below = style.CAPTIONED and not named and len(points) == 1 and axes is None  # names are in a legend below
    size, across = _size(points, named or below, width)
    if axes is None:
        refuse_crowd(size, parts)
    names = [part.name or "all models" for part in parts]
    figure, drawn = style.panels(names, axes, size, across)
    extent = size[0] / across, size[1] / -(-len(parts) // across)
    for ax, part, found in zip(drawn, parts, points, strict=True):
        _panel(ax, part, found, named or below, extent, several=len(parts) > 1)
        if below:
            tight = {"handlelength": 1.2, "handletextpad": 0.3, "columnspacing": 0.8}
            style.legend(figure, [ax], True, _handles(found)[1:], **tight)  # the front has a legend in the panel
    style.entitle(figure, drawn, axes is None, title, title_and_notes(long)[0], _notes(long, parts, points, spread))
    for ax, part, found in zip(drawn, parts, points, strict=True):
        names = [_name(point) if named else str(point.rank) for point in found]
        lines = [_front(found, part), *(bar for point in found for bar in _bars(point))]
        place_labels(ax, [point.place for point in found], names, lines)
    return figure


def _has_names(points: Sequence[Sequence[Point]], width: float) -> bool:
    """Return whether to write names at the points: only for few models, with enough room."""
    longest = max(style.text_size(_name(point), style.SMALL)[0] for found in points for point in found) / 72
    return max(map(len, points)) <= MOST_NAMED and longest < 0.5 * width / min(2, len(points))


def _size(points: Sequence[Sequence[Point]], named: bool, width: float | None) -> tuple[tuple[float, float], int]:
    """Return width and height of a new figure, in inches, and the number of panels side by side.

    Panels with names at their points are side by side. Panels with a legend are side by side, on a wider figure, only
    if they would otherwise be taller than a page.
    """
    listed = 0 if named else max(map(len, points))
    if len(points) == 1 or named:
        across, usual = min(2, len(points)), style.WIDTH
        panel = max(PANEL_HEIGHT if across == 1 else SMALLER, LISTED * (listed + 2))
    else:
        panel = max(PANEL_HEIGHT, LISTED * (min(listed, LONGEST) + 2))
        across = 1 if width else -(-len(points) // max(1, int(style.TALLEST / panel)))
        usual = WIDER * across
    return (width or usual, panel * -(-len(points) // across) + 0.7), across


def _explain_no_models(long: pd.DataFrame) -> str:
    present = set(long["grammar"])
    missing = [g for g in (*NOISE, "shufdet") if g not in present]
    options = " ".join(f"-g {g}" for g in missing) or "-g all"
    reason = (
        f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        if missing
        else ("no model has all of them")
    )
    return (
        f"The plot 'tradeoff' needs results on {', '.join(NOISE)} and on shufdet (or shuf), but {reason}: probe the "
        f"same models with {options}."
    )


# -- points ------------------------------------------------------------------------------------------------------------


def ranked(part: ResultBlock, spread: str = "sd") -> list[Point]:
    """Return the models of a block that have results on all grammars of the plot, the best first."""
    easy = [g for g in COMPOSITIONAL if g in part.grammars]
    if not easy:
        return []
    found = [point for line in part.lines if (point := _point(line, easy, spread)) is not None]
    order = sorted(found, key=lambda point: -_score(point, part))
    return [
        Point(p.line, p.noise, p.compositional, p.errors, p.cut, rank, not any(_beats(o, p, part) for o in found))
        for rank, p in enumerate(order, 1)
    ]


def _point(line: Line, easy: Sequence[str], spread: str) -> Point | None:
    good = line.long[~line.long["failed"].astype(bool)]
    values = good.pivot_table(index="seed", columns="grammar", values="value")
    if not {*easy, *NOISE} <= set(values):
        return None
    values = values.dropna(subset=[*easy, *NOISE])
    if not len(values):
        return None
    cuts = good.assign(cut=good["censored"].astype(float)).pivot_table(index="seed", columns="grammar", values="cut")
    noise, both = (
        cell_in_row(
            pd.DataFrame(
                {"value": values[names].mean(axis=1), "censored": cuts.loc[values.index, names].gt(0).any(axis=1)}
            ).assign(failed=False, measure=good["measure"].iloc[0], grammar=names[0]),
            spread,
            log=False,
        )
        for names in (list(NOISE), list(easy))
    )
    cut = bool(good.loc[good["grammar"].isin([*easy, *NOISE]), "censored"].any())
    return Point(line, noise.center, both.center, (line.bar(noise), line.bar(both)), cut)


def _score(point: Point, part: ResultBlock) -> float:
    """Return the score by which models are ranked; larger is better."""
    return point.noise / max(point.compositional, LEAST_RATIO) if part.is_ratio else point.compositional - point.noise


def _beats(one: Point, other: Point, part: ResultBlock) -> bool:
    """Return whether one model is at least as good as another on both axes, and better on one."""
    sign = -1 if part.is_ratio else 1  # a large ratio is slow learning
    ahead = sign * (one.compositional - other.compositional), sign * (other.noise - one.noise)
    return min(ahead) >= 0 and max(ahead) > 0


def _front(points: Sequence[Point], part: ResultBlock) -> Polyline:
    """Return the corners of the stepped line through the models on the Pareto front."""
    best = sorted((point.place for point in points if point.front), reverse=part.is_ratio)
    corners = [(after[0], before[1]) for before, after in pairwise(best)]
    return [place for both in zip_longest(best, corners) for place in both if place is not None]


def _bars(point: Point) -> list[Polyline]:
    """Return the error bars of a model."""
    (x, y), ((left, right), (down, up)) = point.place, point.errors
    return [[(x - left, y), (x + right, y)], [(x, y - down), (x, y + up)]]


# -- drawing -----------------------------------------------------------------------------------------------------------


def _panel(
    ax: Axes, part: ResultBlock, points: Sequence[Point], named: bool, extent: tuple[float, float], several: bool
) -> None:
    """Draw one panel of `extent` inches, alone or as one of several; names are in the legend unless `named`."""
    looks = style.model_looks([point.line.model for point in points])
    for point in points:
        look = looks[point.line.model]
        for bar in _bars(point):
            ax.plot(*zip(*bar, strict=True), color="#d0d0d0", linewidth=0.8, zorder=1)
        ax.plot(*point.place, look.marker, markersize=MARK, markerfacecolor=look.face, markeredgecolor=look.color,
                markeredgewidth=1.0, zorder=3)  # fmt: skip
    if part.is_ratio:
        _invert(ax, points)
    ax.margins(0.08)
    ax.plot(*zip(*_front(points, part), strict=True), color="black", linewidth=0.8, linestyle="--", zorder=2)
    style.tidy(ax, grid="both")
    easy = [g for g in COMPOSITIONAL if g in part.grammars]
    on = easy[0] if len(easy) == 1 else f"mean of {', '.join(easy)}"
    ax.set_xlabel(style.wrapped(f"{part.axis} on noise", 0.6 * extent[0], style.MEDIUM))
    ax.set_ylabel(style.wrapped(f"{part.axis} on {on}", 0.75 * extent[1], style.MEDIUM))
    style.name_block(ax, style.wrapped(part.name, 0.7 * extent[0], style.MEDIUM))
    if not several:  # several panels may have no room, so a note says it
        ax.set_title(BETTER, loc="right", fontsize=style.MEDIUM)
    _legend(ax, [] if named else points, columns=-(-len(points) // LONGEST) if several else 1)


def _invert(ax: Axes, points: Iterable[Point]) -> None:
    """Make both axes logarithmic and inverted, so that small ratios are to the right and up."""
    for place, axis in enumerate((ax.xaxis, ax.yaxis)):
        found = [(point.place[place], *point.errors[place]) for point in points]
        low = min(max(value - down, value / 2, LEAST_RATIO) for value, down, _ in found) / 1.15
        high = max(value + up for value, _, up in found) * 1.15
        (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log")
        (ax.set_xlim if axis is ax.xaxis else ax.set_ylim)(high, low)
        style.ratio_axis(axis, low, high)


def _legend(ax: Axes, points: Sequence[Point], columns: int) -> None:
    """Draw a legend with the front and, by rank, the names of `points`."""
    if not points:
        ax.legend(handles=_handles([]), fontsize=style.SMALL, frameon=False, loc="lower right")
        return
    ax.legend(handles=_handles(points), fontsize=style.SMALL, frameon=False, loc="center left",
              bbox_to_anchor=(1.01, 0.5), borderaxespad=0, labelspacing=0.25, handletextpad=0.3, ncols=columns,
              columnspacing=0.8)  # fmt: skip


def _handles(points: Sequence[Point]) -> list[Line2D]:
    """Return the entries of a legend: the front, and the models with their marks."""
    looks = style.model_looks([point.line.model for point in points])
    front = Line2D([], [], color="black", linewidth=0.8, linestyle="--", label="front")
    return [front, *(looks[point.line.model].handle(_name(point), MARK - 1, line=False) for point in points)]


def _name(point: Point) -> str:
    return f"{point.rank} {point.line.label}{'†' if point.cut else ''}"


def _notes(
    long: pd.DataFrame, parts: Sequence[ResultBlock], points: Sequence[Sequence[Point]], spread: str
) -> list[str]:
    ratio = any(part.is_ratio for part in parts)
    by = "how many times longer noise takes" if ratio else "the difference of the two"
    if ratio and not all(part.is_ratio for part in parts):
        by = "the difference of the two, and of ratios by their quotient"
    of_ratios = ", of ratios on the log scale" if ratio and spread == CI95 else ""
    several = f"; bars: {SPREADS[spread][0]}{of_ratios}" if long["seed"].nunique() > 1 else ""
    notes = [f"noise: mean of {', '.join(NOISE)}; ranked by {by}{several}"]
    notes += [BETTER] if len(parts) > 1 else []
    if any(point.cut for found in points for point in found):
        notes.append("† of some runs that were cut at the cap: the true mean is larger")
    shown = sum(map(len, points))
    lacking = sum(len(part.lines) for part in blocks(long)) - shown
    if lacking:
        whole = counted(lacking + shown, "row")
        notes.append(f"not shown, for lack of some of these grammars: {lacking} of {whole}")
    return notes
