"""Results against the number of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from icy.analysis import style
from icy.analysis.cells import CUT, Cell, cell_of, checked_spread
from icy.analysis.tables.bias import parameter_counts
from icy.config.protocols import BASELINE
from icy.core.errors import InvalidSettingError
from icy.records.load import Results
from icy.records.long_table import ROW

from .panels import Block, blocks, error_lengths, limits, measured, title_and_notes

PANEL_HEIGHT = 1.55  # inches
MARK = 4.0  # points
Point = tuple[int, Cell]  # number of parameters, and the result


def parameters(
    results: Results,
    *,
    spread: str = "sd",
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw results against the number of parameters: a panel per grammar, a line per model through its hidden sizes.

    For more than seven models a colour stands for a family and a mark for a cell; marks of models with two layers are
    hollow. An arrow upwards marks a mean ratio over runs of which some were cut at the cap.

    Args:
        results: a ProbeResult, or its long table. Sides, protocols and representations have panels each.
        spread: "sd", "sem" or "ci95".
        title: by default what was measured; "" for none.
        width: of a new figure, in inches.
        axes: to draw on, one per panel; by default those of a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no model has parameters, one has several settings, another spread, or a wrong number of
            axes.
    """
    checked_spread(spread)
    every = measured(results)
    every = every.assign(size=parameter_counts(every))
    long = every[every["size"].fillna(0) > 0]
    if not len(long):
        raise InvalidSettingError(_nothing(every))
    wanted = [(part, g) for part in blocks(long) for g in part.grammars if not (part.is_ratio and g == BASELINE)]
    if not wanted:
        raise InvalidSettingError("Of ratios concat alone is nothing to draw: its ratio is 1; give other grammars too.")
    _refuse_settings([part for part, _ in wanted])
    names = [f"{g}\n{part.name}" if part.name else g for part, g in wanted]
    width = width or style.WIDTH
    across = style.across(len(wanted), width)
    height = PANEL_HEIGHT * -(-len(wanted) // across) + 0.9
    figure, drawn = style.panels(names, axes, (width, height), across, sharex=True)
    looks = style.model_looks(map(str, long["model"].unique()))
    ends = float(long["size"].min()) / 1.4, float(long["size"].max()) * 1.4
    for ax, name, (part, grammar) in zip(drawn, names, wanted, strict=True):
        _panel(ax, part, grammar, looks, spread, ends)
        style.head(ax, name, width / across)
    style.outer_labels(drawn, across if axes is None else 1, "parameters", [part.axis for part, _ in wanted])
    style.legend(figure, drawn, axes is None, _handles(looks))
    style.entitle(figure, drawn, axes is None, title, title_and_notes(long)[0], _notes(every, long, spread))
    return figure


def _refuse_settings(parts: Sequence[Block]) -> None:
    """Refuse several settings of one model, which would have the same mark.

    Raises:
        InvalidSettingError: there are several.
    """
    for part in parts:
        for (model, _), rows in part.long.groupby(["model", "grammar"], sort=False):
            varying = [name for name in ROW if name != "hidden_size" and rows[name].nunique(dropna=False) > 1]
            if varying:
                raise InvalidSettingError(
                    f"{model} is here with several values of {', '.join(varying)}, whose marks would be the same; "
                    f"choose one, as in --where {varying[0]}={rows[varying[0]].iloc[0]}."
                )


def _nothing(long: pd.DataFrame) -> str:
    models = ", ".join(map(str, long["model"].unique()[:5]))
    return f"None of these models has parameters ({models}); `icy plot heat` and `icy plot bars` draw them."


def _notes(every: pd.DataFrame, long: pd.DataFrame, spread: str) -> list[str]:
    notes = [note.replace(f"{CUT} cut", "with an arrow: cut") for note in title_and_notes(long, spread)[1]]
    notes = [note for note in notes if not note.startswith(CUT)]  # accuracies have no arrows
    without = sorted(set(every["model"].astype(str)) - set(long["model"].astype(str)))
    return notes + ([f"without parameters, and not shown: {', '.join(without)}"] if without else [])


def _panel(
    ax: Axes, part: Block, grammar: str, looks: dict[str, style.Look], spread: str, ends: tuple[float, float]
) -> None:
    ax.set_xscale("log")
    ax.set_xlim(ends)
    style.tidy(ax, grid="y")
    style.count_axis(ax.xaxis, *ends)
    low, high = limits([line.cell(g, spread) for line in part.lines for g in part.grammars], part.is_ratio)
    if part.is_ratio:
        ax.set_yscale("log")
        ax.axhline(1, color="black", linewidth=0.6)
        high *= 1.3 if part.long["cut"].any() else 1  # room for arrows
        style.ratio_axis(ax.yaxis, low, high)
    ax.set_ylim(low, high)
    for line in part.lines_over("hidden_size"):
        rows = line.long[line.long["grammar"] == grammar]
        points = [(size, cell_of(rows[rows["size"] == size], spread)) for size in sorted(set(map(int, rows["size"])))]
        _series(ax, [point for point in points if point[1].seeds], looks[line.model], part)


def _series(ax: Axes, points: Sequence[Point], look: style.Look, part: Block) -> None:
    """Draw one model through its sizes, with errors, and an arrow upwards where runs were cut."""
    if not points:
        return
    sizes, means = [size for size, _ in points], [cell.mean for _, cell in points]
    errors = list(zip(*(error_lengths(cell, part.is_ratio) for _, cell in points), strict=True))
    ax.errorbar(
        sizes,
        means,
        yerr=errors,
        color=look.colour,
        linestyle=look.dash,
        linewidth=style.LINE - 0.3,
        elinewidth=0.7,
        marker=look.marker,
        markersize=MARK,
        markerfacecolor=look.face,
        markeredgewidth=0.9,
    )
    for size, cell in points:
        if cell.cut and part.is_ratio:
            start = cell.mean + error_lengths(cell, part.is_ratio)[1]
            ax.annotate("", (size, start * 1.5), (size, start), arrowprops={**style.ARROW, "color": look.colour})


def _handles(looks: dict[str, style.Look]) -> list[Line2D]:
    """Return the entries of the legend: one per model; for many models one per family and one per cell."""
    if len(looks) <= style.PER_MODEL:
        one_side = len({name.partition("/")[0] for name in looks}) == 1
        shown = {name.rpartition("/")[2] if one_side else name: look for name, look in looks.items()}
        return [_handle(name, look.colour, look.marker, look.dash, look.face) for name, look in shown.items()]
    cells = {style.cell(name): look.marker for name, look in looks.items() if style.cell(name)}
    families = {style.family(name): (look, not style.cell(name)) for name, look in looks.items()}
    found = [
        _handle(name, look.colour, look.marker if alone else "s", "", look.colour)
        for name, (look, alone) in families.items()
    ]
    found += [_handle(name, style.DIM, mark, "", style.DIM) for name, mark in cells.items()]
    if any(look.hollow for look in looks.values()):
        found.append(_handle("two layers", style.DIM, "o", "", "white"))
    return found


def _handle(name: str, colour: str, marker: str, dash: Any, face: str) -> Line2D:
    mark: dict[str, Any] = {"marker": marker, "markersize": MARK, "markerfacecolor": face}
    return Line2D([], [], color=colour, linestyle=dash, label=name, **mark)
