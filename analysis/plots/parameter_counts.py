"""Results against the number of parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from icy.analysis import style
from icy.analysis.order import place_of_model
from icy.analysis.table_cells import CUT, TableCell, cell_in_row, checked_spread
from icy.analysis.tables.bias import parameter_counts
from icy.config.protocols import BASELINE
from icy.core.errors import InvalidSettingError
from icy.records.load import Results
from icy.records.long_table import ROW

from .panels import Line, ResultBlock, blocks, describe, limits, mark_mean, measured, refuse_crowd

PANEL_HEIGHT, LARGE_PANEL = 1.55, 2.1  # inches, for few models and for many
MARK = 4.0  # points
FARTHEST, STEP = 10.0, 0.5  # most that a mark is moved aside, and the step, in points
Point = tuple[int, TableCell]  # number of parameters, and the result


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
        raise InvalidSettingError(_explain_no_parameters(every))
    shown = [(part, g) for part in blocks(long) for g in part.grammars if not (part.is_ratio and g == BASELINE)]
    if not shown:
        raise InvalidSettingError("These ratios are only of concat, so all are 1; add results of other grammars.")
    _refuse_settings([part for part, _ in shown])
    width = width or style.WIDTH
    looks = style.model_looks(map(str, long["model"].unique()))
    crowd = len(looks) > style.PER_MODEL
    counts = [(part, sum(other is part for other, _ in shown)) for part in dict.fromkeys(part for part, _ in shown)]
    figure, drawn = _panels(shown, counts, crowd, width, axes)
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


def _panels(
    shown: Sequence[tuple[ResultBlock, str]],
    counts: Sequence[tuple[ResultBlock, int]],
    crowd: bool,
    width: float,
    axes: Axes | Sequence[Axes] | None,
) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure and its panels: `axes`, or a new figure with a group of panels per block."""
    if axes is not None:
        drawn = style.given_axes([f"{g}, {part.name}" if part.name else g for part, g in shown], axes)
        return style.figure_of(drawn[0]), drawn
    heights = [LARGE_PANEL if crowd else PANEL_HEIGHT] * len(counts)
    shapes = [(part.name, count) for part, count in counts]
    figure, drawn = style.grids(shapes, width, heights, 2 if crowd else None, sharex=True)
    refuse_crowd((figure.get_figwidth(), figure.get_figheight()), [part for part, _ in counts])
    return figure, drawn


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


def _explain_no_parameters(long: pd.DataFrame) -> str:
    models = ", ".join(map(str, long["model"].unique()[:5]))
    return f"None of these models has parameters ({models}); `icy plot heat` and `icy plot bars` draw them."


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
    found: list[tuple[Line, list[Point]]] = []
    for line in part.lines_over("hidden_size"):
        rows = line.long[line.long["grammar"] == grammar]
        parts = {size: rows[rows["size"] == size] for size in sorted(set(map(int, rows["size"])))}
        points = [(size, cell_in_row(part, spread, "only")) for size, part in parts.items()]
        found.append((line, [point for point in points if point[1].seeds]))
    aside = _move_apart(ax, [point for _, points in found for point in points]) if len(looks) > style.PER_MODEL else {}
    for line, points in found:
        _series(ax, line, points, looks[line.model], aside)


def _move_apart(ax: Axes, points: Sequence[Point]) -> dict[Point, float]:
    """Return the x coordinate of each point, moved aside as little as possible so that marks do not overlap."""
    scale = 72 / style.figure_of(ax).dpi
    found: dict[Point, float] = {}
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


def _series(ax: Axes, line: Line, points: Sequence[Point], look: style.Look, aside: Mapping[Point, float]) -> None:
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
