"""Results with error bars: bars (in the form of Icy22 figure 3), ratios as dots, and differences of two results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MultipleLocator

from icy.analysis import style
from icy.analysis.order import Facts, Series, in_order
from icy.analysis.picture import Panel, Picture, plot
from icy.analysis.table_cells import CUT, TableCell
from icy.analysis.tables.paired import LEVEL, ResultsComparison, identifying_columns
from icy.config.protocols import BASELINE
from icy.core.errors import InvalidSettingError
from icy.records.load import Results

from .panels import Line, ResultBlock, blocks, describe, draw_means, limits, measured, notes_on_ends, value_axis

UNMEASURED = "–"
FEW = 5  # up to this many models, bars are drawn in groups by default
ROW_HEIGHT, GROUPS_HEIGHT = 0.16, 1.6  # height of one bar and of a panel of groups, in inches
BY = ("grammar", "measure")
_FILL: Facts = {"edgecolor": "white", "linewidth": 0}  # of bars, with a color for the screen and a hatch for gray print


@plot
def bars(results: Results, *, by: str | None = None, spread: str = "sd") -> Picture:
    """Bars with errors: groups by grammar for few models, a panel per grammar for many.

    The form is that of Icy22 figure 3. Bars of ratios start at 1, the ratio of concat, on a logarithmic axis, with
    geometric means. An arrow marks a mean
    over runs if some were cut at the cap, because the true ratio is larger. A dotted line shows the accuracy of a
    guess.

    Args:
        results: a ProbeResult, or its long table.
        by: "measure" for one panel with a group of bars per grammar, or "grammar" for a panel per grammar; both have a
            bar per model. The default is "measure" for up to five models, else "grammar". Sides, protocols and
            representations have separate panels.
        spread: "sd", "sem" or "ci95".
        **look: title, width and axes; see `icy.analysis.picture.plot`.

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
    if by not in (None, *BY):
        raise InvalidSettingError(f"`by` must be {' or '.join(BY)}; not '{by}'.")
    long = measured(results)
    parts = blocks(long)
    title, notes = describe(long, spread, bars=True)
    ratio = all(part.is_ratio for part in parts)
    notes = [note.replace(CUT, "arrow:" if ratio else f"{CUT}, or arrow on a bar of ratios:") for note in notes]
    notes += notes_on_ends(parts, dict.fromkeys(g for part in parts for g in _shown(part)), spread)
    notes += [f"{UNMEASURED} not measured"] * any(part.has_gaps(_shown(part), spread) for part in parts)
    notes += [style.CHANCE_NOTE] if any(part.chance for part in parts if not part.is_ratio) else []
    if (by or ("measure" if max(len(part.lines) for part in parts) <= FEW else "grammar")) == "measure":
        labels = list(dict.fromkeys(line.label for part in parts for line in part.lines))
        fills: dict[str, Any] = {
            label: {**_FILL, "facecolor": style.COLORS[i % 7], "hatch": style.HATCHES[i % len(style.HATCHES)]}
            for i, label in enumerate(labels)
        }
        panels = [
            Panel(partial(_groups, part, fills, spread), "", part.name, GROUPS_HEIGHT, y=part.axis, grid="y")
            for part in parts
        ]
        legend = [Patch(**fill, label=label) for label, fill in fills.items()] if len(labels) > 1 else []
        return Picture(panels, title, notes, legend, blocks=parts)
    panels = [
        Panel(partial(_column, part, g, spread), g, part.name, ROW_HEIGHT * len(part.lines), x=part.axis, grid="x")
        for part in parts for g in _shown(part)
    ]  # fmt: skip
    grid = {"sharex": True, "sharey": True}
    return Picture(panels, title, notes, columns=None, grid=grid, grouped=True, blocks=parts)


def _shown(part: ResultBlock) -> list[str]:
    """Return the grammars to draw; for ratios, without concat."""
    return [g for g in part.grammars if not (part.is_ratio and g == BASELINE)] or part.grammars


def _groups(part: ResultBlock, fills: Mapping[str, Facts], spread: str, ax: Axes) -> None:
    """Draw a group of bars per grammar."""
    grammars = _shown(part)
    value_axis(ax, "y", part, limits(part.cells(spread, grammars), part.is_ratio))
    ax.set_xticks(range(len(grammars)), grammars, **style.tilt(grammars, style.room(ax) / len(grammars)))
    ax.tick_params(axis="x", length=0, labelsize=style.MEDIUM)
    ax.set_xlim(-0.5, len(grammars) - 0.5)  # includes grammars without a value
    thick = 0.8 / len(part.lines)
    for i, line in enumerate(part.lines):
        means = [(n - 0.4 + (i + 0.5) * thick, line, line.cell(g, spread)) for n, g in enumerate(grammars)]
        _bars(ax, "y", means, part, 0.92 * thick, fills[line.label])


def _column(part: ResultBlock, grammar: str, spread: str, ax: Axes) -> None:
    """Draw a bar per model."""
    style.rows(ax, [line.label for line in part.lines], style.SMALL)
    value_axis(ax, "x", part, limits(part.cells(spread, _shown(part)), part.is_ratio))
    if not part.is_ratio:
        ax.xaxis.set_major_locator(MultipleLocator(0.5))  # more ticks would overlap the next panel's
        ax.xaxis.set_major_formatter("{x:g}")
    means = [(n, line, line.cell(grammar, spread)) for n, line in enumerate(part.lines)]
    _bars(ax, "x", means, part, 0.75, {**_FILL, "facecolor": style.COLORS[0]})


def _bars(
    ax: Axes, along: str, means: Sequence[tuple[float, Line, TableCell | None]], part: ResultBlock, thick: float,
    fill: Facts,
) -> None:  # fmt: skip
    """Draw bars along an axis ("x" or "y"), with error bars and with remarks at their ends."""
    upright, base = along == "y", 1.0 if part.is_ratio else 0.0
    found = [(place, cell.center - base) for place, _, cell in means if cell is not None and cell.seeds]
    at, lengths = zip(*found, strict=True) if found else ((), ())
    if upright:
        ax.bar(at, lengths, thick, bottom=base, **fill)
    else:
        ax.barh(at, lengths, thick, left=base, **fill)
    draw_means(ax, along, means, "black", fmt="none", capsize=1.5, capthick=0.9)
    for place, line, cell in means:
        end = base if cell is None or not cell.seeds else cell.interval(line.cap)[1]
        remark = UNMEASURED if cell is None else "failed" if not cell.seeds else CUT * bool(cell.censored)
        if remark and not (remark == CUT and line.is_ratio):  # ratios have an arrow
            ax.annotate(
                remark, (place, end) if upright else (end, place), (0, 1) if upright else (2, 0),
                textcoords="offset points", fontsize=style.SMALL, color=style.DIM,
                ha="center" if upright else "left", va="bottom" if upright else "center",
                rotation=90 if upright and len(remark) > 1 else 0,
            )  # fmt: skip


# -- acquisition ratios as dots on a logarithmic axis (Icy22 tables 3 to 6 as a picture) -------------------------------


DOTS_HEIGHT, LEAST_HEIGHT = 0.3, 0.18  # usual height of a row, and least height to fit on a page, in inches
BAND = 0.72  # fraction of a row's height over which the dots of its grammars are spread
MARK = 4.5  # points
X_AXIS = "updates to the target as a ratio to concat's"


@plot
def ratios(results: Results, *, spread: str = "sd") -> Picture:
    """Ratios on a log axis: a row per model, a dot per grammar, arrows for cut runs.

    Dots are geometric means; the line at 1 is concat. A hollow dot with an arrow to the right is a mean over runs if
    some were cut at the cap: the true ratio is larger. The sign ~ marks ratios of coarse evaluations.

    Args:
        results: a ProbeResult, or its long table, of the protocol `acquire`; other protocols are left out. Sides and
            representations have separate panels.
        spread: "sd", "sem" or "ci95".
        **look: title, width and axes; see `icy.analysis.picture.plot`.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no ratios, an unknown spread, a wrong number of axes, or too many rows to be read.
    """
    every = measured(results)
    long = every[every["measure"].eq("ratio") & every["grammar"].ne(BASELINE)]
    if not len(long):
        raise InvalidSettingError(_explain_no_ratios(sorted(set(every["protocol"].dropna().astype(str)))))
    parts, looks = blocks(long), style.grammar_looks(in_order(long["grammar"]))
    rows = sum(len(part.lines) for part in parts)
    row = min(DOTS_HEIGHT, max(LEAST_HEIGHT, (style.TALLEST - 0.75 - 0.5 * len(parts)) / rows))
    ends = limits([pair for part in parts for pair in part.cells(spread)], ratio=True)
    panels = [
        Panel(partial(_dots, part, looks, spread, ends), "", part.name, row * len(part.lines), X_AXIS, grid="x")
        for part in parts
    ]
    legend = [replace(look, hollow=False).handle(name, MARK, line=False) for name, look in looks.items()]
    title, notes = describe(long, spread, bars=True)
    notes = [note.replace(CUT, "hollow, with an arrow:") for note in notes] + notes_on_ends(parts, looks, spread)
    return Picture(panels, title, notes, legend, grid={"sharex": True}, blocks=parts)


def _explain_no_ratios(protocols: Sequence[str]) -> str:
    if "acquire" in protocols:
        return "The results of the protocol 'acquire' have only concat, and its ratio is 1: probe another grammar too."
    theirs = f": their protocol is {' and '.join(protocols)}" if protocols else ""
    return (
        f"These results have no acquisition ratios{theirs}; "
        f"`icy probe --protocol acquire` measures ratios, and `icy plot bars` draws these results."
    )


def _dots(part: ResultBlock, looks: Mapping[str, style.Look], spread: str, ends: tuple[float, float], ax: Axes) -> None:
    """Draw a row per model, with the dots of its grammars at slightly different heights."""
    style.rows(ax, [line.label for line in part.lines], style.MEDIUM, stripes=True)
    value_axis(ax, "x", part, ends)
    for cap in sorted({float(cap) for cap in part.long.loc[part.long["censored"].astype(bool), "cap"].dropna()}):
        ax.axvline(cap, color=style.GRAY, linewidth=0.8, linestyle=":", zorder=1)
        ax.annotate("cap", (cap, 1), (0, 1), xycoords=("data", "axes fraction"), textcoords="offset points",
                    ha="center", va="bottom", fontsize=style.SMALL, color=style.DIM)  # fmt: skip
    step = BAND / len(part.grammars)
    for y, line in enumerate(part.lines):
        for i, grammar in enumerate(part.grammars):
            cell, look = line.cell(grammar, spread), looks[grammar]
            face = "white" if cell is not None and cell.censored else look.color
            mark = {"fmt": look.marker, "markersize": MARK, "markeredgewidth": 0.9, "markerfacecolor": face}
            place = y + (i - (len(part.grammars) - 1) / 2) * step
            draw_means(ax, "x", [(place, line, cell)], look.color, color=look.color, zorder=3, clip_on=False, **mark)


# -- differences between two results as dots with intervals ------------------------------------------------------------


ROW = 0.19  # inches
ROOM = 1.3  # factor between the limits of the axis and the smallest and largest quotient
UP, DOWN = style.COLORS[1], style.COLORS[0]  # colors of effects that are larger, or smaller, in the second result


@plot
def differences(comparison: ResultsComparison) -> Picture:
    """Draw each cell's effect with its 95 % interval, and its pairs of runs as small ticks.

    Ratios, on a logarithmic axis, and other values have separate panels. An effect that is significant after Holm's
    correction is in color. An effect that is only a bound is a hollow arrow. An interval beyond the axis ends in an
    arrow.

    Args:
        comparison: comparison of two results.
        **look: title, width and axes; see `icy.analysis.picture.plot`.

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
    panels = [
        Panel(partial(_effects, part, comparison, ratio), height=ROW * len(part), grid="x",
              name="ratios" if ratio and cells["measure"].ne("ratio").any() else "")
        for ratio, part in cells.groupby(cells["measure"].eq("ratio"), sort=True)
    ]  # fmt: skip
    shown = {_looks(cell, comparison) for _, cell in cells.iterrows()}
    entries = [(label, style.Look(color)) for label, color in sorted(shown)]
    if cells["bound"].ne("").any():
        entries.append(("a bound: further that way", style.Look("black", marker=">", hollow=True)))
    first, second = comparison.names
    notes = ["mark and line: effect and its 95 % interval; gray ticks: pairs of runs; arrow: the line continues"]
    legend = [look.handle(label, 4.5, line=False) for label, look in entries]
    return Picture(panels, f"How {second} differs from {first}", notes, legend)


def _looks(cell: Series, comparison: ResultsComparison) -> tuple[str, str]:
    """Return the legend text of a cell, and its color."""
    first, second = comparison.names
    if not cell["p_holm"] < LEVEL:
        return f"not significantly different from {first}", style.DIM
    larger = cell["effect"] > (1.0 if cell["measure"] == "ratio" else 0.0)
    return (f"larger in {second}", UP) if larger else (f"smaller in {second}", DOWN)


def _effects(part: pd.DataFrame, comparison: ResultsComparison, ratio: bool, ax: Axes) -> None:
    """Draw a row per cell, with its effect, interval and pairs of runs."""
    first, second = comparison.names
    columns = part[identifying_columns(part)]
    texts = columns.astype(object).where(columns.notna(), "").to_numpy().tolist()
    style.rows(ax, [", ".join(filter(None, map(str, row))) for row in texts], style.SMALL, stripes=True)
    ax.set_xscale("log" if ratio else "linear")
    ax.axvline(1.0 if ratio else 0.0, color="black", linewidth=0.8, zorder=1)
    ax.set_xlabel(f"{second} / {first}, of geometric means" if ratio else f"{second} - {first}")
    for y, (place, cell) in enumerate(part.iterrows()):
        runs = comparison.runs[comparison.runs["cell"] == place]
        gaps = runs["second"] / runs["first"] if ratio else runs["difference"]
        ax.plot(gaps, [y] * len(gaps), "|", color=style.GRAY, markersize=5, markeredgewidth=0.8, zorder=2)
        _, color = _looks(cell, comparison)
        face, mark = "white" if cell["bound"] else color, cell["bound"] or "o"  # "<" and ">" are marks too
        ax.plot([cell["effect"]], [y], mark, markersize=4.5, markerfacecolor=face, markeredgecolor=color, zorder=4)
    low, high = ax.get_xlim()  # intervals of few seeds may exceed the limits
    room = (high - low) / 4
    low, high = (low / ROOM, high * ROOM) if ratio else (low - room, high + room)
    ax.set_xlim(low, high)
    if ratio:
        style.ratio_axis(ax.xaxis, low, high)
    for y, (_, cell) in enumerate(part.iterrows()):
        if cell["test"] == "t":
            color = _looks(cell, comparison)[1]
            ax.plot([cell["low"], cell["high"]], [y, y], color=color, linewidth=1.2, zorder=3)
            for end, mark, beyond in ((low, "<", cell["low"] < low), (high, ">", cell["high"] > high)):
                if beyond:
                    ax.plot([end], [y], mark, color=color, markersize=4, clip_on=False, zorder=3)
