"""Points per model: compositional grammars against noise, with the front of the best, and results by parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from icy.analysis import style
from icy.analysis.order import COMPOSITIONAL, NOISE, place_of_model
from icy.analysis.picture import Panel, Picture, plot
from icy.analysis.table_cells import CUT, TableCell, cell_in_row
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
    draw_means,
    front,
    limits,
    measured,
    move_apart,
    place_labels,
    ranked,
    tradeoff_limits,
    value_axis,
)

# -- compositional grammars against noise grammars, with the front of the best models ----------------------------------


ALONE, SMALLER = 3.4, 2.6  # inches, for one panel across and for two
WIDER = 8.5  # width of each of several panels with a legend, in inches
LISTED, LONGEST = 0.135, 32  # height of a name in the legend, in inches; names per column, if there are several panels
DOT = 5.5  # points


@plot
def tradeoff(
    results: Results, *, spread: str = "sd", width: float | None = None, axes: Axes | Sequence[Axes] | None = None
) -> Picture:
    """Compositional grammars against noise grammars: models ranked, best at the front.

    The vertical axis is the accuracy on shufdet (for receivers the mean of shuf and shufdet), the horizontal axis the
    mean over rot, pairsum and proj, both averaged per seed. The upper left is better: a model there learns
    compositional grammars and not noise. Models are ranked by the difference of the two. For ratios, axes are
    logarithmic, means are geometric, and models are ranked by the quotient. As a small ratio is fast learning, the
    lower right is better.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have separate panels.
        spread: "sd", "sem" or "ci95".
        **look: title, width and axes; see `icy.analysis.picture.plot`.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no model has all these grammars, an unknown spread, a wrong number of axes, or too many
            rows to be read.
    """
    long = measured(results)
    shown = [(part, points) for part in blocks(long) if (points := ranked(part, spread))]
    if not shown:
        raise InvalidSettingError(_explain_no_models(long))
    across, most = min(2, len(shown)), max(len(points) for _, points in shown)
    # Names are at the points only for few models, with enough room; else in a legend, in captioned figures below.
    longest = max(style.text_size(point.name, style.SMALL)[0] for _, points in shown for point in points) / 72
    named = most <= MOST_NAMED and longest < 0.5 * (width or style.WIDTH) / across
    below = style.CAPTIONED and not named and len(shown) == 1 and axes is None
    listed = 0 if named or below else min(most, LONGEST if len(shown) > 1 else most)
    if listed and len(shown) > 1:  # a legend right of each panel
        across = 1 if width else -(-len(shown) // int(style.TALLEST / max(ALONE, LISTED * (listed + 2))))
    height = max(SMALLER if across > 1 and not listed else ALONE, LISTED * (listed + 2)) - 0.6
    panels = [
        Panel(partial(_points, part, points, not listed), "", part.name, height, grid="both",
              finish=partial(_label, part, points, named))
        for part, points in shown
    ]  # fmt: skip
    title, notes = describe_tradeoff(long, spread)
    return Picture(
        panels, title, notes, _ranked_handles(shown[0][1]) if below else (), across,
        width or (WIDER * across if listed and len(shown) > 1 else style.WIDTH), blocks=[part for part, _ in shown],
        handles={"handlelength": 1.2, "handletextpad": 0.3, "columnspacing": 0.8},
    )  # fmt: skip


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


def _points(part: ResultBlock, points: Sequence[Point], named: bool, ax: Axes) -> None:
    """Draw the models of one panel, and the front; names are in a legend at the right unless `named`."""
    looks = style.model_looks([point.line.model for point in points])
    for point in points:
        look = looks[point.line.model]
        for bar in point.bars:
            ax.plot(*zip(*bar, strict=True), color="#d0d0d0", linewidth=0.8, zorder=1)
        ax.plot(*point.place, look.marker, markersize=DOT, markerfacecolor=look.face, markeredgecolor=look.color,
                markeredgewidth=1.0, zorder=3)  # fmt: skip
    (left, right), (low, high) = tradeoff_limits(points, part.is_ratio)
    ax.set(
        **dict.fromkeys(("xscale", "yscale"), "log" if part.is_ratio else "linear"),
        xlim=(left, right),
        ylim=(low, high),
    )
    if part.is_ratio:
        style.ratio_axis(ax.xaxis, left, right)
        style.ratio_axis(ax.yaxis, low, high)
    ax.plot(*zip(*front(points, part), strict=True), color="black", linewidth=0.8, linestyle="--", zorder=2)
    easy = [g for g in COMPOSITIONAL if g in part.grammars]
    on = easy[0] if len(easy) == 1 else f"mean of {', '.join(easy)}"
    ax.set_xlabel(style.wrapped(f"{part.axis} on noise", style.room(ax), style.MEDIUM))
    ax.set_ylabel(style.wrapped(f"{part.axis} on {on}", SMALLER - 0.6, style.MEDIUM))
    if not named:
        columns = -(-len(points) // LONGEST)
        ax.legend(handles=_ranked_handles(points), fontsize=style.SMALL, frameon=False, loc="center left",
                  bbox_to_anchor=(1.01, 0.5), borderaxespad=0, labelspacing=0.25, handletextpad=0.3, ncols=columns,
                  columnspacing=0.8)  # fmt: skip


def _label(part: ResultBlock, points: Sequence[Point], named: bool, ax: Axes) -> None:
    """Write names, or ranks, next to the points."""
    names = [point.name if named else str(point.rank) for point in points]
    lines = [front(points, part), *(bar for point in points for bar in point.bars)]
    place_labels(ax, [point.place for point in points], names, lines)


def _ranked_handles(points: Sequence[Point]) -> list[Line2D]:
    """Return the entries of a legend: the models, by rank, with their marks."""
    looks = style.model_looks([point.line.model for point in points])
    return [looks[point.line.model].handle(point.name, DOT - 1, line=False) for point in points]


# -- results against the number of parameters --------------------------------------------------------------------------


PANEL_HEIGHT, LARGE_PANEL = 1.2, 1.75  # inches, for few models and for many
MARK = 4.0  # points
FARTHEST = 10.0  # most that a mark is moved aside, in points
Sized = tuple[int, TableCell]  # number of parameters, and the result


@plot
def parameters(results: Results, *, spread: str = "sd") -> Picture:
    """Results against the number of parameters: a panel per grammar, a line per model.

    With more than seven models, colors show families, mark shapes show cells, and hollow marks show two layers. Panels
    are then larger, each with its own limits, and marks that would cover each other are moved aside. An arrow upward
    marks a mean ratio over runs if some were cut at the cap.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have separate panels.
        spread: "sd", "sem" or "ci95".
        **look: title, width and axes; see `icy.analysis.picture.plot`.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no model has parameters, a model has several settings, an unknown spread, or a wrong
            number of axes.
    """
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
    looks = style.model_looks(map(str, long["model"].unique()))
    crowd = len(looks) > style.PER_MODEL
    panels = [
        Panel(partial(_panel, part, g, crowd, spread), g, part.name, LARGE_PANEL if crowd else PANEL_HEIGHT,
              "parameters", part.axis, "y", partial(_models, part, g, looks, spread))
        for part, g in shown
    ]  # fmt: skip
    title, notes = describe(long, spread, bars=True)
    notes += [style.CHANCE_NOTE] if any(part.chance for part, _ in shown if not part.is_ratio) else []
    return Picture(
        panels, f"{title}, by its number of parameters", _notes(notes, every, long), _handles(looks, long),
        2 if crowd else None, grid={"sharex": True}, grouped=True, blocks=list(dict(shown)),
    )  # fmt: skip


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


def _panel(part: ResultBlock, grammar: str, crowd: bool, spread: str, ax: Axes) -> None:
    """Set up the axes of one panel."""
    ends = float(part.long["size"].min()) / 1.4, float(part.long["size"].max()) * 1.4
    ax.set(xscale="log", xlim=ends)
    style.count_axis(ax.xaxis, *ends)
    low, high = limits(part.cells(spread, [grammar] if crowd else None), part.is_ratio)
    arrows = part.is_ratio and part.long["censored"].any()
    value_axis(ax, "y", part, (low, high * 1.5 if arrows else high))


def _models(part: ResultBlock, grammar: str, looks: dict[str, style.Look], spread: str, ax: Axes) -> None:
    """Draw a line through the sizes of each model; if there are many models, move marks apart."""
    found: list[tuple[Line, list[Sized]]] = []
    for line in part.lines_over("hidden_size"):
        rows = line.long[line.long["grammar"] == grammar]
        cells = [(int(size), cell_in_row(own, spread, "only")) for size, own in rows.groupby("size")]  # type: ignore[arg-type]
        found.append((line, [point for point in cells if point[1].seeds]))
    crowd = len(looks) > style.PER_MODEL
    every = sorted((point for _, points in found for point in points), key=lambda point: (point[0], point[1].center))
    places = [(float(size), cell.center) for size, cell in every]
    aside = dict(zip(every, move_apart(ax, places, MARK + 0.5, FARTHEST), strict=True)) if crowd else {}
    for line, points in found:
        look = looks[line.model]
        drawn = draw_means(
            ax, "y", [(aside.get(point, point[0]), line, point[1]) for point in points], look.color,
            color=look.color, linestyle=look.dash if len(points) > 1 else "", linewidth=style.LINE - 0.3,
            elinewidth=0.7, marker=look.marker, markersize=MARK, markerfacecolor=look.face, markeredgewidth=0.9,
        )  # fmt: skip
        if crowd and drawn is not None:  # errors of many models would hide their marks
            drawn.lines[2][0].set(alpha=0.35, zorder=1)


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
