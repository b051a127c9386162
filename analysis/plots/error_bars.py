"""Results with error bars: bars (in the form of Icy22 figure 3), ratios as dots, and differences of two results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MultipleLocator

from icy.analysis import style
from icy.analysis.order import Facts, Series, in_order
from icy.analysis.table_cells import CUT, TableCell, checked_spread
from icy.analysis.tables.paired import LEVEL, ResultsComparison, identifying_columns
from icy.config.protocols import BASELINE
from icy.core.errors import InvalidSettingError
from icy.records.load import Results

from .panels import Line, ResultBlock, blocks, describe, limits, mark_mean, measured, notes_on_ends, refuse_crowd

UNMEASURED = "–"
FEW = 5  # up to this many models, bars are drawn in groups by default
ROW_HEIGHT, GROUPS_HEIGHT = 0.16, 2.1  # height of one bar and of a panel of groups, in inches
BY = ("grammar", "measure")
ERROR = {"elinewidth": 0.9, "capsize": 1.5, "capthick": 0.9, "ecolor": "black"}


@style.with_own_settings
def bars(
    results: Results,
    *,
    by: str | None = None,
    spread: str = "sd",
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw bars with errors, in the form of Icy22 figure 3.

    Bars of ratios start at 1, the ratio of concat, on a logarithmic axis, with geometric means. An arrow marks a mean
    over runs if some were cut at the cap, because the true ratio is larger. A dotted line shows the accuracy of a
    guess.

    Args:
        results: a ProbeResult, or its long table.
        by: "measure" for one panel with a group of bars per grammar, or "grammar" for a panel per grammar; both have a
            bar per model. The default is "measure" for up to five models, else "grammar". Sides, protocols and
            representations have separate panels.
        spread: "sd", "sem" or "ci95".
        title: title; by default a sentence on the measure, "" for none.
        width: width of a new figure, in inches.
        axes: axes to draw on, one per panel; by default a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no results, an unknown `spread` or `by`, a wrong number of axes, or too many rows to read.

    Example:
        >>> import pandas as pd
        >>> from icy.analysis.plots import bars
        >>> long = pd.DataFrame({"model": "sender/FC2L", "grammar": ["perm", "rot"], "seed": 1, "value": [0.99, 0.49]})
        >>> long["measure"] = "accuracy"
        >>> [round(float(bar.get_height()), 2) for bar in bars(long).axes[0].patches]
        [0.99, 0.49]
    """
    checked_spread(spread)
    long = measured(results)
    parts = blocks(long)
    if by not in (None, *BY):
        raise InvalidSettingError(f"`by` must be {' or '.join(BY)}; not '{by}'.")
    most = max(len(part.lines) for part in parts)
    draw = _by_measure if (by or ("measure" if most <= FEW else "grammar")) == "measure" else _by_grammar
    figure, drawn = draw(parts, spread, width or style.WIDTH, axes)
    usual, notes = describe(long, spread, bars=True)
    ratio = all(part.is_ratio for part in parts)
    notes = [note.replace(CUT, "arrow:" if ratio else f"{CUT}, or arrow on a bar of ratios:") for note in notes]
    notes += notes_on_ends(parts, dict.fromkeys(g for part in parts for g in _shown(part)), spread)
    gaps = any(line.cell(g, spread) is None for part in parts for line in part.lines for g in _shown(part))
    notes += [f"{UNMEASURED} not measured"] * gaps
    notes += [style.CHANCE_NOTE] if any(part.chance for part in parts if not part.is_ratio) else []
    style.entitle(figure, drawn, axes is None, title, usual, notes)
    return figure


def _shown(part: ResultBlock) -> list[str]:
    """Return the grammars to draw; for ratios, without concat."""
    return [g for g in part.grammars if not (part.is_ratio and g == BASELINE)] or part.grammars


# -- a group of bars per grammar ---------------------------------------------------------------------------------------


def _by_measure(
    parts: Sequence[ResultBlock], spread: str, width: float, axes: Axes | Sequence[Axes] | None
) -> tuple[Figure, list[Axes]]:
    """Draw a panel per block; return the figure and its panels."""
    labels = list(dict.fromkeys(line.label for part in parts for line in part.lines))
    names = [part.name or "all grammars" for part in parts]
    size = (width, GROUPS_HEIGHT * len(parts) + 0.4)
    if axes is None:
        refuse_crowd(size, parts)
    figure, drawn = style.panels(names, axes, size)
    for ax, part in zip(drawn, parts, strict=True):
        _groups(ax, part, labels, spread, (width - 2) / len(_shown(part)))
    handles = [Patch(**_fill(i), label=label) for i, label in enumerate(labels)]
    if len(labels) > 1:
        style.legend(figure, drawn, axes is None, handles)
    return figure, drawn


def _groups(ax: Axes, part: ResultBlock, labels: Sequence[str], spread: str, room: float) -> None:
    """Draw one panel, with `room` inches for each grammar."""
    lines, grammars = part.lines, _shown(part)
    _scale(ax, "y", part, spread)
    thick = 0.8 / len(lines)
    for i, line in enumerate(lines):
        places = np.arange(len(grammars)) - 0.4 + (i + 0.5) * thick
        fill = _fill(labels.index(line.label))
        _bars(ax, "y", places, [(line, line.cell(g, spread)) for g in grammars], part, thick * 0.92, fill)
    ax.set_xticks(range(len(grammars)), grammars, **style.tilt(grammars, room))
    style.tidy(ax, grid="y")
    ax.set_ylabel(part.axis)
    ax.tick_params(axis="x", length=0, labelsize=style.MEDIUM)
    ax.set_xlim(-0.5, len(grammars) - 0.5)  # includes grammars without a value
    style.name_block(ax, part.name)


def _fill(place: int) -> Facts:
    """Return the fill of a model: a color for the screen, a hatch for gray print."""
    return {
        "facecolor": style.COLORS[place % 7],
        "hatch": style.HATCHES[place % len(style.HATCHES)],
        "edgecolor": "white",
        "linewidth": 0,
    }


# -- a panel per grammar -----------------------------------------------------------------------------------------------


def _by_grammar(
    parts: Sequence[ResultBlock], spread: str, width: float, axes: Axes | Sequence[Axes] | None
) -> tuple[Figure, list[Axes]]:
    """Draw one or more rows of panels per block; return the figure and its panels."""
    panels = [(part, grammar) for part in parts for grammar in _shown(part)]
    sizes = [(part.name, len(_shown(part))) for part in parts]
    names = [f"{part.name}, {grammar}" if part.name else grammar for part, grammar in panels]
    figure, drawn = style.grids(sizes, names, axes, width, [ROW_HEIGHT * len(part.lines) + 0.5 for part in parts])
    if axes is None:
        refuse_crowd(figure.get_size_inches(), parts)
    for ax, (part, grammar) in zip(drawn, panels, strict=True):
        _panel(ax, part, part.lines, grammar, spread)
        place, count = _shown(part).index(grammar), len(_shown(part))
        across = style.across(count, width) if axes is None else 1
        ax.tick_params(labelleft=place % across == 0, labelbottom=axes is not None or place + across >= count)
        if axes is not None or place // across == (count - 1) // across:
            ax.set_xlabel(part.axis)
    return figure, drawn


def _panel(ax: Axes, part: ResultBlock, lines: Sequence[Line], grammar: str, spread: str) -> None:
    fill = {"facecolor": style.COLORS[0], "linewidth": 0}
    _scale(ax, "x", part, spread)
    _bars(ax, "x", np.arange(len(lines)), [(line, line.cell(grammar, spread)) for line in lines], part, 0.75, fill)
    ax.set_yticks(range(len(lines)), [line.label for line in lines])
    ax.set_ylim(len(lines) - 0.4, -0.6)
    style.tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)
    ax.set_title(grammar, fontsize=style.MEDIUM)


# -- single bars -------------------------------------------------------------------------------------------------------


def _bars(
    ax: Axes,
    along: str,
    places: Iterable[float],
    cells: Sequence[tuple[Line, TableCell | None]],
    part: ResultBlock,
    thick: float,
    fill: Facts,
) -> None:
    """Draw bars along an axis ("x" or "y"), with error bars and with remarks at their ends."""
    base = 1.0 if part.is_ratio else 0.0
    found = [(at, line, cell) for at, (line, cell) in zip(places, cells, strict=True) if cell and cell.seeds]
    at = [place for place, _, _ in found]
    means = np.array([cell.center for _, _, cell in found])
    errors = np.array([line.bar(cell) for _, line, cell in found]).reshape(-1, 2).T
    errors[:, ~errors.any(axis=0)] = np.nan  # a bar of no length would read as certainty
    if along == "y":
        ax.bar(at, means - base, thick, bottom=base, yerr=errors, error_kw=ERROR, **fill)
    else:
        ax.barh(at, means - base, thick, left=base, xerr=errors, error_kw=ERROR, **fill)
    for place, (line, cell) in zip(places, cells, strict=True):
        if cell is not None and cell.seeds:
            mark_mean(ax, along, float(place), line, cell, "black")
        if text := _remark(line, cell):
            end = base if cell is None or not cell.seeds else cell.center + line.bar(cell)[1]
            _write(ax, along, float(place), end, text)


def _remark(line: Line, cell: TableCell | None) -> str:
    if cell is None:
        return UNMEASURED
    if not cell.seeds:
        return "failed"
    return CUT if cell.censored and line.long["measure"].iloc[0] != "ratio" else ""


def _write(ax: Axes, along: str, place: float, end: float, text: str) -> None:
    upright = along == "y"
    ax.annotate(
        text,
        (place, end) if upright else (end, place),
        (0, 1) if upright else (2, 0),
        textcoords="offset points",
        ha="center" if upright else "left",
        va="bottom" if upright else "center",
        rotation=90 if upright and len(text) > 1 else 0,
        fontsize=style.SMALL,
        color=style.DIM,
    )


def _scale(ax: Axes, along: str, part: ResultBlock, spread: str) -> None:
    """Set the limits and scale of an axis, the same in all panels of a block."""
    low, high = limits(part.lines, _shown(part), spread, part.is_ratio)
    straight = ax.axvline if along == "x" else ax.axhline
    if part.is_ratio:
        ax.set(**{f"{along}scale": "log"})
        straight(1, color="black", linewidth=0.8)
    elif part.chance:
        straight(part.chance, **style.CHANCE)
    ax.set(**{f"{along}lim": (low, high)})
    if part.is_ratio:
        style.ratio_axis(ax.xaxis if along == "x" else ax.yaxis, low, high)
    elif along == "x":
        ax.xaxis.set_major_locator(MultipleLocator(0.5))  # more ticks would overlap the next panel's
        ax.xaxis.set_major_formatter("{x:g}")


# -- acquisition ratios as dots on a logarithmic axis (Icy22 tables 3 to 6 as a picture) -------------------------------


DOTS_HEIGHT, LEAST_HEIGHT = 0.3, 0.18  # usual height of a row, and least height to fit on a page, in inches
BAND = 0.72  # fraction of a row's height over which the dots of its grammars are spread
MARK = 4.5  # points


@style.with_own_settings
def ratios(
    results: Results,
    *,
    spread: str = "sd",
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw acquisition ratios: a row per model, a dot with error bar per grammar, on a logarithmic axis.

    Dots are geometric means; the line at 1 is concat. A hollow dot with an arrow to the right is a mean over runs if
    some were cut at the cap: the true ratio is larger. The sign ~ marks ratios of coarse evaluations.

    Args:
        results: a ProbeResult, or its long table, of the protocol `acquire`; other protocols are left out. Sides and
            representations have separate panels.
        spread: "sd", "sem" or "ci95".
        title: title; by default a sentence on the measure, "" for none.
        width: width of a new figure, in inches.
        axes: axes to draw on, one per panel; by default a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no ratios, an unknown spread, a wrong number of axes, or too many rows to be read.
    """
    checked_spread(spread)
    every = measured(results)
    long = every[every["measure"].eq("ratio") & every["grammar"].ne(BASELINE)]
    if not len(long):
        raise InvalidSettingError(_explain_no_ratios(sorted(set(every["protocol"].dropna().astype(str)))))
    parts = blocks(long)
    counts = [len(part.lines) for part in parts]
    room = style.TALLEST - 0.75 - 0.5 * len(parts)
    row = min(DOTS_HEIGHT, max(LEAST_HEIGHT, room / sum(counts)))
    size = (width or style.WIDTH, 0.75 + sum(row * count + 0.5 for count in counts))
    if axes is None:
        refuse_crowd(size, parts)
    figure, drawn = style.panels(
        [part.name or "all models" for part in parts], axes, size, gridspec_kw={"height_ratios": counts}, sharex=True
    )
    looks = style.grammar_looks(in_order(long["grammar"]))
    ends = limits([line for part in parts for line in part.lines], looks, spread, ratio=True)
    for ax, part in zip(drawn, parts, strict=True):
        _ratio_panel(ax, part, looks, spread, ends)
    drawn[-1].set_xlabel(style.wrapped("updates to the target as a ratio to concat's", 0.6 * size[0], style.MEDIUM))
    marks = {name: replace(look, hollow=False) for name, look in looks.items()}
    style.legend(figure, drawn, axes is None, [look.handle(name, MARK, line=False) for name, look in marks.items()])
    usual, notes = describe(long, spread, bars=True)
    notes = [note.replace(CUT, "hollow, with an arrow:") for note in notes] + notes_on_ends(parts, looks, spread)
    style.entitle(figure, drawn, axes is None, title, usual, notes)
    return figure


def _explain_no_ratios(protocols: Sequence[str]) -> str:
    if "acquire" in protocols:
        return "The results of the protocol 'acquire' have only concat, and its ratio is 1: probe another grammar too."
    theirs = f": their protocol is {' and '.join(protocols)}" if protocols else ""
    return (
        f"These results have no acquisition ratios{theirs}; "
        f"`icy probe --protocol acquire` measures ratios, and `icy plot bars` draws these results."
    )


def _ratio_panel(
    ax: Axes, part: ResultBlock, looks: dict[str, style.Look], spread: str, ends: tuple[float, float]
) -> None:
    lines = part.lines
    ax.set_xscale("log")
    ax.set(xlim=ends, ylim=(len(lines) - 0.5, -0.5))
    ax.axvline(1, color="black", linewidth=0.8, zorder=1)
    for cap in sorted({float(cap) for cap in part.long.loc[part.long["censored"].astype(bool), "cap"].dropna()}):
        ax.axvline(cap, color=style.GRAY, linewidth=0.8, linestyle=":", zorder=1)
        ax.annotate("cap", (cap, 1), (0, 1), xycoords=("data", "axes fraction"), textcoords="offset points",
                    ha="center", va="bottom", fontsize=style.SMALL, color=style.DIM)  # fmt: skip
    for y, line in enumerate(lines):
        if y % 2 == 0:
            ax.axhspan(y - 0.5, y + 0.5, color="#f3f3f3", zorder=0, linewidth=0)
        _row(ax, y, line, part, looks, spread)
    ax.set_yticks(range(len(lines)), [line.label for line in lines])
    style.tidy(ax, grid="x")
    style.ratio_axis(ax.xaxis, *ends)
    ax.tick_params(axis="y", length=0, labelsize=style.MEDIUM)
    style.name_block(ax, part.name)


def _row(ax: Axes, y: int, line: Line, part: ResultBlock, looks: dict[str, style.Look], spread: str) -> None:
    """Draw the dots of one model at slightly different heights, so that they do not overlap."""
    step = BAND / max(1, len(part.grammars))
    for i, grammar in enumerate(part.grammars):
        cell = line.cell(grammar, spread)
        if cell is not None and cell.seeds:
            place, look = y + (i - (len(part.grammars) - 1) / 2) * step, looks[grammar]
            down, up = line.bar(cell)
            ax.errorbar([cell.center], [place], xerr=[[down], [up]], fmt="none", ecolor=look.color, elinewidth=0.9)
            face = "white" if cell.censored else look.color
            ax.plot([cell.center], [place], look.marker, markersize=MARK, markerfacecolor=face,
                    markeredgecolor=look.color, markeredgewidth=0.9, clip_on=False, zorder=3)  # fmt: skip
            mark_mean(ax, "x", place, line, cell, look.color)


# -- differences between two results as dots with intervals ------------------------------------------------------------


ROW = 0.19  # inches
ROOM = 1.3  # factor between the limits of the axis and the smallest and largest quotient
UP, DOWN = style.COLORS[1], style.COLORS[0]  # colors of effects that are larger, or smaller, in the second result


@style.with_own_settings
def differences(comparison: ResultsComparison, width: float | None = None) -> Figure:
    """Draw each cell's effect with its 95 % interval, and its pairs of runs as small ticks.

    Ratios, on a logarithmic axis, and other values have separate panels. An effect that is significant after Holm's
    correction is in color. An effect that is only a bound is a hollow arrow. An interval beyond the axis ends in an
    arrow.

    Args:
        comparison: comparison of two results.
        width: width of the figure in inches.

    Raises:
        InvalidSettingError: more cells than fit on a page.
    """
    cells = comparison.cells.reset_index(drop=True)
    cells = cells[cells["effect"].notna()]
    if not len(cells):
        raise InvalidSettingError("Cannot draw differences: every cell was cut in both results.")
    if len(cells) * ROW > style.TALLEST - 1:
        raise InvalidSettingError(
            f"{len(cells)} cells do not fit on a page; choose some with --model or --grammar, or save the table."
        )
    parts = [part for _, part in cells.groupby(cells["measure"].eq("ratio"), sort=True)]
    counts = [len(part) for part in parts]
    size = (width or style.WIDTH, 1.2 + sum(0.4 + ROW * count for count in counts))
    names = ["ratios" if part["measure"].iloc[0] == "ratio" else "values" for part in parts]
    figure, axes = style.panels(names, None, size, 1, gridspec_kw={"height_ratios": counts})
    for ax, part in zip(axes, parts, strict=True):
        _difference_panel(ax, part, comparison)
    shown = {_looks(cell, comparison) for _, cell in cells.iterrows()}
    entries = [(label, style.Look(color)) for label, color in sorted(shown)]
    if cells["bound"].ne("").any():
        entries.append(("a bound: further that way", style.Look("black", marker=">", hollow=True)))
    style.legend(figure, axes, True, [look.handle(label, 4.5, line=False) for label, look in entries])
    first, second = comparison.names
    notes = ["mark and line: effect and its 95 % interval; gray ticks: pairs of runs; arrow: the line continues"]
    style.entitle(figure, axes, True, None, f"How {second} differs from {first}", notes)
    return figure


def _looks(cell: Series, comparison: ResultsComparison) -> tuple[str, str]:
    """Return the legend text of a cell, and its color."""
    first, second = comparison.names
    if not cell["p_holm"] < LEVEL:
        return f"not significantly different from {first}", style.DIM
    larger = cell["effect"] > (1.0 if cell["measure"] == "ratio" else 0.0)
    return (f"larger in {second}", UP) if larger else (f"smaller in {second}", DOWN)


def _difference_panel(ax: Axes, part: pd.DataFrame, comparison: ResultsComparison) -> None:
    ratio = part["measure"].iloc[0] == "ratio"
    if ratio:
        ax.set_xscale("log")
    ax.axvline(1.0 if ratio else 0.0, color="black", linewidth=0.8, zorder=1)
    for y, (place, cell) in enumerate(part.iterrows()):
        if y % 2 == 0:
            ax.axhspan(y - 0.5, y + 0.5, color="#f3f3f3", zorder=0, linewidth=0)
        runs = comparison.runs[comparison.runs["cell"] == place]
        gaps = runs["second"] / runs["first"] if ratio else runs["difference"]
        ax.plot(gaps, [y] * len(gaps), "|", color=style.GRAY, markersize=5, markeredgewidth=0.8, zorder=2)
        _, color = _looks(cell, comparison)
        face = "white" if cell["bound"] else color
        mark = cell["bound"] or "o"  # "<" and ">" are marks too
        ax.plot([cell["effect"]], [y], mark, markersize=4.5, markerfacecolor=face, markeredgecolor=color, zorder=4)
    low, high = ax.get_xlim()  # intervals of few seeds may exceed the limits
    room = (high - low) / 4
    low, high = (low / ROOM, high * ROOM) if ratio else (low - room, high + room)
    for y, (_, cell) in enumerate(part.iterrows()):
        if cell["test"] == "t":
            color = _looks(cell, comparison)[1]
            ax.plot([cell["low"], cell["high"]], [y, y], color=color, linewidth=1.2, zorder=3)
            for end, mark, beyond in ((low, "<", cell["low"] < low), (high, ">", cell["high"] > high)):
                if beyond:
                    ax.plot([end], [y], mark, color=color, markersize=4, clip_on=False, zorder=3)
    first, second = comparison.names
    effect = f"{second} / {first}, of geometric means" if ratio else f"{second} - {first}"
    ax.set_xlabel(effect)
    ax.set(ylim=(len(part) - 0.5, -0.5), xlim=(low, high))
    columns = part[identifying_columns(part)]
    rows = columns.astype(object).where(columns.notna(), "").to_numpy().tolist()
    ax.set_yticks(range(len(part)), [", ".join(text for value in row if (text := str(value))) for row in rows])
    style.tidy(ax, grid="x")
    if ratio:
        style.ratio_axis(ax.xaxis, low, high)
    ax.tick_params(axis="y", length=0, labelsize=style.SMALL)
