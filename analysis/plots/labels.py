"""Labels of points, placed so that they do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Annotation
from numpy.typing import NDArray

from icy.analysis import style

DIRECTIONS = ((1, 0), (-1, 0), (-1, 1), (0, 1), (1, 1), (0, -1), (1, -1), (-1, -1))  # in order of preference
DISTANCES = (4.5, 9.0, 15.0, 23.0, 33.0, 45.0, 60.0)  # points
LEADER = 12.0  # points; labels at a larger distance have a line to their point
MARK, STROKE = 3.5, 1.0  # half the width of a mark and of a line, in points
COVERED, CROSSED = 100.0, 0.5  # costs per square point of overlap with a mark or text, and with a line

Polyline: TypeAlias = Sequence[tuple[float, float]]  # corners of a line, in data coordinates
Array: TypeAlias = NDArray[np.float64]  # of boxes, [n, 4]: left, bottom, right, top; of places, [n, 2]; in points

# Offsets from a point to the nearest edge or corner of its text, [n, 2], in points.
OFFSETS = np.array([
    (across * distance * (0.7 if across and up else 1), up * distance * (0.7 if across and up else 1))
    for distance in DISTANCES for across, up in DIRECTIONS
])  # fmt: skip


def place_labels(
    ax: Axes, points: Polyline, texts: Sequence[str], lines: Sequence[Polyline] = (), size: float | None = None
) -> list[Annotation]:
    """Write a text next to each point, with as little overlap as possible with marks, lines and other texts.

    Texts are placed one after another, each at the offset with the lowest cost. Call this last, when the axes have
    their limits and everything else is drawn.

    Args:
        ax: axes of the points.
        points: data coordinates (x, y) of the points.
        texts: one text per point.
        lines: drawn lines to avoid.
        size: size of the letters, in points; by default `style.SMALL`.
    """
    size = size or style.SMALL
    figure = style.figure_of(ax)
    figure.draw_without_rendering()  # fixes the position of the axes
    scale = 72 / figure.dpi
    where = scale * ax.transData.transform(points)
    strokes = [_along(scale * ax.transData.transform(line)) for line in lines]
    occupied = np.concatenate([_around(where, MARK), *strokes])
    weights = np.concatenate([np.full(len(where), COVERED), np.full(len(occupied) - len(where), CROSSED)])
    written = []
    for place, point, text in zip(where, points, texts, strict=True):
        boxes = _boxes(place, style.text_size(text, size))
        best = int(np.argmin(_costs(boxes, occupied, weights, scale * np.array(ax.bbox.extents))))
        occupied, weights = np.concatenate([occupied, boxes[best : best + 1]]), np.append(weights, COVERED)
        written.append(_write(ax, point, text, OFFSETS[best], size))
    return written


def _around(places: Array, half: float) -> Array:
    return np.concatenate([places - half, places + half], axis=1)


def _along(corners: Array) -> Array:
    """Return small boxes along a line, which stand for the line in the costs."""
    counts = 1 + (np.abs(np.diff(corners, axis=0)).max(axis=1) / (2 * STROKE)).astype(int)
    pieces = [np.linspace(corners[i], corners[i + 1], count, endpoint=False) for i, count in enumerate(counts)]
    return _around(np.concatenate([*pieces, corners[-1:]]), STROKE)


def _boxes(place: Array, extent: tuple[float, float]) -> Array:
    """Return the box of a text, of the size `extent`, at each of OFFSETS, with a margin."""
    nearest = place + OFFSETS
    lowest = nearest - np.array(extent) * (1 - np.sign(OFFSETS)) / 2
    return np.concatenate([lowest - 1, lowest + np.array(extent) + 1], axis=1)


def _costs(boxes: Array, occupied: Array, weights: Array, frame: Array) -> Array:
    """Return the cost of each box: its overlap with marks and lines, its area outside the frame, and its distance."""
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    outside = area - _overlaps(boxes, frame.reshape(1, 4))[:, 0]
    costs: Array = _overlaps(boxes, occupied) @ weights + COVERED * outside + np.hypot(*OFFSETS.T)
    return costs


def _overlaps(some: Array, others: Array) -> Array:
    """Return the areas of the intersections of each of `some` boxes with each of `others`."""
    low = np.maximum(some[:, None, :2], others[None, :, :2])
    high = np.minimum(some[:, None, 2:], others[None, :, 2:])
    areas: Array = np.prod(np.clip(high - low, 0, None), axis=2)
    return areas


def _write(ax: Axes, point: tuple[float, float], text: str, offset: Array, size: float) -> Annotation:
    across, up = map(float, offset)
    line = {"arrowstyle": "-", "color": style.DIM, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2}
    return ax.annotate(
        text,
        point,
        (across, up),
        textcoords="offset points",
        ha="left" if across > 0 else "right" if across < 0 else "center",
        va="bottom" if up > 0 else "top" if up < 0 else "center",
        fontsize=size,
        arrowprops=line if np.hypot(across, up) > LEADER else None,
        annotation_clip=False,
        parse_math=False,
    )
