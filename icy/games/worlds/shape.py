"""Shape: images of one colored figure on black (CBM24, with the figures of Mu & Goodman)."""

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from icy.core.checks import real_number, whole_number
from icy.core.errors import InvalidSettingError, require_known
from icy.core.noise import counter_hash, shift

from .render import BORDER, Figures, radius, render, window_for
from .sizes import CANVAS, FORMS, SHAPES, SIZES
from .world import World

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
        self._refuse_small_cells()

    def observe(
        self, objects: Integer[Tensor, "*batch attr"], keys: Integer[Tensor, "*batch"]
    ) -> Float[Tensor, "*batch 3 row column"]:
        """Draw an image of each object."""
        figures = self.figures(objects.flatten(0, -2), keys.flatten())
        return render(figures, self.canvas, self._window).view(*keys.shape, *self.shape)

    def figures(self, objects: Integer[Tensor, "figure attr"], keys: Integer[Tensor, " figure"]) -> Figures:
        """Return the figures of objects, with random sizes, centers, angles and colors."""
        draws = torch.arange(DRAWS, device=keys.device)
        uniform = shift(counter_hash(keys[:, None], draws), 64 - UNIFORM_BITS).float() * 2.0**-UNIFORM_BITS
        shapes = objects[:, 0]
        form = torch.tensor(FORMS, device=keys.device, dtype=torch.int64)[shapes]
        half = self.figure_sizes.half(shapes, uniform[:, [SIZE, ASPECT]]) * self.figure_scale
        return Figures(
            form,
            self._centers(objects, radius(form, half), uniform[:, [X, Y]]),
            half,
            self.figure_sizes.angle(uniform[:, ANGLE]),
            self._colors(objects[:, 1], uniform[:, [HUE, SATURATION, VALUE]]),
        )

    def _centers(
        self, objects: Tensor, radii: Float[Tensor, " figure"], uniform: Float[Tensor, "figure 2"]
    ) -> Float[Tensor, "figure 2"]:
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
        named = torch.tensor(list(COLOURS.values()), device=colors.device, dtype=torch.float32)[colors]
        reach = self.noise * torch.tensor([1.0, 10.0, 10.0], device=colors.device, dtype=torch.float32)
        hue, saturation, value = (named + (2 * uniform - 1) * reach).unbind(-1)
        return rgb(hue, saturation.clamp(0, 1), value.clamp(0, 1))

    def _refuse_small_cells(self) -> None:
        """Raise an error if the largest figure does not fit in a cell at the border of the image."""
        room = self.canvas / self.positions * (1 - MARGIN) if self.positions else self.canvas / 2
        if room < self._largest + BORDER:
            raise InvalidSettingError(
                f"With {self.positions} positions across, the cells are too small for these figures; take fewer "
                "positions."
            )


def rgb(
    hue: Float[Tensor, " figure"], saturation: Float[Tensor, " figure"], value: Float[Tensor, " figure"]
) -> Float[Tensor, "figure 3"]:
    """Convert hue (periodic, with period 1), saturation and value to red, green and blue."""
    sixths = (torch.tensor([5.0, 3.0, 1.0], device=hue.device, dtype=torch.float32) + 6 * hue[:, None]) % 6
    missing = torch.minimum(sixths, 4 - sixths).clamp(0, 1)
    return value[:, None] * (1 - saturation[:, None] * missing)


def _places(positions: int) -> tuple[tuple[str, ...], ...]:
    """Return the names of the places across and down; empty if the position is not an attribute."""
    if not positions:
        return ()
    if positions == 3:
        return NAMES_OF_THREE
    return tuple(tuple(f"{axis} {place + 1}" for place in range(positions)) for axis in "xy")
