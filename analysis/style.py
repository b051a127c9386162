"""The style of all plots: colors, dashes and marks that differ under color blindness and in gray print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from icy.core.errors import InvalidSettingError, unknown
from icy.core.text import counted, natural

from .own_settings import RC
from .own_settings import load_matplotlib as load_matplotlib  # re-exported, like the next
from .own_settings import own_settings as own_settings

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import Formatter

    from icy.analysis.order import Facts

    from .figures import ShownFigure

# Okabe and Ito's colors, which are distinct under every common color blindness; dashes help in gray print.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
NAMED_DASHES: dict[str, list[float]] = {"-": [], "--": [4, 2], "-.": [6, 2, 1, 2], ":": [1, 2]}
DASHES = tuple(NAMED_DASHES)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "----")
GRAY = "#8c8c8c"  # for lines and marks in the background
DIM = "#595959"  # for secondary text
CHANCE: Facts = {"color": "black", "linewidth": 0.9, "linestyle": ":"}  # line at the accuracy of a guess
CHANCE_NOTE = "dotted line: the accuracy of a guess"
WIDTH, TALLEST = 7.0, 10.0  # text area of a page, in inches
NOTES = 2  # lines of notes for which a figure has room
SMALL, MEDIUM, LARGE = 7.0, 8.0, 8.5  # points: tick labels and notes, names, titles
LEAST = 5.0  # smallest letters, in cells, in points
LINE = 1.4  # line width, in points
STRETCH = 1.0  # factor of all heights
FITTED = True  # whether the width of a figure depends on its content
CAPTIONED = False  # whether title and notes are only in the figure's caption
ARROW = {"arrowstyle": "-|>,head_width=0.12,head_length=0.25", "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
PER_MODEL = 7  # up to this many models have separate colors; of more, families have
TILT = 40  # degrees, for names that are too long to be side by side
NARROWEST = 1.6  # least width of one of several panels, in inches
COARSE, FINE = (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)  # ticks of logarithmic axes, times powers of ten
# Values of the constants above for other media: a column of a paper, and a slide of 160 by 90 mm.
STYLES: dict[str, Facts] = {
    "paper": {"WIDTH": 3.25, "SMALL": 8.0, "MEDIUM": 8.0, "LARGE": 8.0, "LEAST": 8.0, "FITTED": False,
              "CAPTIONED": True},
    "slides": {"WIDTH": 6.3, "TALLEST": 6.0, "SMALL": 10.0, "MEDIUM": 11.0, "LARGE": 12.0, "LEAST": 9.0, "LINE": 1.8,
               "STRETCH": 1.3, "NARROWEST": 2.0, "FITTED": False},
}  # fmt: skip


@dataclass(frozen=True)
class Look:
    """Color, dash and mark of a model or grammar, the same in every plot."""

    color: str
    dash: Any = "-"
    marker: str = "o"
    hollow: bool = False

    @property
    def face(self) -> str:
        """Fill color of the mark."""
        return "white" if self.hollow else self.color

    @property
    def dashes(self) -> list[float]:
        """Lengths of dashes and gaps, in line widths; empty for a solid line."""
        return list(self.dash[1]) if isinstance(self.dash, tuple) else NAMED_DASHES[self.dash]

    def handle(self, label: str, size: float = 4.0, line: bool = True, **more: Any) -> Line2D:
        """Return a legend entry: a mark of `size` points, with or without a line."""
        from matplotlib.lines import Line2D

        mark = {"marker": self.marker, "markersize": size, "markerfacecolor": self.face}
        look: Facts = {**mark, "color": self.color, "linestyle": self.dash if line else "", **more}
        return Line2D([], [], label=label, **look)


GRAMMARS = {
    "concat": Look("#000000", "-", "o"),
    "perm": Look("#0072B2", (0, (5, 1.5)), "s"),
    "proj": Look("#E69F00", (0, (6, 1.5, 1, 1.5)), "^"),
    "pairsum": Look("#CC79A7", (0, (1, 1)), "v"),
    "rot": Look("#D55E00", (0, (9, 1.5, 1, 1.5, 1, 1.5)), "D"),
    "shuf": Look("#56B4E9", (0, (3, 1, 1, 1, 1, 1)), "P"),
    "shufdet": Look("#009E73", (0, (8, 2)), "X"),
    "hol": Look(GRAY, (0, (1, 2.5)), "p"),
}


def grammar_looks(grammars: Iterable[str]) -> dict[str, Look]:
    """Return the look of each grammar: fixed for the papers' grammars; others, such as languages, get looks in order.

    Example:
        >>> grammar_looks(["rot", "rot+perm"])["rot"].color
        '#D55E00'
    """
    names = list(grammars)
    used = [GRAMMARS[name].color for name in names if name in GRAMMARS]
    colors = sorted(COLORS[:7], key=lambda color: color in used)  # unused colors first
    places = {name: i for i, name in enumerate(name for name in names if name not in GRAMMARS)}
    others = {
        name: Look(colors[i % len(colors)], DASHES[i % len(DASHES)], MARKERS[i % len(MARKERS)], hollow=True)
        for name, i in places.items()
    }
    return {name: GRAMMARS[name] if name in GRAMMARS else others[name] for name in names}


def family(model: str) -> str:
    """Return the family of a model: its name without side, number of layers and cell.

    Example:
        >>> family("sender/RNNZero2L:GRU")
        'RNNZero'
    """
    return re.sub(r"\d+L(v\d+)?$", "", model.rpartition("/")[2].partition(":")[0])


def cell(model: str) -> str:
    """Return the recurrent cell of a model, or "" if it has none."""
    return model.partition(":")[2]


def model_looks(models: Iterable[str]) -> dict[str, Look]:
    """Return the look of each model: a color and mark per model; for over seven, a color per family, a mark per cell.

    In the latter case colors may be used twice, so a family without cells has a separate mark, and models with two
    layers (`2L`) are hollow. The order of the models makes no difference.
    """
    models = sorted(set(models), key=natural)
    if len(models) <= PER_MODEL:
        return {name: Look(COLORS[i], DASHES[i % len(DASHES)], MARKERS[i]) for i, name in enumerate(models)}
    families = list(dict.fromkeys(map(family, models)))
    marked = list(dict.fromkeys(filter(None, map(cell, models))))  # cells first, then families without cells
    marked += [name for name in families if name not in {family(model) for model in models if cell(model)}]
    return {
        name: Look(
            COLORS[families.index(family(name)) % 7],
            "-",
            MARKERS[marked.index(cell(name) or family(name)) % len(MARKERS)],
            hollow="2L" in name,
        )
        for name in models
    }


# -- figures -----------------------------------------------------------------------------------------------------------


@contextmanager
def plot_style(name: str | None) -> Iterator[None]:
    """Draw the plots of a `with` block in a style.

    As with `matplotlib.rc_context`, the style applies to the process: plots of other threads have it too.

    Args:
        name: "paper" for a column of 3.25 inches with letters of 8 points, and title and notes only in the caption
            (`figure.caption`); "slides" for a slide of 6.3 inches with letters of 10 to 12 points; None for no change.

    Raises:
        UnknownNameError: an unknown style.

    Example:
        >>> from icy.analysis import style
        >>> with style.plot_style("paper"):
        ...     style.WIDTH
        3.25
    """
    load_matplotlib()
    from matplotlib import rc_context

    if name is not None and name not in STYLES:
        raise unknown("style of plots", name, list(STYLES))
    constants, values = globals(), STYLES.get(name or "", {})
    usual, usual_rc = {constant: constants[constant] for constant in values}, dict(RC)
    constants.update(values)
    if values:
        RC.update({"font.size": MEDIUM, "legend.fontsize": SMALL, "figure.titlesize": LARGE})
    try:
        with rc_context(RC):
            yield
    finally:
        constants.update(usual)
        RC.clear()
        RC.update(usual_rc)


def figure(width: float | None = None, height: float = 3.0) -> ShownFigure:
    """Return an empty figure with a constrained layout, without pyplot; sizes in inches, the default width is WIDTH."""
    from .figures import ShownFigure

    return ShownFigure(figsize=(width or WIDTH, height * STRETCH), layout="constrained")


def panels(
    names: Sequence[str], size: tuple[float, float], across: int = 1, **more: Any
) -> tuple[ShownFigure, list[Axes]]:
    """Return a new figure and its axes, one per panel.

    Args:
        names: names of the panels.
        size: size of the figure, in inches.
        across: number of panels side by side.
        **more: passed to `Figure.subplots`.
    """
    made = figure(*size)
    grid = made.subplots(-(-len(names) // across), across, squeeze=False, **more)
    for ax in grid.flat[len(names) :]:
        ax.remove()
    return made, list(grid.flat[: len(names)])


def across(count: int, width: float) -> int:
    """Return the number of panels side by side in a figure of this width, so that rows are about equally full.

    Example:
        >>> across(7, WIDTH), across(5, WIDTH), across(5, 3.4)
        (4, 3, 2)
    """
    most = max(1, int(width / NARROWEST))
    return -(-count // -(-count // most))


def given_axes(names: Sequence[str], axes: Axes | Sequence[Axes]) -> list[Axes]:
    """Return axes of the caller as a list.

    Args:
        names: names of the panels.
        axes: axes, one per panel; may be an array of subplots.

    Raises:
        InvalidSettingError: the number of axes is not the number of panels.
    """
    import numpy as np
    from matplotlib.axes import Axes

    names = [name.replace("\n", ", ") for name in names]
    own = [axes] if isinstance(axes, Axes) else list(np.ravel(np.array(axes, dtype=object)))  # an array for subplots
    if len(own) != len(names):
        raise InvalidSettingError(
            f"This plot has {counted(len(names), 'panel')} ({'; '.join(names)}), and {len(own)} axes were given to "
            "draw on: pass one per panel, leave out `axes` for a new figure, or plot fewer results."
        )
    return own


def figure_of(ax: Axes) -> Figure:
    """Return the figure of axes."""
    return ax.figure.figure  # a subfigure's parent too; get_figure(root=True) needs matplotlib 3.10


def room(ax: Axes) -> float:
    """Return the width of axes in inches; of a new figure, about its width after the labels have their room."""
    return float(ax.get_window_extent().width) / figure_of(ax).dpi


def rows(ax: Axes, names: Sequence[str], size: float, stripes: bool = False) -> None:
    """Name the rows of axes, from the top; every other row may have a gray background."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0, labelsize=size)
    for place in range(0, len(names), 2) if stripes else ():
        ax.axhspan(place - 0.5, place + 0.5, color="#f3f3f3", zorder=0, linewidth=0)


def tidy(ax: Axes, grid: str = "") -> None:
    """Give axes small tick labels, no box, and faint grid lines on the axes in `grid` ("x", "y", "both")."""
    ax.tick_params(labelsize=SMALL, length=2.5, pad=2)
    ax.tick_params(which="minor", length=1.5)
    ax.spines[["top", "right"]].set_visible(False)
    for side in (ax.xaxis, ax.yaxis):
        side.label.set_fontsize(MEDIUM)
    if grid:
        ax.grid(axis=grid, color="#dddddd", linewidth=0.6)  # type: ignore[arg-type]
        ax.set_axisbelow(True)


def head(ax: Axes, name: str, width: float) -> None:
    """Write the name of a panel above it, wrapped to the width of the panel in inches."""
    ax.set_title(wrapped(name, 0.8 * width, MEDIUM), fontsize=MEDIUM)


def tilt(names: Sequence[str], room: float, side: str = "right", size: float = MEDIUM) -> Facts:
    """Return text properties that make names below an axis (above it with "left") fit into `room` inches each."""
    if max(text_size(name, size)[0] for name in names) <= 66 * room:
        return {}
    return {"rotation": TILT, "ha": side, "rotation_mode": "anchor"}


def ratio_axis(axis: Axis, low: float, high: float) -> None:
    """Put ticks with plain numbers (1, 2, 5, 10, ...) between the limits of a logarithmic axis."""
    ticks = _ticks_between(COARSE, low, high)
    put_ticks(axis, ticks if len(ticks) > 2 else _ticks_between(FINE, low, high), "{x:g}")


def count_axis(axis: Axis, low: float, high: float) -> None:
    """Put a few ticks with short numbers (5k, 100k, 2M) between the limits of a logarithmic axis."""
    from matplotlib.ticker import EngFormatter

    tens, ticks = _ticks_between((1,), low, high), _ticks_between(COARSE, low, high)
    ticks = tens if len(tens) > 1 else ticks if len(ticks) > 1 else _ticks_between(FINE, low, high)
    put_ticks(axis, ticks, EngFormatter(sep=""))


def put_ticks(axis: Axis, ticks: Sequence[float], form: Formatter | str) -> None:
    """Put major ticks at these places of an axis, with labels by a formatter or format string, and no minor ticks."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set(major_locator=FixedLocator(ticks), minor_locator=NullLocator(), major_formatter=form)


def _ticks_between(steps: Sequence[float], low: float, high: float) -> list[float]:
    numbers = [step * 10.0**power for power in range(-3, 10) for step in steps]
    return [number for number in numbers if low <= number * 1.001 and number <= high * 1.001]


def entitle(
    figure: Figure, axes: Sequence[Axes], own: bool, title: str | None, usual: str, notes: Sequence[str] = ()
) -> None:
    """Write the title above a new figure and notes below it, and make it taller if these have more than NOTES lines.

    On axes of the caller, write only an explicit title.

    Args:
        figure: the figure.
        axes: panels of the figure.
        own: whether the figure is new.
        title: title; "" for none, None for the default.
        usual: default title.
        notes: sentences below the figure.
    """
    from .figures import ShownFigure, show_as_it_is

    if not own:
        if title:
            axes[0].set_title(title, fontsize=LARGE, loc="left")
        for ax in axes:
            show_as_it_is(ax)  # `ShownFigure` does this itself
        return
    width = 0.95 * figure.get_figwidth()
    if isinstance(figure, ShownFigure):
        sentences = [text[:1].upper() + text[1:].rstrip(".") + "." for text in (title or usual, *notes) if text]
        figure.caption = " ".join(sentences)
    shown = ("" if CAPTIONED else usual) if title is None else title
    if shown:
        figure.suptitle(balanced(shown, width, LARGE), x=0.01, ha="left", fontsize=LARGE)
    if notes and not CAPTIONED:
        text = "\n".join(balanced(note, width, SMALL) for note in notes)
        figure.set_figheight(figure.get_figheight() + 1.35 * SMALL * max(0, text.count("\n") + 1 - NOTES) / 72)
        figure.supxlabel(text, x=0.01, ha="left", fontsize=SMALL, color=DIM)


def wrapped(text: str, width: float, size: float, parts: str = r"\S+\s*") -> str:
    """Break a text, of `size` points, into lines that fit into `width` inches.

    Args:
        text: the text.
        width: width of the lines, in inches.
        size: size of the letters, in points.
        parts: pattern of a part to keep together, such as a word. A longer part is broken after signs such as ":".
    """

    def fits(line: str) -> bool:
        return text_size(line.rstrip(), size)[0] <= 72 * width

    lines = [""]
    for part in re.findall(parts, text):
        for piece in [part] if fits(part) else re.findall(r"[^:/+_,-]*[:/+_,-]+\s*|[^:/+_,-]+", part):
            joined = lines[-1] + piece
            lines[-1:] = [joined] if not lines[-1] or ("\n" not in lines[-1] and fits(joined)) else [lines[-1], piece]
    return "\n".join(line.rstrip() for line in lines)


def balanced(text: str, width: float, size: float) -> str:
    """Break a text as `wrapped` does, into as few lines, but at "; " if possible, else into lines of similar length."""
    usual = wrapped(text, width, size)
    even = (wrapped(text, share * width, size) for share in (0.6, 0.7, 0.8, 0.9))
    options = [wrapped(text, width, size, ".+?(?:; |$)"), *even]
    return next((one for one in options if one.count("\n") == usual.count("\n")), usual)


@cache
def text_size(text: str, size: float) -> tuple[float, float]:
    """Return width and height of a line of text, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    width, height, _ = TextToPath().get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(width), float(height)


def legend(figure: Figure, axes: Sequence[Axes], own: bool, handles: Sequence[Artist], **more: Any) -> None:
    """Draw a legend: right of a new figure, below it if CAPTIONED, or in the last of the caller's axes."""
    style = {"fontsize": SMALL, "frameon": False, **more}
    if not own:
        axes[-1].legend(handles=list(handles), **{**style, "frameon": True, "framealpha": 0.8})
    elif CAPTIONED:  # no room at the right, and no notes below
        widest = max(text_size(handle.get_label(), SMALL)[0] for handle in handles)
        rows = -(-len(handles) // max(1, int(72 * figure.get_figwidth() / (widest + 4 * SMALL))))
        figure.set_figheight(figure.get_figheight() + 1.35 * SMALL * rows / 72 + 0.1)
        gaps = {"labelspacing": 0.35, "borderaxespad": 0.2, "handletextpad": 0.6, "columnspacing": 1.2}
        place = {"loc": "outside lower center", "ncols": -(-len(handles) // rows)}
        figure.legend(handles=list(handles), **{**gaps, **style, **place})
    else:
        figure.legend(handles=list(handles), **{"loc": "outside right center", **style})


def ink(color: Sequence[float]) -> str:
    """Return "black" or "white", whichever has more contrast (WCAG 2) with a color (red, green, blue from 0 to 1).

    Example:
        >>> ink((1, 1, 0)), ink((0, 0, 0.5))
        ('black', 'white')
    """

    def linear(part: float) -> float:
        return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4

    red, green, blue = map(linear, color[:3])
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "white"
