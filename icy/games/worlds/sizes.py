"""Sizes and aspect ratios of the figures of the world Shape, on a canvas of 64 pixels."""

import math
from itertools import accumulate, product

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from .render import BOX, ELLIPSE, TRIANGLE, radius

CANVAS = 64  # side in pixels for which the lengths are defined
SHAPES = {"circle": ELLIPSE, "square": BOX, "rectangle": BOX, "ellipse": ELLIPSE, "triangle": TRIANGLE}
FORMS = tuple(SHAPES.values())
# Half side (or radius of the inscribed circle) / radius of the circle of equal area.
FACTORS = {ELLIPSE: 1.0, BOX: math.sqrt(math.pi) / 2, TRIANGLE: math.sqrt(math.pi / (3 * math.sqrt(3)))}
Halves = Float[Tensor, "figure 2"]


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
        self._factors = torch.tensor([FACTORS[form] for form in FORMS], dtype=torch.float32, device="cpu")
        self._long = torch.tensor([name in self.long for name in SHAPES], dtype=torch.bool, device="cpu")
        every = torch.arange(len(FORMS), device="cpu")
        extreme = self.half(every, torch.tensor([1.0, 0.0], dtype=torch.float32, device="cpu").expand(len(every), 2))
        self.largest = radius(torch.tensor(FORMS, dtype=torch.int64, device="cpu"), extreme).max().item()

    def half(self, shapes: Integer[Tensor, " figure"], uniform: Float[Tensor, "figure 2"]) -> Halves:
        """Draw half axes or half sides of figures, see `render.Figures`.

        Args:
            shapes: indices in SHAPES.
            uniform: random numbers in [0, 1).
        """
        size, aspect = _between(self.radii, uniform[:, 0]), _between(self.aspects, uniform[:, 1])
        stretch = torch.where(self._long.to(shapes.device)[shapes], aspect.rsqrt(), 1.0)
        factor = size * self._factors.to(shapes.device)[shapes]
        return torch.stack([factor * stretch, factor / stretch], -1)

    def angle(self, uniform: Float[Tensor, " figure"]) -> Float[Tensor, " figure"]:
        """Convert random numbers to angles from 0 to 360 degrees, in radians."""
        return uniform * math.tau


def _between(ends: tuple[float, float], uniform: Float[Tensor, " figure"]) -> Float[Tensor, " figure"]:
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
        self._halves = torch.tensor(
            [one + [one[-1]] * (longest - len(one)) for one in lists], dtype=torch.float32, device="cpu"
        )[..., :2]
        ends = [list(accumulate(share for *_, share in one)) for one in lists]
        self._ends = torch.tensor(
            [one[:-1] + [2.0] * (longest - len(one) + 1) for one in ends], dtype=torch.float32, device="cpu"
        )
        self.largest = max(
            radius(torch.tensor(FORMS, dtype=torch.int64, device="cpu"), half).max().item()
            for half in self._halves.unbind(1)
        )

    def half(self, shapes: Integer[Tensor, " figure"], uniform: Float[Tensor, "figure 2"]) -> Halves:
        """Draw half axes or half sides of figures with whole pixels."""
        places = (uniform[:, :1] >= self._ends.to(shapes.device)[shapes]).sum(-1)
        return self._halves.to(shapes.device)[shapes, places]

    def angle(self, uniform: Float[Tensor, " figure"]) -> Float[Tensor, " figure"]:
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
