"""Acquisition ratios as dots on a logarithmic axis (Icy22 tables 3 to 6 as a picture)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icy.analysis import style
from icy.analysis.order import in_order
from icy.analysis.table_cells import CUT, TableCell, checked_spread
from icy.config.protocols import BASELINE
from icy.core.errors import InvalidSettingError
from icy.records.load import Results

from .panels import Line, ResultBlock, blocks, describe, limits, mark_mean, measured, notes_on_ends, refuse_crowd

ROW_HEIGHT, LEAST_HEIGHT = 0.3, 0.18  # usual height of a row, and least height to fit on a page, in inches
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
    row = min(ROW_HEIGHT, max(LEAST_HEIGHT, room / sum(counts)))
    size = (width or style.WIDTH, 0.75 + sum(row * count + 0.5 for count in counts))
    if axes is None:
        refuse_crowd(size, parts)
    figure, drawn = style.panels(
        [part.name or "all models" for part in parts], axes, size, gridspec_kw={"height_ratios": counts}, sharex=True
    )
    looks = style.grammar_looks(in_order(long["grammar"]))
    ends = limits([line for part in parts for line in part.lines], looks, spread, ratio=True)
    for ax, part in zip(drawn, parts, strict=True):
        _panel(ax, part, looks, spread, ends)
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


def _panel(ax: Axes, part: ResultBlock, looks: dict[str, style.Look], spread: str, ends: tuple[float, float]) -> None:
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
            _dot(ax, y + (i - (len(part.grammars) - 1) / 2) * step, line, cell, looks[grammar])


def _dot(ax: Axes, y: float, line: Line, cell: TableCell, look: style.Look) -> None:
    down, up = line.bar(cell)
    ax.errorbar([cell.center], [y], xerr=[[down], [up]], fmt="none", ecolor=look.color, elinewidth=0.9)
    face = "white" if cell.censored else look.color
    ax.plot([cell.center], [y], look.marker, markersize=MARK, markerfacecolor=face, markeredgecolor=look.color,
            markeredgewidth=0.9, clip_on=False, zorder=3)  # fmt: skip
    mark_mean(ax, "x", y, line, cell, look.color)
