"""Images of single figures, drawn by signed distances in torch.

A figure is an ellipse, a box or a triangle, of any size, at any angle. The distance of a pixel's center from the
figure's edge, negative inside, determines the covered fraction of the pixel: clamp(1/2 - distance, 0, 1). This blurs
edges by one pixel. Distances are exact, with two exceptions: for ellipses, they are first-order approximations, and
outside corners stay sharp. Each figure is computed only in a window around it. Images have the 256 levels of image
files, so that bytes store them without loss.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor

ELLIPSE, BOX, TRIANGLE = range(3)
LEVELS = 255
BORDER = 1.0  # largest distance of a figure's pixels from its circumscribed circle: the tip of a blurred triangle
AT_ONCE = 256  # images drawn at once on a CPU: their arrays fit in its cache
AT_ONCE_ON_GPU = 16_384
Seen = Float[Tensor, "figure row column"]


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
    center: Float[Tensor, "figure 2"]
    half: Float[Tensor, "figure 2"]
    angle: Float[Tensor, " figure"]
    color: Float[Tensor, "figure 3"]

    def part(self, which: slice) -> "Figures":
        """Select figures by a slice."""
        return Figures(*(member[which] for member in self))


def radius(form: Integer[Tensor, " figure"], half: Float[Tensor, "figure 2"]) -> Float[Tensor, " figure"]:
    """Return the radius of each figure's circumscribed circle."""
    around = torch.where(form == BOX, half.square().sum(-1).sqrt(), half.amax(-1))
    return torch.where(form == TRIANGLE, 2 * half[:, 0], around)


def area(form: Integer[Tensor, " figure"], half: Float[Tensor, "figure 2"]) -> Float[Tensor, " figure"]:
    """Return the area of each figure."""
    per_product = torch.tensor([math.pi, 4.0, 3 * math.sqrt(3)], device=half.device, dtype=torch.float32)
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
    at_once = AT_ONCE_ON_GPU if images.is_cuda else AT_ONCE
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
