"""Names beside points that do not lie on one another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.text import Annotation

from .. import style

DIRECTIONS = ((1, 0), (-1, 0), (-1, 1), (0, 1), (1, 1), (0, -1), (1, -1), (-1, -1))  # the first are preferred
DISTANCES = (4.5, 9.0, 15.0, 23.0, 33.0, 45.0, 60.0)  # points
LEADER = 12.0  # the distance from where on a line leads from a point to its name
MARK, STROKE = 3.5, 1.0  # half the width of a mark and of a line, in points
COVERED, CROSSED = 100.0, 0.5  # what it costs to lie on a mark or a text, and on a line, per square point
Way = Sequence[tuple[float, float]]  # corners of a line, in data coordinates


class Box(NamedTuple):
    """A rectangle in points."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        across = min(self.right, other.right) - max(self.left, other.left)
        up = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, across) * max(0.0, up)

    @property
    def area(self) -> float:
        """Its area."""
        return (self.right - self.left) * (self.top - self.bottom)


def place_labels(
    ax: Axes, points: Way, texts: Sequence[str], lines: Sequence[Way] = (), size: float = style.SMALL
) -> list[Annotation]:
    """Write a text beside each point: one after another, where it covers least of marks, lines and texts, and near.

    To be called last, when the axes have their limits and the figure all that takes room in it.

    Args:
        ax: where the points are.
        points: in data coordinates.
        texts: one for each.
        lines: that are drawn.
        size: of the letters, in points.
    """
    figure = style.figure_of(ax)
    figure.draw_without_rendering()  # so that the axes are where they are going to be
    scale = 72 / figure.dpi
    where = [(float(x) * scale, float(y) * scale) for x, y in ax.transData.transform(points)]
    frame = Box(*(float(v) * scale for v in ax.bbox.extents))
    taken = [(_around(x, y, MARK), COVERED) for x, y in where]
    for line in lines:
        corners = [(float(x) * scale, float(y) * scale) for x, y in ax.transData.transform(line)]
        taken += [(box, CROSSED) for box in _along(corners)]
    written = []
    for (x, y), point, text in zip(where, points, texts, strict=True):
        extent = style.text_size(text, size)
        offset, box = min(
            ((offset, _box(x, y, offset, extent)) for offset in _offsets()),
            key=lambda choice: _cost(choice, taken, frame),
        )
        taken.append((box, COVERED))
        written.append(_write(ax, point, text, offset, size))
    return written


def _around(x: float, y: float, half: float) -> Box:
    return Box(x - half, y - half, x + half, y + half)


def _along(corners: Way) -> list[Box]:
    """Boxes along a line."""
    found = []
    for (x0, y0), (x1, y1) in pairwise(corners):
        count = 1 + int(max(abs(x1 - x0), abs(y1 - y0)) / (2 * STROKE))
        found += [_around(x0 + (x1 - x0) * i / count, y0 + (y1 - y0) * i / count, STROKE) for i in range(count)]
    return found


def _offsets() -> Iterator[tuple[float, float]]:
    """From the point to the nearest edge or corner of the text."""
    for distance in DISTANCES:
        for across, up in DIRECTIONS:
            shorter = 0.7 if across and up else 1.0
            yield across * distance * shorter, up * distance * shorter


def _box(x: float, y: float, offset: tuple[float, float], extent: tuple[float, float]) -> Box:
    left = x + offset[0] - (0 if offset[0] > 0 else extent[0] if offset[0] < 0 else extent[0] / 2)
    bottom = y + offset[1] - (0 if offset[1] > 0 else extent[1] if offset[1] < 0 else extent[1] / 2)
    return Box(left - 1, bottom - 1, left + extent[0] + 1, bottom + extent[1] + 1)


def _cost(choice: tuple[tuple[float, float], Box], taken: Sequence[tuple[Box, float]], frame: Box) -> float:
    """What it covers and what is outside the axes, before how far it is."""
    (across, up), box = choice
    covered = sum(weight * box.overlap(other) for other, weight in taken)
    outside = COVERED * (box.area - box.overlap(frame))
    return covered + outside + float((across**2 + up**2) ** 0.5)


def _write(ax: Axes, point: tuple[float, float], text: str, offset: tuple[float, float], size: float) -> Annotation:
    across, up = offset
    far = (across**2 + up**2) ** 0.5 > LEADER
    line = {"arrowstyle": "-", "color": style.GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
    return ax.annotate(
        text,
        point,
        offset,
        textcoords="offset points",
        ha="left" if across > 0 else "right" if across < 0 else "center",
        va="bottom" if up > 0 else "top" if up < 0 else "center",
        fontsize=size,
        arrowprops=line if far else None,
        annotation_clip=False,
    )
