"""Points per model: compositional grammars against noise, with the front of the best, and results by parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from icy.analysis import style
from icy.analysis.order import COMPOSITIONAL, NOISE, place_of_model
from icy.analysis.table_cells import CUT, LEAST_RATIO, TableCell, cell_in_row, checked_spread
from icy.analysis.tables.bias import parameter_counts
from icy.config.protocols import BASELINE
from icy.core.errors import InvalidSettingError
from icy.records.load import Results
from icy.records.long_table import ROW

from .panels import (
    MOST_NAMED,
    Line,
    Point,
    ResultBlock,
    blocks,
    describe,
    describe_tradeoff,
    front,
    limits,
    mark_mean,
    measured,
    place_labels,
    ranked,
    refuse_crowd,
)

# -- compositional grammars against noise grammars, with the front of the best models ----------------------------------


ALONE, SMALLER = 3.4, 2.6  # inches, for one panel across and for two
WIDER = 8.5  # width of each of several panels with a legend, in inches
LISTED, LONGEST = 0.135, 32  # height of a name in the legend, in inches; names per column, if there are several panels
DOT = 5.5  # points


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
    compositional grammars and not noise. Models are ranked by the difference of the two. For ratios, axes are
    logarithmic, means are geometric, and models are ranked by the quotient. As a small ratio is fast learning, the
    lower right is better.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have separate panels.
        spread: "sd", "sem" or "ci95".
        title: title; by default a sentence on the measure, "" for none.
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
    # Names are at the points only for few models, with enough room.
    longest = max(style.text_size(point.name, style.SMALL)[0] for found in points for point in found) / 72
    few = max(map(len, points)) <= MOST_NAMED
    named = few and longest < 0.5 * (width or style.WIDTH) / min(2, len(points))
    below = style.CAPTIONED and not named and len(points) == 1 and axes is None  # names are in a legend below
    size, across = _size(points, named or below, width)
    if axes is None:
        refuse_crowd(size, parts)
    names = [part.name or "all models" for part in parts]
    figure, drawn = style.panels(names, axes, size, across)
    extent = size[0] / across, size[1] / -(-len(parts) // across)
    for ax, part, found in zip(drawn, parts, points, strict=True):
        _tradeoff_panel(ax, part, found, named or below, extent, several=len(parts) > 1)
        if below:
            tight = {"handlelength": 1.2, "handletextpad": 0.3, "columnspacing": 0.8}
            style.legend(figure, [ax], True, _ranked_handles(found), **tight)
    style.entitle(figure, drawn, axes is None, title, *describe_tradeoff(long, spread))
    for ax, part, found in zip(drawn, parts, points, strict=True):
        names = [point.name if named else str(point.rank) for point in found]
        lines = [front(found, part), *(bar for point in found for bar in point.bars)]
        place_labels(ax, [point.place for point in found], names, lines)
    return figure


def _size(points: Sequence[Sequence[Point]], named: bool, width: float | None) -> tuple[tuple[float, float], int]:
    """Return width and height of a new figure, in inches, and the number of panels side by side.

    Panels with names at their points are side by side. Panels with a legend are side by side, on a wider figure, only
    if they would otherwise be taller than a page.
    """
    listed = 0 if named else max(map(len, points))
    if len(points) == 1 or named:
        across, usual = min(2, len(points)), style.WIDTH
        panel = max(ALONE if across == 1 else SMALLER, LISTED * (listed + 2))
    else:
        panel = max(ALONE, LISTED * (min(listed, LONGEST) + 2))
        across = 1 if width else -(-len(points) // max(1, int(style.TALLEST / panel)))
        usual = WIDER * across
    return (width or usual, panel * -(-len(points) // across) + 0.5), across


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


# -- drawing -----------------------------------------------------------------------------------------------------------


def _tradeoff_panel(
    ax: Axes, part: ResultBlock, points: Sequence[Point], named: bool, extent: tuple[float, float], several: bool
) -> None:
    """Draw one panel of `extent` inches, alone or as one of several; names are in the legend unless `named`."""
    looks = style.model_looks([point.line.model for point in points])
    for point in points:
        look = looks[point.line.model]
        for bar in point.bars:
            ax.plot(*zip(*bar, strict=True), color="#d0d0d0", linewidth=0.8, zorder=1)
        ax.plot(*point.place, look.marker, markersize=DOT, markerfacecolor=look.face, markeredgecolor=look.color,
                markeredgewidth=1.0, zorder=3)  # fmt: skip
    if part.is_ratio:
        _log_axes(ax, points)
    ax.margins(0.08)
    ax.plot(*zip(*front(points, part), strict=True), color="black", linewidth=0.8, linestyle="--", zorder=2)
    style.tidy(ax, grid="both")
    easy = [g for g in COMPOSITIONAL if g in part.grammars]
    on = easy[0] if len(easy) == 1 else f"mean of {', '.join(easy)}"
    ax.set_xlabel(style.wrapped(f"{part.axis} on noise", 0.6 * extent[0], style.MEDIUM))
    ax.set_ylabel(style.wrapped(f"{part.axis} on {on}", 0.55 * extent[1], style.MEDIUM))
    style.name_block(ax, style.wrapped(part.name, 0.7 * extent[0], style.MEDIUM))
    if not named:
        columns = -(-len(points) // LONGEST) if several else 1
        ax.legend(handles=_ranked_handles(points), fontsize=style.SMALL, frameon=False, loc="center left",
                  bbox_to_anchor=(1.01, 0.5), borderaxespad=0, labelspacing=0.25, handletextpad=0.3, ncols=columns,
                  columnspacing=0.8)  # fmt: skip


def _log_axes(ax: Axes, points: Iterable[Point]) -> None:
    """Make both axes logarithmic."""
    for place, axis in enumerate((ax.xaxis, ax.yaxis)):
        ends = [(point.place[place], *point.ends[place]) for point in points]
        low = min(max(end, value / 2, LEAST_RATIO) for value, end, _ in ends) / 1.15
        high = max(end for _, _, end in ends) * 1.15
        (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log")
        (ax.set_xlim if axis is ax.xaxis else ax.set_ylim)(low, high)
        style.ratio_axis(axis, low, high)


def _ranked_handles(points: Sequence[Point]) -> list[Line2D]:
    """Return the entries of a legend: the models, by rank, with their marks."""
    looks = style.model_looks([point.line.model for point in points])
    return [looks[point.line.model].handle(point.name, DOT - 1, line=False) for point in points]


# -- results against the number of parameters --------------------------------------------------------------------------


PANEL_HEIGHT, LARGE_PANEL = 1.55, 2.1  # inches, for few models and for many
MARK = 4.0  # points
FARTHEST, STEP = 10.0, 0.5  # most that a mark is moved aside, and the step, in points
Sized = tuple[int, TableCell]  # number of parameters, and the result


@style.with_own_settings
def parameters(
    results: Results,
    *,
    spread: str = "sd",
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw results against the number of parameters: a panel per grammar, a line per model through its hidden sizes.

    With more than seven models, colors show families, mark shapes show cells, and hollow marks show two layers. Panels
    are then larger, each with its own limits, and marks that would cover each other are moved aside. An arrow upward
    marks a mean ratio over runs if some were cut at the cap.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have separate panels.
        spread: "sd", "sem" or "ci95".
        title: title; by default a sentence on the measure, "" for none.
        width: width of a new figure, in inches.
        axes: axes to draw on, one per panel; by default a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no model has parameters, a model has several settings, an unknown spread, or a wrong
            number of axes.
    """
    checked_spread(spread)
    every = measured(results)
    every = every.assign(size=parameter_counts(every))
    long = every[every["size"].fillna(0) > 0]
    if not len(long):
        models = ", ".join(map(str, every["model"].unique()[:5]))
        raise InvalidSettingError(
            f"None of these models has parameters ({models}); `icy plot heat` and `icy plot bars` draw them."
        )
    shown = [(part, g) for part in blocks(long) for g in part.grammars if not (part.is_ratio and g == BASELINE)]
    if not shown:
        raise InvalidSettingError("These ratios are only of concat, so all are 1; add results of other grammars.")
    _refuse_settings([part for part, _ in shown])
    width = width or style.WIDTH
    looks = style.model_looks(map(str, long["model"].unique()))
    crowd = len(looks) > style.PER_MODEL
    counts = [(part, sum(other is part for other, _ in shown)) for part in dict.fromkeys(part for part, _ in shown)]
    figure, drawn = style.grids(
        [(part.name, count) for part, count in counts],
        [f"{grammar}, {part.name}" if part.name else grammar for part, grammar in shown],
        axes,
        width,
        [LARGE_PANEL if crowd else PANEL_HEIGHT] * len(counts),
        2 if crowd else None,
        sharex=True,
    )
    if axes is None:
        refuse_crowd(figure.get_size_inches(), [part for part, _ in counts])
    for ax, (part, grammar) in zip(drawn, shown, strict=True):
        _panel(ax, part, grammar, crowd, spread)
        ax.set_title(grammar if axes is None or not part.name else f"{grammar}\n{part.name}", fontsize=style.MEDIUM)
    _label(drawn, counts, width, 1 if axes is not None else 2 if crowd else None)
    style.legend(figure, drawn, axes is None, _handles(looks, long))
    usual, notes = describe(long, spread, bars=True)
    notes += [style.CHANCE_NOTE] if any(part.chance for part, _ in shown if not part.is_ratio) else []
    style.entitle(
        figure, drawn, axes is None, title, f"{usual}, by its number of parameters", _notes(notes, every, long)
    )
    if crowd:
        figure.draw_without_rendering()  # fixes the positions of the axes, which moving marks needs
    for ax, (part, grammar) in zip(drawn, shown, strict=True):
        _models(ax, part, grammar, looks, spread)
    return figure


def _label(axes: Sequence[Axes], counts: Sequence[tuple[ResultBlock, int]], width: float, most: int | None) -> None:
    """Label the axes of the panels of each block; at most `most` panels are side by side."""
    start = 0
    for part, count in counts:
        across = min(style.across(count, width), most or count)
        style.outer_labels(axes[start : start + count], across, "parameters", [part.axis] * count)
        start += count


def _refuse_settings(parts: Sequence[ResultBlock]) -> None:
    """Raise InvalidSettingError if a model has several settings, since their marks would be the same."""
    for part in parts:
        for (model, _), rows in part.long.groupby(["model", "grammar"], sort=False):
            varying = [name for name in ROW if name != "hidden_size" and rows[name].nunique(dropna=False) > 1]
            if varying:
                raise InvalidSettingError(
                    f"{model} has several values of {', '.join(varying)}, and their marks would be the same; "
                    f"choose one value, as in --where {varying[0]}={rows[varying[0]].iloc[0]}."
                )


def _notes(usual: Sequence[str], every: pd.DataFrame, long: pd.DataFrame) -> list[str]:
    notes = [note.replace(f"{CUT} cut", "with an arrow: cut") for note in usual]
    notes = [note for note in notes if not note.startswith(CUT)]  # accuracies have no arrows
    without = sorted(set(every["model"].astype(str)) - set(long["model"].astype(str)))
    if long["model"].nunique() > style.PER_MODEL:
        notes.append("marks that would cover each other are moved aside")
    return notes + ([f"without parameters, and not shown: {', '.join(without)}"] if without else [])


def _panel(ax: Axes, part: ResultBlock, grammar: str, crowd: bool, spread: str) -> None:
    """Set up the axes of one panel."""
    ends = float(part.long["size"].min()) / 1.4, float(part.long["size"].max()) * 1.4
    ax.set_xscale("log")
    ax.set_xlim(ends)
    style.tidy(ax, grid="y")
    style.count_axis(ax.xaxis, *ends)
    low, high = limits(part.lines, [grammar] if crowd else part.grammars, spread, part.is_ratio)
    if part.is_ratio:
        ax.set_yscale("log")
        ax.axhline(1, color="black", linewidth=0.8)
        high *= 1.5 if part.long["censored"].any() else 1  # room for arrows
        style.ratio_axis(ax.yaxis, low, high)
    elif part.chance:
        ax.axhline(part.chance, **style.CHANCE)
    ax.set_ylim(low, high)


def _models(ax: Axes, part: ResultBlock, grammar: str, looks: dict[str, style.Look], spread: str) -> None:
    """Draw the models of one panel; if there are many, move marks apart."""
    found: list[tuple[Line, list[Sized]]] = []
    for line in part.lines_over("hidden_size"):
        rows = line.long[line.long["grammar"] == grammar]
        parts = {size: rows[rows["size"] == size] for size in sorted(set(map(int, rows["size"])))}
        points = [(size, cell_in_row(part, spread, "only")) for size, part in parts.items()]
        found.append((line, [point for point in points if point[1].seeds]))
    aside = _move_apart(ax, [point for _, points in found for point in points]) if len(looks) > style.PER_MODEL else {}
    for line, points in found:
        _series(ax, line, points, looks[line.model], aside)


def _move_apart(ax: Axes, points: Sequence[Sized]) -> dict[Sized, float]:
    """Return the x coordinate of each point, moved aside as little as possible so that marks do not overlap."""
    scale = 72 / style.figure_of(ax).dpi
    found: dict[Sized, float] = {}
    occupied = np.empty((0, 2))
    for size, cell in sorted(points, key=lambda point: (point[0], point[1].center)):
        own = scale * ax.transData.transform((size, cell.center))
        steps = np.arange(0, FARTHEST + STEP, STEP)
        places = own + np.column_stack([np.column_stack([steps, -steps]).ravel(), np.zeros(2 * len(steps))])
        nearest = np.min(np.hypot(*(places[:, None] - occupied[None]).T).T, axis=1, initial=math.inf)
        free = np.flatnonzero(nearest >= MARK + 0.5)
        best = places[free[0] if len(free) else int(nearest.argmax())]
        occupied = np.vstack([occupied, best])
        found[size, cell] = float(ax.transData.inverted().transform(best / scale)[0])
    return found


def _series(ax: Axes, line: Line, points: Sequence[Sized], look: style.Look, aside: Mapping[Sized, float]) -> None:
    """Draw a line through the sizes of a model, with errors, and an arrow upward if runs were cut."""
    if not points:
        return
    sizes, means = [aside.get(point, point[0]) for point in points], [cell.center for _, cell in points]
    errors = [line.bar(cell) for _, cell in points]
    _, _, (bars,) = ax.errorbar(
        sizes,
        means,
        yerr=list(zip(*errors, strict=True)),
        color=look.color,
        linestyle=look.dash if len(points) > 1 else "",
        linewidth=style.LINE - 0.3,
        elinewidth=0.6 if aside else 0.7,
        marker=look.marker,
        markersize=MARK,
        markerfacecolor=look.face,
        markeredgewidth=0.9,
    )
    if aside:  # errors of many models would hide their marks
        bars.set(alpha=0.35, zorder=1)
    for place, (_, cell) in zip(sizes, points, strict=True):
        mark_mean(ax, "y", place, line, cell, look.color)


def _handles(looks: dict[str, style.Look], long: pd.DataFrame) -> list[Line2D]:
    """Return the entries of the legend: one per model, with a line if there are several sizes; for many models one per
    family and one per cell.
    """
    line = bool((long.groupby("model")["size"].nunique() > 1).any())
    if len(looks) <= style.PER_MODEL:
        one_side = len({name.partition("/")[0] for name in looks}) == 1
        names = sorted(looks, key=place_of_model)
        shown = {name.rpartition("/")[2] if one_side else name: looks[name] for name in names}
        return [look.handle(name, MARK, line) for name, look in shown.items()]
    cells = {style.cell(name): look.marker for name, look in looks.items() if style.cell(name)}
    families = {style.family(name): (look.color, look.marker, not style.cell(name)) for name, look in looks.items()}
    found = [
        style.Look(color, marker=marker if alone else "s").handle(name, MARK, line=False)
        for name, (color, marker, alone) in families.items()
    ]
    found += [style.Look(style.DIM, marker=mark).handle(name, MARK, line=False) for name, mark in cells.items()]
    if any(look.hollow for look in looks.values()):
        found.append(style.Look(style.DIM, hollow=True).handle("two layers", MARK, line=False))
    return found
