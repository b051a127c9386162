"""The two ways to draw sizes: clear sizes with equal areas, and sizes of Mu & Goodman."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from icy.games.worlds.shape import FORMS, SHAPES, SIZES, area, radius

NAMES = tuple(SHAPES)
GRID = (torch.cartesian_prod(*[torch.arange(120)] * 2) + 0.5) / 120


def halves(sizes: str, shape: str) -> torch.Tensor:
    """Return half axes or sides of a shape on a grid of random numbers."""
    return SIZES[sizes]().half(torch.full((len(GRID),), NAMES.index(shape)), GRID)


def pairs(others: dict[int, tuple[int, ...]]) -> set[tuple[float, float]]:
    """Return first lengths with all possible second lengths."""
    return {(first, other) for first, some in others.items() for other in some}


def test_clear_shapes_have_equal_areas() -> None:
    for name in NAMES:
        form = torch.tensor(FORMS)[torch.full((len(GRID),), NAMES.index(name))]
        found = (area(form, halves("clear", name)) / math.pi).sqrt()
        torch.testing.assert_close(found, 4 + 2.5 * GRID[:, 0])


def test_long_shapes_are_clearly_long_and_others_not_at_all() -> None:
    for name in NAMES:
        length, width = halves("clear", name).sort(1, descending=True).values.unbind(1)
        ratio = width / length
        if name in ("rectangle", "ellipse"):
            assert 0.45 < ratio.min() < 0.46
            assert 0.64 < ratio.max() < 0.65
        else:
            assert ratio.unique().tolist() == [1.0]


@pytest.mark.parametrize(
    ("shape", "lengths"),
    [
        ("circle", {(r, r) for r in range(2, 8)}),
        ("square", {(s / 2, s / 2) for s in range(4, 10)}),
        ("ellipse", pairs({2: (3, 4, 5, 6, 7), 3: (4, 5, 6, 7), 4: (6, 7), 5: (7,), 6: (2, 3), 7: (2, 3)})),
        ("rectangle", pairs({4: (6, 7), 5: (7,), 6: (2, 3), 7: (2, 3), 8: (2, 3, 4), 9: (2, 3, 4, 5)})),
    ],
)
def test_published_lengths_equal_mu_and_goodman(shape: str, lengths: set[tuple[float, float]]) -> None:
    scale = 2 if shape == "rectangle" else 1
    found = {(scale * a, scale * b) for a, b in halves("published", shape).unique(dim=0).tolist()}
    assert found == (lengths | {(b, a) for a, b in lengths} if shape in ("ellipse", "rectangle") else lengths)


def test_published_lengths_have_the_expected_frequencies() -> None:
    """The first axis is uniform over six lengths, the second over its possible lengths; half of them are swapped."""
    found = Counter(map(tuple, halves("published", "ellipse").tolist()))
    total = sum(found.values())
    assert found[5.0, 7.0] / total == pytest.approx(1 / 12, abs=0.01)
    assert found[2.0, 3.0] / total == pytest.approx(1 / 60, abs=0.01)
    assert found[3.0, 2.0] / total == pytest.approx(1 / 60, abs=0.01)
    assert found[6.0, 2.0] / total == pytest.approx(1 / 24 + 1 / 60, abs=0.01)  # also (2, 6), swapped


def test_triangles_are_equilateral_with_published_sides() -> None:
    inner = halves("published", "triangle")
    assert (inner[:, 0] == inner[:, 1]).all()
    assert (inner[:, 0].unique() * 2 * math.sqrt(3)).tolist() == pytest.approx(list(range(4, 10)))


@pytest.mark.parametrize("sizes", SIZES)
def test_the_largest_figure_is_known(sizes: str) -> None:
    for name in NAMES:
        form = torch.tensor(FORMS)[torch.full((len(GRID),), NAMES.index(name))]
        assert radius(form, halves(sizes, name)).max() <= SIZES[sizes]().largest + 1e-4
    assert SIZES["clear"]().largest < 10.5
    assert SIZES["published"]().largest == 7


def test_angles() -> None:
    u = torch.tensor([0.0, 0.5, 0.999999])
    assert SIZES["clear"]().angle(u).tolist() == pytest.approx([0, math.pi, math.tau], abs=1e-4)
    assert SIZES["published"]().angle(u).tolist() == pytest.approx([0, math.pi / 4, 89 * math.pi / 180])
