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
from icy.analysis.cells import LEAST_RATIO, SPREADS, checked_spread
from icy.core.errors import InvalidSettingError
from icy.records.load import Results

from .labels import Polyline, place_labels
from .panels import Block, Line, blocks, measured, title_and_notes

# Grammars that an architecture with a bias towards composition learns well, and badly (arrows of Perkins21's tables 9
# to 11).
COMPOSITIONAL = ("shuf", "shufdet")
NOISE = ("rot", "pairsum", "proj")
PANEL_HEIGHT, SMALLER = 3.4, 2.6  # inches, for one panel across and for two
NAMED = 12  # most models with names at their points; more have ranks there, and their names in a legend
LISTED = 0.135  # inches, of one name in the legend
MARK = 5.5  # points


@dataclass(frozen=True)
class Point:
    """A model in the plane.

    Attributes:
        line: its row.
        noise: mean over the noise grammars and seeds.
        compositional: mean over the compositional grammars and seeds.
        errors: spreads of both over seeds; 0 for a single seed.
        cut: whether any run was cut at the cap.
        rank: 1 for the best.
        front: whether no other model is better in one of the two and at least as good in the other.
    """

    line: Line
    noise: float
    compositional: float
    errors: tuple[float, float]
    cut: bool
    rank: int = 0
    front: bool = False

    @property
    def place(self) -> tuple[float, float]:
        """Its data coordinates."""
        return self.noise, self.compositional


def tradeoff(
    results: Results,
    *,
    spread: str = "sd",
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw models by accuracy on compositional grammars and on noise, ranked, with the front of the best.

    The vertical axis is the accuracy on shufdet (for receivers the mean of shuf and shufdet), the horizontal axis the
    mean over rot, pairsum and proj, both averaged per seed. The upper left is better: a model there learns
    compositional grammars and not noise. Models are ranked by the difference of the two. For ratios both axes are
    logarithmic and inverted, so that the upper left is better again, and models are ranked by the quotient.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have a panel each.
        spread: "sd", "sem" or "ci95".
        title: by default what was measured; "" for none.
        width: of a new figure, in inches.
        axes: to draw on, one per panel; by default those of a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no model has all these grammars, another spread, or a wrong number of axes.
    """
    checked_spread(spread)
    long = measured(results)
    parts, points = [], []
    for part in blocks(long):
        if found := ranked(part, spread):
            parts.append(part)
            points.append(found)
    if not parts:
        raise InvalidSettingError(_nothing(long))
    across = 1 if len(parts) == 1 or max(map(len, points)) > NAMED else 2
    listed = max((len(found) for found in points if len(found) > NAMED), default=0)
    panel = max(PANEL_HEIGHT if across == 1 else SMALLER, LISTED * (listed + 2))
    height = panel * -(-len(parts) // across) + 0.7
    names = [part.name or "all models" for part in parts]
    figure, drawn = style.panels(names, axes, (width or style.WIDTH, height), across)
    for ax, part, found in zip(drawn, parts, points, strict=True):
        _panel(ax, part, found)
    style.entitle(figure, drawn, axes is None, title, title_and_notes(long)[0], _notes(long, parts, points, spread))
    for ax, part, found in zip(drawn, parts, points, strict=True):
        names = [_name(point) if len(found) <= NAMED else str(point.rank) for point in found]
        lines = [_front(found, part), *(bar for point in found for bar in _bars(point))]
        place_labels(ax, [point.place for point in found], names, lines)
    return figure


def _nothing(long: pd.DataFrame) -> str:
    there = set(long["grammar"])
    missing = [g for g in (*NOISE, "shufdet") if g not in there]
    asked = " ".join(f"-g {g}" for g in missing) or "-g all"
    what = f"there is no {' and no '.join(missing)}" if missing else "no model has all of them"
    return (
        f"The plot 'tradeoff' needs results on {', '.join(NOISE)} and on shufdet (or shuf), and {what} here: probe the "
        f"same models with {asked}."
    )


# -- points ------------------------------------------------------------------------------------------------------------


def ranked(part: Block, spread: str = "sd") -> list[Point]:
    """Return the models of a block that were measured on all these grammars, the best first."""
    wanted = [g for g in COMPOSITIONAL if g in part.grammars]
    if not wanted:
        return []
    found = [point for line in part.lines if (point := _point(line, wanted, spread)) is not None]
    order = sorted(found, key=lambda point: -_score(point, part))
    return [
        Point(p.line, p.noise, p.compositional, p.errors, p.cut, rank, not any(_beats(o, p, part) for o in found))
        for rank, p in enumerate(order, 1)
    ]


def _point(line: Line, wanted: Sequence[str], spread: str) -> Point | None:
    good = line.long[~line.long["failed"].astype(bool)]
    values = good.pivot_table(index="seed", columns="grammar", values="value")
    if not {*wanted, *NOISE} <= set(values):
        return None
    values = values.dropna(subset=[*wanted, *NOISE])
    if not len(values):
        return None
    both = [values[list(names)].mean(axis=1) for names in (NOISE, wanted)]
    errors = [SPREADS[spread][1](per_seed) if len(values) > 1 else 0.0 for per_seed in both]
    cut = bool(good.loc[good["grammar"].isin([*wanted, *NOISE]), "cut"].any())
    return Point(line, float(both[0].mean()), float(both[1].mean()), (errors[0], errors[1]), cut)


def _score(point: Point, part: Block) -> float:
    """Return the score that models are ranked by; more is better."""
    return point.noise / max(point.compositional, LEAST_RATIO) if part.is_ratio else point.compositional - point.noise


def _beats(one: Point, other: Point, part: Block) -> bool:
    """Return whether one model is at least as good as another on both axes, and better on one."""
    sign = -1 if part.is_ratio else 1  # a large ratio is slow learning
    ahead = sign * (one.compositional - other.compositional), sign * (other.noise - one.noise)
    return min(ahead) >= 0 and max(ahead) > 0


def _front(points: Sequence[Point], part: Block) -> Polyline:
    """Return the corners of the stepped line through the models that no other beats."""
    best = sorted((point.place for point in points if point.front), reverse=part.is_ratio)
    corners = [(after[0], before[1]) for before, after in pairwise(best)]
    return [place for both in zip_longest(best, corners) for place in both if place is not None]


def _bars(point: Point) -> list[Polyline]:
    """Return the error bars of a model, kept above 0 for logarithmic axes."""
    (x, y), (across, up) = point.place, point.errors
    return [
        [(x - min(across, 0.9 * x), y), (x + across, y)],
        [(x, y - min(up, 0.9 * y)), (x, y + up)],
    ]


# -- drawing -----------------------------------------------------------------------------------------------------------


def _panel(ax: Axes, part: Block, points: Sequence[Point]) -> None:
    looks = style.model_looks([point.line.model for point in points])
    for point in points:
        look = looks[point.line.model]
        for bar in _bars(point):
            ax.plot(*zip(*bar, strict=True), color="#c0c0c0", linewidth=0.8, zorder=1)
        ax.plot(*point.place, look.marker, markersize=MARK, markerfacecolor=look.face, markeredgecolor=look.colour,
                markeredgewidth=1.0, zorder=3)  # fmt: skip
    if part.is_ratio:
        _invert(ax, points)
    ax.margins(0.08)
    ax.plot(*zip(*_front(points, part), strict=True), color="black", linewidth=0.8, linestyle="--", zorder=2)
    style.tidy(ax, grid="both")
    ax.set_xlabel(f"{_axis(part)} on noise: mean of {', '.join(NOISE)}")
    wanted = [g for g in COMPOSITIONAL if g in part.grammars]
    ax.set_ylabel(f"{_axis(part)} on {wanted[0] if len(wanted) == 1 else 'mean of ' + ', '.join(wanted)}")
    if part.name:
        ax.set_title(part.name, loc="left", fontsize=style.MEDIUM, fontweight="bold")
    ax.set_title("better: upper left", loc="right", fontsize=style.MEDIUM)
    _legend(ax, points, looks)


def _axis(part: Block) -> str:
    return "steps as a ratio to concat's," if part.is_ratio else part.axis


def _invert(ax: Axes, points: Iterable[Point]) -> None:
    """Make both axes logarithmic and inverted, so that small ratios are to the right and up."""
    for axis, values, errors in (
        (ax.xaxis, [p.noise for p in points], [p.errors[0] for p in points]),
        (ax.yaxis, [p.compositional for p in points], [p.errors[1] for p in points]),
    ):
        low = min(max(v - e, v / 2, LEAST_RATIO) for v, e in zip(values, errors, strict=True)) / 1.15
        high = max(v + e for v, e in zip(values, errors, strict=True)) * 1.15
        (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log")
        (ax.set_xlim if axis is ax.xaxis else ax.set_ylim)(high, low)
        style.ratio_axis(axis, low, high)


def _legend(ax: Axes, points: Sequence[Point], looks: dict[str, style.Look]) -> None:
    """Draw a legend with the front and, for many models, their names by rank."""
    handles = [Line2D([], [], color="black", linewidth=0.8, linestyle="--", label="front")]
    if len(points) <= NAMED:
        ax.legend(handles=handles, fontsize=style.SMALL, frameon=False, loc="lower right")
        return
    for point in points:
        look = looks[point.line.model]
        mark = {"markerfacecolor": look.face, "markeredgecolor": look.colour, "markersize": MARK - 1}
        handles.append(Line2D([], [], linestyle="", marker=look.marker, label=_name(point), **mark))  # type: ignore[arg-type]
    ax.legend(handles=handles, fontsize=style.SMALL, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5),
              borderaxespad=0, labelspacing=0.25, handletextpad=0.3)  # fmt: skip


def _name(point: Point) -> str:
    return f"{point.rank} {point.line.label}{'†' if point.cut else ''}"


def _notes(long: pd.DataFrame, parts: Sequence[Block], points: Sequence[Sequence[Point]], spread: str) -> list[str]:
    ratio = any(part.is_ratio for part in parts)
    by = "how many times longer noise takes" if ratio else "the difference of the two"
    if ratio and not all(part.is_ratio for part in parts):
        by = "the difference of the two, and of ratios by their quotient"
    several = f"; bars: {SPREADS[spread][0]}" if long["seed"].nunique() > 1 else ""
    notes = [f"ranked by {by}{several}"]
    if any(point.cut for found in points for point in found):
        notes.append("† of some runs that were cut at the cap: the true mean is larger")
    shown = sum(map(len, points))
    lacking = sum(len(part.lines) for part in blocks(long)) - shown
    if lacking:
        notes.append(f"{lacking} of {lacking + shown} rows lack some of these grammars and are not shown")
    return notes
