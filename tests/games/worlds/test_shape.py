"""Shape: images match their labels, and a small network can classify them."""

from __future__ import annotations

import colorsys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from icy.core.noise import counter_hash
from icy.games import World, make_world
from icy.games.worlds.shape import BORDER, COLOURS, Shape, area, radius, rgb

COUNT = 540


def drawn(world: World, count: int = COUNT, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return objects, with equally many per class, and keys."""
    objects = torch.cartesian_prod(*(torch.arange(size) for size in world.sizes))
    return objects[torch.arange(count) % len(objects)], counter_hash(torch.tensor(seed), torch.arange(count))


def centers_of_mass(images: Tensor) -> Tensor:
    mass = images.amax(1)
    pixel = torch.arange(images.shape[-1]) + 0.5
    total = mass.sum((1, 2))
    return torch.stack([(mass.sum(1) * pixel).sum(1) / total, (mass.sum(2) * pixel).sum(1) / total], 1)


@pytest.mark.parametrize("sizes", ["clear", "published"])
@pytest.mark.parametrize("canvas", [32, 64])
def test_figures_are_in_the_cells_that_their_labels_say(sizes: str, canvas: int) -> None:
    world = make_world("shape", sizes=sizes, canvas=canvas)
    objects, keys = drawn(world)
    cells = (centers_of_mass(world.observe(objects, keys)) * 3 / canvas).floor()
    assert torch.equal(cells.long(), objects[:, 2:])


@pytest.mark.parametrize(("sizes", "tolerance"), [("clear", 0.1), ("published", 0.25)])
def test_areas_are_those_of_the_figures(sizes: str, tolerance: float) -> None:
    """Figures of published sizes cover as few as a dozen pixels, so the relative error is larger."""
    world = Shape(sizes=sizes)
    objects, keys = drawn(world)
    figures = world.figures(objects, keys)
    covered = world.observe(objects, keys).amax(1).sum((1, 2)) / figures.color.amax(1)
    ratio = covered / area(figures.form, figures.half)
    assert (ratio - 1).abs().max() < tolerance
    for shape in range(5):
        assert (ratio[objects[:, 0] == shape].mean() - 1).abs() < 0.1


def test_figures_are_within_the_image_and_their_cell() -> None:
    world = Shape()
    objects, keys = drawn(world, 5000)
    figures = world.figures(objects, keys)
    reach = radius(figures.form, figures.half)[:, None] + BORDER
    assert (figures.center - reach).min() > -1e-4
    assert (figures.center + reach).max() < 64 + 1e-4
    into_cell = figures.center / (64 / 3) % 1
    assert into_cell.min() >= 0.15 - 1e-4
    assert into_cell.max() <= 0.85 + 1e-4


def test_centres_fill_their_cells() -> None:
    """In the middle cell any place within the margins is as likely as any other."""
    world = Shape()
    objects = torch.tensor([[0, 0, 1, 1]]).expand(20_000, -1)
    x = world.figures(objects, counter_hash(torch.tensor(1), torch.arange(20_000))).center[:, 0]
    counts = torch.histc(x, 7, 64 / 3 * 1.15, 64 / 3 * 1.85)
    assert counts.sum() == 20_000
    assert ((counts / 20_000 - 1 / 7).abs() < 0.01).all()


def test_colours_are_near_those_named() -> None:
    world = Shape()
    objects, keys = drawn(world, 5400)
    brightest = world.observe(objects, keys).flatten(2).amax(2)
    for place, (hue, saturation, value) in enumerate(COLOURS.values()):
        for colour in brightest[objects[:, 1] == place].tolist():
            h, s, v = colorsys.rgb_to_hsv(*colour)
            assert abs(s - saturation) < 0.2 + 0.02
            assert abs(v - value) < 0.2 + 0.01
            if s > 0.3:
                assert min(abs(h - hue), 1 - abs(h - hue)) < 0.02 + 0.01


@given(st.floats(0, 1, width=32), st.floats(0, 1, width=32), st.floats(0, 1, width=32))
def test_rgb_equals_the_standard_library(hue: float, saturation: float, value: float) -> None:
    found = rgb(*(torch.tensor([one]) for one in (hue, saturation, value)))[0].tolist()
    assert found == pytest.approx(colorsys.hsv_to_rgb(hue, saturation, value), abs=1e-5)


def test_images_are_reproducible_and_depend_on_keys() -> None:
    world = make_world("shape")
    objects, keys = drawn(world, 40)
    images = world.observe(objects, keys)
    assert torch.equal(make_world("shape").observe(objects, keys), images)
    assert torch.equal(world.observe(objects.view(5, 8, 4), keys.view(5, 8)), images.view(5, 8, 3, 64, 64))
    others = world.observe(objects, keys + 1)
    assert (images != others).flatten(1).any(1).all()
    assert images.min() == 0
    assert images.max() <= 1


def test_a_smaller_canvas_shows_the_same_figures() -> None:
    large, small = Shape(), Shape(canvas=32)
    objects, keys = drawn(large, 100)
    one, two = large.figures(objects, keys), small.figures(objects, keys)
    torch.testing.assert_close(two.half * 2, one.half)
    assert torch.equal(one.color, two.color)
    assert torch.equal(one.angle, two.angle)


def test_without_noise_colours_are_exact() -> None:
    world = Shape(noise=0)
    objects, keys = drawn(world, 60)
    expected = torch.tensor([colorsys.hsv_to_rgb(*COLOURS[world.values[1][c]]) for c in objects[:, 1].tolist()])
    torch.testing.assert_close(world.figures(objects, keys).color, expected)


def test_positions_can_be_more_or_none() -> None:
    none = Shape(positions=0, sizes="published")
    assert (none.attributes, none.objects) == (("shape", "colour"), 30)
    objects, keys = drawn(none, 4000)
    centers = none.figures(objects, keys).center
    assert centers.unique().tolist() == list(range(8, 48))
    assert Shape(positions=0).figures(objects, keys).center.std() > 10
    four = Shape(positions=4)
    assert four.values[2] == ("x 1", "x 2", "x 3", "x 4")
    objects, keys = drawn(four)
    cells = (centers_of_mass(four.observe(objects, keys)) * 4 / 64).floor().long()
    assert torch.equal(cells, objects[:, 2:])


def test_concepts_have_plain_names() -> None:
    assert make_world("shape").concepts == (
        "circle", "square", "rectangle", "ellipse", "triangle", "red", "blue", "green", "yellow", "white", "gray",
        "left", "centre", "right", "top", "middle", "bottom",
    )  # fmt: skip
