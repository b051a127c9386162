"""The renderer: areas, centers, edges and colors of figures, independent of windows and batches."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from icy.games.worlds.shape import AT_ONCE, BOX, ELLIPSE, TRIANGLE, Figures, area, radius, render, window_for

FORMS = {"ellipse": ELLIPSE, "box": BOX, "triangle": TRIANGLE}


def figures(form: int, count: int = 200, least: float = 3.0, most: float = 9.0, canvas: int = 64) -> Figures:
    """Draw white figures of a form."""
    draw = torch.Generator().manual_seed(form)
    half = least + (most - least) * torch.rand(count, 2, generator=draw)
    if form == TRIANGLE:
        half = half[:, :1].expand(-1, 2) / 2
    center = canvas / 2 + 8 * (torch.rand(count, 2, generator=draw) - 0.5)
    angle = math.tau * torch.rand(count, generator=draw)
    return Figures(torch.full((count,), form), center, half, angle, torch.ones(count, 3))


def drawn(some: Figures, canvas: int = 64, window: int | None = None) -> Tensor:
    return render(some, canvas, window or window_for(radius(some.form, some.half).max().item(), canvas))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_areas_are_geometric(form: int) -> None:
    some = figures(form)
    found = drawn(some)[:, 0].sum((1, 2)) / area(some.form, some.half)
    assert found.min() > 0.9
    assert found.max() < 1.1
    assert found.mean().item() == pytest.approx(1, abs=0.03)


def test_areas_and_radii_of_known_figures() -> None:
    form, half = torch.tensor([ELLIPSE, BOX, TRIANGLE]), torch.tensor([[2.0, 3.0], [3.0, 4.0], [1.0, 1.0]])
    assert area(form, half).tolist() == pytest.approx([6 * math.pi, 48, 3 * math.sqrt(3)])
    assert radius(form, half).tolist() == pytest.approx([3, 5, 2])


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_centre_of_mass_is_the_centre(form: int) -> None:
    some = figures(form)
    image = drawn(some)[:, 0]
    pixel = torch.arange(64) + 0.5
    x = (image.sum(1) * pixel).sum(1) / image.sum((1, 2))
    y = (image.sum(2) * pixel).sum(1) / image.sum((1, 2))
    assert (torch.stack([x, y], 1) - some.center).abs().max() < 0.25


def test_a_box_on_the_grid_is_exact() -> None:
    """A box of 4 x 2 along the edges of pixels covers only these; moved by 1/2, it covers half of two columns."""
    box = Figures(
        torch.tensor([BOX]), torch.tensor([[6.0, 5.0]]), torch.tensor([[2.0, 1.0]]), torch.zeros(1), torch.ones(1, 3)
    )
    expected = torch.zeros(12, 12)
    expected[4:6, 4:8] = 1
    assert torch.equal(render(box, 12, 12)[0, 1], expected)
    moved = render(box._replace(center=torch.tensor([[6.5, 5.0]])), 12, 12)[0, 1]
    assert moved[4].tolist() == pytest.approx([0, 0, 0, 0, 0.5, 1, 1, 1, 0.5, 0, 0, 0], abs=1 / 255)


def test_angles_turn_clockwise_as_y_runs_down() -> None:
    bar = Figures(
        torch.tensor([BOX]),
        torch.full((1, 2), 8.0),
        torch.tensor([[6.0, 1.0]]),
        torch.tensor([math.pi / 4]),
        torch.ones(1, 3),
    )
    image = render(bar, 16, 16)[0, 0]
    assert image[11, 11] == 1
    assert image[4, 4] == 1
    assert image[4, 11] == 0


def test_the_triangle_has_a_vertex_and_a_side_where_expected() -> None:
    up = Figures(
        torch.tensor([TRIANGLE]), torch.full((1, 2), 16.0), torch.full((1, 2), 4.0), torch.zeros(1), torch.ones(1, 3)
    )
    rows = render(up, 32, 32)[0, 0].sum(1)
    assert rows[20:].sum() == 0  # a side is one inner radius below the center
    assert rows[19] > rows[15] > rows[11] > 0


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_windows_do_not_change_images(form: int) -> None:
    some = figures(form)
    assert torch.equal(drawn(some), drawn(some, window=64))


def test_figures_do_not_depend_on_their_batch() -> None:
    every = Figures(*(torch.cat(members) for members in zip(*map(figures, FORMS.values()), strict=True)))
    assert len(every.form) > AT_ONCE
    mixed = torch.randperm(len(every.form), generator=torch.Generator().manual_seed(0))
    some = Figures(*(member[mixed] for member in every))
    images = drawn(every)
    assert torch.equal(drawn(some), images[mixed])
    assert torch.equal(
        render(every.part(slice(7, 8)), 64, window_for(radius(every.form, every.half).max().item(), 64)), images[7:8]
    )


def test_images_have_256_levels_and_the_figures_colour() -> None:
    some = figures(BOX)._replace(color=torch.rand(200, 3, generator=torch.Generator().manual_seed(1)))
    images = drawn(some)
    levels = images * 255
    assert (levels - levels.round()).abs().max() < 1e-4
    assert (images.amax((2, 3)) - some.color).abs().max() < 0.5 / 255 + 1e-6
    assert render(some.part(slice(0, 0)), 64, 20).shape == (0, 3, 64, 64)
