"""Shape: images of one colored figure on black (CBM24, with the figures of Mu & Goodman)."""

import math
from collections.abc import Callable
from functools import cache
from itertools import accumulate, product
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Integer, Shaped
from torch import Tensor

from icy.core.checks import real_number, whole_number
from icy.core.errors import InvalidSettingError, require_known
from icy.core.gpu import is_gpu
from icy.core.noise import counter_hash, shift

from .world import Keys, Objects, World

# -- images of single figures, drawn by signed distances in torch ------------------------------------------------------

# A figure is an ellipse, a box or a triangle, of any size, at any angle. The distance of a pixel's center from the
# figure's edge, negative inside, determines the covered fraction of the pixel: clamp(1/2 - distance, 0, 1). This blurs
# edges by one pixel. Distances are exact, with two exceptions: for ellipses, they are first-order approximations, and
# outside corners stay sharp. Each figure is computed only in a window around it. Images have the 256 levels of image
# files, so that bytes store them without loss.


ELLIPSE, BOX, TRIANGLE = range(3)
LEVELS = 255
BORDER = 1.0  # largest distance of a figure's pixels from its circumscribed circle: the tip of a blurred triangle
AT_ONCE = 256  # images drawn at once on a CPU: their arrays fit in its cache
AT_ONCE_ON_GPU = 16_384
Seen = Float[Tensor, "figure row column"]
OfFigures = Float[Tensor, " figure"]
Pairs = Float[Tensor, "figure 2"]


class Figures(NamedTuple):
    """A batch of figures to draw.

    Lengths are in pixels. The pixel in row r and column c has its center at x = c + 1/2 and y = r + 1/2.

    Attributes:
        form: ELLIPSE, BOX or (equilateral) TRIANGLE.
        center: x and y of the center of mass.
        half: two half axes or half sides; for a triangle, twice the radius of its inscribed circle as both numbers.
        angle: angle of rotation in radians.
        color: red, green and blue, from 0 to 1.
    """

    form: Integer[Tensor, " figure"]
    center: Pairs
    half: Pairs
    angle: OfFigures
    color: Float[Tensor, "figure 3"]

    def part(self, which: slice) -> "Figures":
        """Select figures by a slice."""
        return Figures(*(member[which] for member in self))


@cache  # a captured update cannot contain a copy from the CPU
def constant(
    values: tuple[Any, ...], device: torch.device, dtype: torch.dtype = torch.float32
) -> Shaped[Tensor, "..."]:
    """Return a tensor of some numbers, the same tensor at every call."""
    return torch.tensor(values, device=device, dtype=dtype)


def radius(form: Integer[Tensor, " figure"], half: Pairs) -> OfFigures:
    """Return the radius of each figure's circumscribed circle."""
    around = torch.where(form == BOX, half.square().sum(-1).sqrt(), half.amax(-1))
    return torch.where(form == TRIANGLE, 2 * half[:, 0], around)


def area(form: Integer[Tensor, " figure"], half: Pairs) -> OfFigures:
    """Return the area of each figure."""
    per_product = constant((math.pi, 4.0, 3 * math.sqrt(3)), half.device)
    return per_product[form] * half.prod(-1)


def window_for(largest: float, canvas: int) -> int:
    """Return the side, in pixels, of a window that contains any figure up to a radius."""
    return min(math.ceil(2 * (largest + BORDER) + 1), canvas)


def render(figures: Figures, canvas: int, window: int) -> Float[Tensor, "figure 3 {canvas} {canvas}"]:
    """Draw each figure in its own black image.

    Args:
        figures: the figures; each must fit in its image.
        canvas: side of an image in pixels.
        window: side in pixels of the computed part of an image; see `window_for`.
    """
    images = torch.zeros(len(figures.form), 3, canvas * canvas, device=figures.form.device, dtype=torch.float32)
    at_once = AT_ONCE_ON_GPU if is_gpu(images.device) else AT_ONCE
    for first in range(0, len(images), at_once):
        some = slice(first, first + at_once)
        _draw(figures.part(some), images[some], canvas, window)
    return images.view(-1, 3, canvas, canvas)


def _draw(figures: Figures, images: Float[Tensor, "figure 3 pixel"], canvas: int, window: int) -> None:
    """Draw figures into black images."""
    corner = (figures.center - (window - 1) / 2).floor().clamp_(0, canvas - window)
    inside = torch.arange(window, device=images.device)
    x = inside + (corner[:, :1] - figures.center[:, :1] + 0.5)
    y = inside + (corner[:, 1:] - figures.center[:, 1:] + 0.5)
    levels = (figures.color * LEVELS)[..., None, None] * _coverage(figures, x, y)[:, None]
    levels = levels.round_().mul_(1 / LEVELS)
    column, row = (corner[:, axis, None].long() + inside for axis in range(2))
    places = (row * canvas)[:, :, None] + column[:, None, :]
    images.scatter_(2, places.view(-1, 1, window * window).expand(-1, 3, -1), levels.flatten(2))


def _coverage(figures: Figures, x: Float[Tensor, "figure column"], y: Float[Tensor, "figure row"]) -> Seen:
    """Return the covered fraction of each pixel, from coordinates relative to the figure's center."""
    cos, sin = figures.angle.cos()[:, None], figures.angle.sin()[:, None]
    across = (cos * x)[:, None, :] + (sin * y)[:, :, None]  # in the directions of the figure's axes
    along = (cos * y)[:, :, None] - (sin * x)[:, None, :]
    distance = torch.empty_like(across)
    if is_gpu(distance.device):  # all distances of all figures, because a captured update cannot find out which exist
        for form, measure in DISTANCES.items():
            half = figures.half.T[..., None, None]
            of_all = measure(across, along, half[0], half[1])
            distance = torch.where((figures.form == form)[:, None, None], of_all, distance)
        return distance.neg_().add_(0.5).clamp_(0, 1)
    for form, measure in DISTANCES.items():
        of_form = (figures.form == form).nonzero()[:, 0]
        half = figures.half[of_form].T[..., None, None]
        distance[of_form] = measure(across[of_form], along[of_form], half[0], half[1])
    return distance.neg_().add_(0.5).clamp_(0, 1)


def _from_ellipse(across: Seen, along: Seen, a: Tensor, b: Tensor) -> Seen:
    """Return the approximate distance f (f - 1) / |f grad f|, where f(x, y) = 1 is the edge."""
    u, v = across / a, along / b
    square = u * u + v * v
    steepness = torch.hypot(u.div_(a), v.div_(b)).clamp_(min=1e-6)  # 0 only at the center
    return (square - square.sqrt()).div_(steepness)


def _from_box(across: Seen, along: Seen, a: Tensor, b: Tensor) -> Seen:
    return torch.maximum(across.abs() - a, along.abs() - b)


def _from_triangle(across: Seen, along: Seen, inner: Tensor, _: Tensor) -> Seen:
    """Return the largest distance to the three sides, which touch the inscribed circle."""
    sides = across.abs().mul_(math.sqrt(3) / 2).sub_(along, alpha=0.5)
    return torch.maximum(along, sides).sub_(inner)


DISTANCES: dict[int, Callable[[Seen, Seen, Tensor, Tensor], Seen]] = {
    ELLIPSE: _from_ellipse,
    BOX: _from_box,
    TRIANGLE: _from_triangle,
}


# -- sizes and aspect ratios of the figures of the world Shape, on a canvas of 64 pixels -------------------------------


CANVAS = 64  # side in pixels for which the lengths are defined
SHAPES = {"circle": ELLIPSE, "square": BOX, "rectangle": BOX, "ellipse": ELLIPSE, "triangle": TRIANGLE}
FORMS = tuple(SHAPES.values())
# Half side (or radius of the inscribed circle) / radius of the circle of equal area.
FACTORS = {ELLIPSE: 1.0, BOX: math.sqrt(math.pi) / 2, TRIANGLE: math.sqrt(math.pi / (3 * math.sqrt(3)))}


class ClearSizes:
    """Sizes that make shapes distinguishable: equal ranges of areas, and clearly long long shapes.

    A figure has the area of a circle of radius 4 to 6.5. The width of rectangles and ellipses is .45 to .65 of their
    length. Figures are rotated by any angle.

    Attributes:
        largest: radius of the largest circumscribed circle.
    """

    radii = (4.0, 6.5)
    aspects = (0.45, 0.65)
    long = ("rectangle", "ellipse")

    def __init__(self) -> None:
        self._factors = tuple(FACTORS[form] for form in FORMS)
        self._stretched = tuple(float(name in self.long) for name in SHAPES)
        every = torch.arange(len(FORMS), device="cpu")
        extreme = self.half(every, torch.tensor([1.0, 0.0], dtype=torch.float32, device="cpu").expand(len(every), 2))
        self.largest = radius(constant(FORMS, torch.device("cpu"), torch.int64), extreme).max().item()

    def half(self, shapes: Integer[Tensor, " figure"], uniform: Pairs) -> Pairs:
        """Draw half axes or half sides of figures, see `render.Figures`.

        Args:
            shapes: indices in SHAPES.
            uniform: random numbers in [0, 1).
        """
        size, aspect = _between(self.radii, uniform[:, 0]), _between(self.aspects, uniform[:, 1])
        stretch = torch.where(constant(self._stretched, shapes.device)[shapes] > 0, aspect.rsqrt(), 1.0)
        factor = size * constant(self._factors, shapes.device)[shapes]
        return torch.stack([factor * stretch, factor / stretch], -1)

    def angle(self, uniform: OfFigures) -> OfFigures:
        """Convert random numbers to angles from 0 to 360 degrees, in radians."""
        return uniform * math.tau


def _between(ends: tuple[float, float], uniform: OfFigures) -> OfFigures:
    low, high = ends
    return low + (high - low) * uniform


class PublishedSizes:
    """Sizes of Mu & Goodman's generator, in whole pixels. The shape of small figures is not always recognizable.

    Circles have a radius of 2 to 7, squares and triangles a side of 4 to 9. The first axis of an ellipse and the first
    side of a rectangle are drawn from these ranges. The second is at least 1.5 times as long. If this is out of range,
    it is shorter by the same factor. Then the two are swapped with probability 1/2. Figures are rotated by 0 to 89
    whole degrees.
    """

    def __init__(self) -> None:
        lists = [_published()[name] for name in SHAPES]
        longest = max(map(len, lists))
        padded = [one + [one[-1]] * (longest - len(one)) for one in lists]
        self._halves = tuple(tuple(half[:2] for half in one) for one in padded)
        ends = [list(accumulate(share for *_, share in one)) for one in lists]
        self._ends = tuple((*one[:-1], *[2.0] * (longest - len(one) + 1)) for one in ends)
        of_all = constant(self._halves, torch.device("cpu")).unbind(1)
        forms = constant(FORMS, torch.device("cpu"), torch.int64)
        self.largest = max(radius(forms, half).max().item() for half in of_all)

    def half(self, shapes: Integer[Tensor, " figure"], uniform: Pairs) -> Pairs:
        """Draw half axes or half sides of figures with whole pixels."""
        places = (uniform[:, :1] >= constant(self._ends, shapes.device)[shapes]).sum(-1)
        return constant(self._halves, shapes.device)[shapes, places]

    def angle(self, uniform: OfFigures) -> OfFigures:
        """Convert random numbers to angles of 0 to 89 whole degrees, in radians."""
        return (uniform * 90).floor() * (math.pi / 180)


def _published() -> dict[str, list[tuple[float, float, float]]]:
    """Return the possible half axes or half sides of each shape, with their probabilities."""
    axes, sides = range(2, 8), range(4, 10)
    return {
        "circle": [(float(r), float(r), 1 / len(axes)) for r in axes],
        "square": [(s / 2, s / 2, 1 / len(sides)) for s in sides],
        "rectangle": [(a / 2, b / 2, share) for a, b, share in _unequal(sides)],
        "ellipse": [(float(a), float(b), share) for a, b, share in _unequal(axes)],
        "triangle": [(s / (2 * math.sqrt(3)),) * 2 + (1 / len(sides),) for s in sides],
    }


def _unequal(firsts: range) -> list[tuple[int, int, float]]:
    """Return pairs of unequal lengths with their probabilities.

    The second length is from 1.5 times the first up to 7. If no number fits, it is from 2 to below the first / 1.5.
    """
    found = []
    for first, swapped in product(firsts, (False, True)):
        longer, shorter = int(1.5 * first), int(first / 1.5)
        others = range(longer, 8) if longer < 8 else range(2, shorter)
        pairs = [(other, first) if swapped else (first, other) for other in others]
        found += [(*pair, 1 / (2 * len(firsts) * len(others))) for pair in pairs]
    return found


SIZES: dict[str, type[ClearSizes | PublishedSizes]] = {"clear": ClearSizes, "published": PublishedSizes}


COLOURS = {  # hue, saturation and value, from 0 to 1
    "red": (0.0, 0.9, 0.9),
    "blue": (2 / 3, 0.9, 0.9),
    "green": (1 / 3, 0.9, 0.9),
    "yellow": (1 / 6, 0.9, 0.9),
    "white": (1 / 6, 0.0, 1.0),
    "gray": (1 / 12, 0.0, 0.44),
}
NAMES_OF_THREE = (("left", "centre", "right"), ("top", "middle", "bottom"))
NOISE = 0.02  # of colors: hue varies by +-NOISE, saturation and value by ten times as much
MARGIN = 0.15  # smallest distance of a center from the edges of its cell, as a share of the cell
PUBLISHED_RANGE = (8, 48)  # of centers on both axes, if the position is not an attribute
FEWEST_PIXELS, MOST_PIXELS = 16, 512
X, Y, SIZE, ASPECT, ANGLE, HUE, SATURATION, VALUE = range(8)  # indices of a look's random numbers
DRAWS = 8
UNIFORM_BITS = 24


class Shape(World):
    """Images of one figure on black: 5 shapes, 6 colors, 3 places across and 3 down.

    Images have three channels (red, green and blue), from 0 to 1. Each place is a cell of the image. The center of the
    figure is in this cell, away from its edges, and the whole figure is within the image.

    Args:
        canvas: side of the images in pixels. Figures grow with it.
        sizes: sizes of figures: "clear", with distinguishable shapes; or "published", Mu & Goodman's ranges.
        positions: number of places across, and of places down. With 0 the position is not an attribute, and the center
            is anywhere (Mu & Goodman's world).
        noise: variation of colors: hue varies by +-noise, saturation and value by ten times as much.

    Raises:
        UnknownNameError: `sizes` has another value.
        InvalidSettingError: the cells are too small for the figures, or a number is out of range.

    Example:
        >>> from icy.games import make_world
        >>> world = make_world("shape", canvas=32)
        >>> world.shape, world.sizes, world.values[2]
        ((3, 32, 32), (5, 6, 3, 3), ('left', 'centre', 'right'))
    """

    def __init__(self, canvas: int = CANVAS, sizes: str = "clear", positions: int = 3, noise: float = NOISE) -> None:
        require_known("sizes of figures", sizes, SIZES)
        self.canvas = whole_number("canvas", canvas, least=FEWEST_PIXELS, most=MOST_PIXELS)
        self.positions = whole_number("number of positions", positions, least=0)
        self.noise = real_number("noise of colors", noise, most=0.1)
        self.figure_sizes, self.figure_scale = SIZES[sizes](), self.canvas / CANVAS
        self.published = sizes == "published"
        self.attributes = ("shape", "colour", *(("x", "y") if positions else ()))
        self.values = (tuple(SHAPES), tuple(COLOURS), *_places(self.positions))
        self.shape = (3, self.canvas, self.canvas)
        self._largest = self.figure_sizes.largest * self.figure_scale
        self._window = window_for(self._largest, self.canvas)
        # The largest figure must fit in a cell at the border of the image.
        room = self.canvas / self.positions * (1 - MARGIN) if self.positions else self.canvas / 2
        if room < self._largest + BORDER:
            raise InvalidSettingError(
                f"With {self.positions} positions across, the cells are too small for these figures; take fewer "
                "positions."
            )

    def observe(self, objects: Objects, keys: Keys) -> Float[Tensor, "*batch 3 row column"]:
        """Draw an image of each object."""
        figures = self.figures(objects.flatten(0, -2), keys.flatten())
        return render(figures, self.canvas, self._window).view(*keys.shape, *self.shape)

    def figures(self, objects: Integer[Tensor, "figure attr"], keys: Integer[Tensor, " figure"]) -> Figures:
        """Return the figures of objects, with random sizes, centers, angles and colors."""
        draws = torch.arange(DRAWS, device=keys.device)
        uniform = shift(counter_hash(keys[:, None], draws), 64 - UNIFORM_BITS).float() * 2.0**-UNIFORM_BITS
        shapes = objects[:, 0]
        form = constant(FORMS, keys.device, torch.int64)[shapes]
        half = self.figure_sizes.half(shapes, uniform[:, SIZE : ASPECT + 1]) * self.figure_scale
        return Figures(
            form,
            self._centers(objects, radius(form, half), uniform[:, X : Y + 1]),
            half,
            self.figure_sizes.angle(uniform[:, ANGLE]),
            self._colors(objects[:, 1], uniform[:, HUE : VALUE + 1]),
        )

    def _centers(self, objects: Tensor, radii: OfFigures, uniform: Pairs) -> Pairs:
        """Draw centers in the figures' cells, so that the figures fit in the image."""
        if not self.positions and self.published:
            first, end = PUBLISHED_RANGE
            return (first + (uniform * (end - first)).floor()) * self.figure_scale
        room = (radii + BORDER)[:, None].expand(-1, 2)
        low, high = room, self.canvas - room
        if self.positions:
            cell = self.canvas / self.positions
            low = torch.maximum(low, (objects[:, 2:] + MARGIN) * cell)
            high = torch.minimum(high, (objects[:, 2:] + 1 - MARGIN) * cell)
        return low + uniform * (high - low)

    def _colors(
        self, colors: Integer[Tensor, " figure"], uniform: Float[Tensor, "figure 3"]
    ) -> Float[Tensor, "figure 3"]:
        """Draw variations of the named colors, as red, green and blue."""
        named = constant(tuple(COLOURS.values()), colors.device)[colors]
        reach = self.noise * constant((1.0, 10.0, 10.0), colors.device)
        hue, saturation, value = (named + (2 * uniform - 1) * reach).unbind(-1)
        return rgb(hue, saturation.clamp(0, 1), value.clamp(0, 1))


def rgb(hue: OfFigures, saturation: OfFigures, value: OfFigures) -> Float[Tensor, "figure 3"]:
    """Convert hue (periodic, with period 1), saturation and value to red, green and blue."""
    sixths = (constant((5.0, 3.0, 1.0), hue.device) + 6 * hue[:, None]) % 6
    missing = torch.minimum(sixths, 4 - sixths).clamp(0, 1)
    return value[:, None] * (1 - saturation[:, None] * missing)


def _places(positions: int) -> tuple[tuple[str, ...], ...]:
    """Return the names of the places across and down; empty if the position is not an attribute."""
    if not positions:
        return ()
    if positions == 3:
        return NAMES_OF_THREE
    return tuple(tuple(f"{axis} {place + 1}" for place in range(positions)) for axis in "xy")
