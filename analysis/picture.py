"""A picture as data: its panels, title, notes and legend. Functions that return one draw it by the decorator `plot`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import wraps
from inspect import Parameter, signature
from itertools import groupby
from typing import TYPE_CHECKING, Any

from icy.core.errors import InvalidSettingError
from icy.core.fields import spell_out_arguments
from icy.core.text import counted

from . import style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.gridspec import GridSpec

    from .order import Facts
    from .plots.panels import ResultBlock

LARGEST = 25.0  # largest width or height of a readable figure, in inches; two and a half pages
AROUND = 2.5  # inches around four rows of panels of a new figure, until it is known how much their texts need
GIVEN = {  # arguments of all plots
    "title": 'title; by default a sentence, "" for none.',
    "width": "width of a new figure, in inches.",
    "axes": "axes to draw on, one per panel; by default a new figure.",
}


@dataclass(frozen=True)
class Panel:
    """A panel of a picture.

    Attributes:
        draw: draws it on axes.
        name: name above it.
        block: name of its block of results; bold, above its panel or above all panels of the block.
        height: height of its axes, in inches.
        x: label of the x axis, which the lowest panels show.
        y: label of the y axis, which the first panels of rows show.
        grid: axes with faint grid lines, "x", "y" or "both".
        finish: draws parts that need the final positions of the axes.
    """

    draw: Callable[[Axes], object]
    name: str = ""
    block: str = ""
    height: float = 1.5
    x: str = ""
    y: str = ""
    grid: str = ""
    finish: Callable[[Axes], object] | None = None


@dataclass(frozen=True)
class Picture:
    """A picture: the panels, and the texts around them.

    Attributes:
        panels: panels, in rows.
        title: sentence above the figure.
        notes: sentences below the figure.
        legend: entries of the legend.
        columns: number of panels side by side; None for as many as there is room for.
        width: width of a new figure in inches, if it depends on the content.
        grid: arguments of `Figure.subplots`, such as `sharex`.
        grouped: whether each block of results has rows of panels of its own.
        blocks: the blocks of results, for the error if they are too many.
        handles: further arguments of the legend.
        after: draws on the figure and its axes, before its size is known; the last argument is whether it is new.
    """

    panels: Sequence[Panel]
    title: str = ""
    notes: Sequence[str] = ()
    legend: Sequence[Artist] = ()
    columns: int | None = 1
    width: float | None = None
    grid: Facts = field(default_factory=dict)
    grouped: bool = False
    blocks: Sequence[ResultBlock] = ()
    handles: Facts = field(default_factory=dict)
    after: Callable[[Figure, Sequence[Axes], bool], object] | None = None

    def draw(
        self, title: str | None = None, width: float | None = None, axes: Axes | Sequence[Axes] | None = None
    ) -> Figure:
        """Draw the picture on a new figure of this width, or on the caller's axes, one per panel."""
        width = width or (self.width if self.width and style.FITTED else style.WIDTH)
        groups = [list(some) for _, some in groupby(self.panels, lambda panel: self.grouped and panel.block)]
        wide = [min(self.columns or style.across(len(some), width), len(some)) for some in groups]
        parts: Sequence[Figure | SubFigure] = ()
        if axes is None:
            figure, parts, outer = self._new(width, groups, wide)
            drawn = [ax for part in parts for ax in part.axes]
        else:
            drawn = style.given_axes([panel.name or panel.block or "all results" for panel in self.panels], axes)
            figure = style.figure_of(drawn[0])
        ends = [
            (at % columns == 0, at + columns >= len(some))
            for some, columns in zip(groups, wide, strict=True)
            for at in range(len(some))
        ]
        for ax, panel, before, (first, lowest) in zip(drawn, self.panels, [None, *self.panels], ends, strict=False):
            style.tidy(ax, panel.grid)
            name = panel.name if parts or not self.grouped else f"{panel.name}\n{panel.block}".strip()
            ax.set_title(style.wrapped(name, style.room(ax), style.MEDIUM), fontsize=style.MEDIUM)
            if panel.block and not self.grouped:
                block = style.wrapped(panel.block, 0.8 * style.room(ax), style.MEDIUM)  # bold letters are wider
                ax.set_title(block, loc="left", fontsize=style.MEDIUM, fontweight="bold")
            if lowest or not parts:
                ax.set_xlabel(style.wrapped(panel.x, style.room(ax), style.MEDIUM))
                ax.tick_params(labelbottom=True)
            if first or not parts or (before is not None and before.y != panel.y):
                ax.set_ylabel(style.wrapped(panel.y, max(1.2, 1.1 * panel.height), style.MEDIUM))
            panel.draw(ax)
        if self.after is not None:
            self.after(figure, drawn, axes is None)
        if self.legend:
            style.legend(figure, drawn, axes is None, self.legend, **self.handles)
        style.entitle(figure, drawn, axes is None, title, self.title, self.notes)
        if parts:
            _fit(figure, parts, outer, groups, wide)
        last = [(ax, panel.finish) for ax, panel in zip(drawn, self.panels, strict=True) if panel.finish is not None]
        if last:
            figure.draw_without_rendering()  # fixes the positions of the axes
        for ax, finish in last:
            finish(ax)
        return figure

    def _new(
        self, width: float, groups: Sequence[Sequence[Panel]], wide: Sequence[int]
    ) -> tuple[Figure, Sequence[Figure | SubFigure], GridSpec]:
        """Return a new figure, the part of each group with its axes, and the grid of the parts."""
        tall = [_heights(some, columns) for some, columns in zip(groups, wide, strict=True)]
        height = sum(map(sum, tall))
        self._refuse_crowd(width, height)
        figure = style.figure(width, height + AROUND * (1 + sum(map(len, tall)) / 4))
        outer = figure.add_gridspec(len(groups), 1, height_ratios=[sum(heights) + 0.5 for heights in tall])
        parts = [figure.add_subfigure(outer[row]) for row in range(len(groups))] if self.grouped else [figure]
        for part, some, columns, heights in zip(parts, groups, wide, tall, strict=True):
            ratios = {"height_ratios": heights}
            grid = part.subplots(len(heights), columns, squeeze=False, gridspec_kw=ratios, **self.grid)
            for ax in grid.flat[len(some) :]:
                ax.remove()
            if self.grouped and some[0].block:
                name = style.wrapped(some[0].block, 0.9 * width, style.MEDIUM)  # bold letters are wider
                part.suptitle(name, x=0.01, ha="left", fontsize=style.MEDIUM, fontweight="bold")
        return figure, parts, outer

    def _refuse_crowd(self, width: float, height: float) -> None:
        """Raise an error if a new figure would be too large to read.

        Raises:
            InvalidSettingError: the width or the height is larger than LARGEST.
        """
        if max(width, height) <= LARGEST or not self.blocks:
            return
        import pandas as pd

        from icy.records.long_table import ROW

        rows, long = sum(len(part.lines) for part in self.blocks), pd.concat([part.long for part in self.blocks])
        varying = [name for name in ("protocol", *ROW[1:]) if long[name].nunique(dropna=True) > 1]
        example = f", as in --where {varying[0]}={long[varying[0]].dropna().iloc[0]}" if varying else ""
        raise InvalidSettingError(
            f"These results have {counted(rows, 'row')} in {counted(len(self.blocks), 'panel')}. Their plot would be "
            f"{width:.0f} by {height:.0f} inches, too large to read: choose some with --model, --grammar or "
            f"--where{example}."
        )


def _heights(panels: Sequence[Panel], columns: int) -> list[float]:
    """Return the height of each row of panels, in inches."""
    return [panel.height * style.STRETCH for panel in panels[::columns]]


def _fit(
    figure: Figure, parts: Sequence[Figure | SubFigure], outer: GridSpec, groups: Sequence[Sequence[Panel]],
    wide: Sequence[int],
) -> None:  # fmt: skip
    """Change the heights of a figure and its parts, so that the axes have their heights and all texts have room."""
    figure.draw_without_rendering()
    lacks = [
        sum(_heights(some, columns)) - sum(ax.bbox.height for ax in part.axes[: len(some) : columns]) / figure.dpi
        for part, some, columns in zip(parts, groups, wide, strict=True)
    ]
    outer.set_height_ratios([part.bbox.height / figure.dpi + lack for part, lack in zip(parts, lacks, strict=True)])
    figure.set_figheight(figure.get_figheight() + sum(lacks))


def plot(describe: Callable[..., Picture]) -> Callable[..., Figure]:
    """Make a function that describes a picture draw it: check the spread, and add `title`, `width` and `axes`.

    A new figure does not depend on the user's settings of matplotlib; on axes of the caller, these hold. A function
    that needs one of the three arguments has it too. The entry `**look` of the docstring becomes an entry for each.
    """
    own = signature(describe)
    added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in GIVEN if name not in own.parameters]

    @wraps(describe)
    def draw(*args: Any, **given: Any) -> Figure:
        from .table_cells import checked_spread

        described = {name: value for name, value in given.items() if name in own.parameters or name not in GIVEN}
        arguments = {**own.bind(*args, **described).arguments, **given}
        checked_spread(arguments.get("spread", "sd"))
        placed = {name: arguments.get(name) for name in GIVEN}
        with style.own_settings() if placed["axes"] is None else nullcontext():
            return describe(*args, **described).draw(**placed)

    draw.__annotations__ = {**describe.__annotations__, "return": "Figure"}
    draw.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[*own.parameters.values(), *added], return_annotation="Figure"
    )
    spell_out_arguments(draw, GIVEN)
    return draw
