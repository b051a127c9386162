"""Pictures of colored shapes as SVG, drawn from a seed (Icy22 section 4.3).

The SVG text does not name the color or the shape: every figure is a path, ids depend only on the seed, and the caller
sets the alternative text.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np

from icy.core.errors import require_known
from icy.core.streams import stream, stream_key

from .game.game import Picture
from .game.settings import SHAPES

Colour = tuple[int, int, int]
Point = tuple[float, float]
PaletteName = Literal["primary", "safe"]

SIZE = 400  # side of a picture, in SVG units
BACKGROUND = (230, 230, 230)
RADII = (50, 150)  # range of the radius of the circle around a figure
OFFSETS = (-50, 50)  # range of the offset of a figure's center in each direction
SHADES = (-10, 10)  # range of the offset added to every channel of the color
TURNS = (0, 360)  # range of the rotation in degrees
CORNERS = (0, 3, 4, 5, 6)  # number of corners of the shapes; a circle has 0
SPACING = 24  # distance between the lines of a pattern
LABEL = "Picture"


@dataclass(frozen=True)
class Palette:
    """Colors of the figures.

    Attributes:
        colours: color of each value, in the order of the values.
        outline: color of the line around a figure; None for no line.
    """

    colours: tuple[Colour, ...]
    outline: Colour | None = None


PALETTES: Mapping[str, Palette] = {
    "primary": Palette(((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (255, 0, 255))),
    # Okabe and Ito 2008, "Color Universal Design": vermillion, bluish green, blue, yellow, reddish purple
    "safe": Palette(
        ((213, 94, 0), (0, 158, 115), (0, 114, 178), (240, 228, 66), (204, 121, 167)), outline=(40, 40, 40)
    ),
}
STROKE = 6  # width of the outline
PATTERNS: tuple[tuple[int, ...], ...] = ((), (0,), (90,), (45,), (0, 90))  # directions of lines, by value of the color


@dataclass(frozen=True)
class Figure:
    """Place, size, rotation and shade of a figure, which do not depend on the meaning.

    Attributes:
        centre: center of the figure.
        radius: radius of the circle around the figure.
        turn: rotation in degrees; it does not change a circle.
        shade: offsets added to the channels of the color.
    """

    centre: Point
    radius: int
    turn: int
    shade: Colour


def figure_of(picture: Picture) -> Figure:
    """Draw the place, size, rotation and shade of a picture's figure, from the picture's seed."""
    rng = stream(picture.seed, "figure")
    radius, turn = _within(rng, RADII), _within(rng, TURNS)
    x, y = (SIZE / 2 + _within(rng, OFFSETS) for _ in range(2))
    shade = _within(rng, SHADES), _within(rng, SHADES), _within(rng, SHADES)
    return Figure((x, y), radius, turn, shade)


def svg(
    picture: Picture, palette: PaletteName = "primary", *, label: str = LABEL, patterns: bool = False, side: int = SIZE
) -> str:
    """Draw a picture as an SVG element.

    Args:
        picture: the picture to draw.
        palette: "primary", the published colors; or "safe", colors that most color-blind people can distinguish, with a
            dark outline.
        label: the alternative text, which should not reveal the color or the shape.
        patterns: whether every color also has a pattern of lines.
        side: width and height, in pixels.

    Raises:
        UnknownNameError: the palette is unknown.

    Example:
        >>> text = svg(Picture(colour=0, shape=1, seed=7))
        >>> text.startswith("<svg "), "triangle" in text, "red" in text
        (True, False, False)
    """
    require_known("palette", palette, PALETTES)
    chosen, figure = PALETTES[palette], figure_of(picture)
    shaded = [channel + off for channel, off in zip(chosen.colours[picture.colour], figure.shade, strict=True)]
    fill = _hex([min(255, max(0, channel)) for channel in shaded])
    outline = ""
    if chosen.outline:
        outline = f' stroke="{_hex(chosen.outline)}" stroke-width="{STROKE}" stroke-linejoin="round"'
    path = outline_of(SHAPES[picture.shape], figure)
    lines = _pattern(picture, path) if patterns else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{side}" height="{side}" '
        f'role="img" aria-label="{escape(label)}"><path fill="{_hex(BACKGROUND)}" d="M0 0H{SIZE}V{SIZE}H0Z"/>'
        f'<path fill="{fill}"{outline} d="{path}"/>{lines}</svg>'
    )


def outline_of(shape: str, figure: Figure) -> str:
    """Return the path of a figure: a circle of two arcs, or a regular polygon."""
    corners = CORNERS[SHAPES.index(shape)]
    (x, y), radius = figure.centre, figure.radius
    if not corners:
        arc = f"A{radius} {radius} 0 1 0 "
        left, right = (f"{_number(x + side)} {_number(y)}" for side in (-radius, radius))
        return f"M{left}{arc}{right}{arc}{left}Z"
    first = math.radians(figure.turn) - math.pi / 2
    angles = [first + 2 * math.pi * corner / corners for corner in range(corners)]
    points = [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]
    return "M" + "L".join(f"{_number(a)} {_number(b)}" for a, b in points) + "Z"


def _pattern(picture: Picture, path: str) -> str:
    """Return the pattern of lines for the color of a figure, clipped to the figure."""
    directions = PATTERNS[picture.colour]
    if not directions:
        return ""
    clip = f"c{stream_key(picture.seed, 'id'):x}"
    half = SIZE  # lines are longer than the picture's diagonal
    rows = "".join(f"M{-half} {y}H{2 * half}" for y in range(-half, 2 * half, SPACING))
    turned = "".join(f'<path d="{rows}" transform="rotate({angle} {SIZE // 2} {SIZE // 2})"/>' for angle in directions)
    dark = 'stroke="#000000" stroke-opacity="0.55" stroke-width="4"'
    return f'<clipPath id="{clip}"><path d="{path}"/></clipPath><g clip-path="url(#{clip})" {dark}>{turned}</g>'


def _within(rng: np.random.Generator, ends: tuple[int, int]) -> int:
    """Draw a whole number from a range that includes both ends."""
    return int(rng.integers(ends[0], ends[1] + 1))


def _hex(colour: Sequence[int]) -> str:
    return "#" + "".join(f"{channel:02x}" for channel in colour)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
