"""Pictures: their text and places of figures, and that they reveal nothing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import UnknownNameError
from icy.study.game import COLOURS, SHAPES, Picture
from icy.study.stimuli import CORNERS, PALETTES, SIZE, figure_of, outline_of, svg

NAMESPACE = "{http://www.w3.org/2000/svg}"
pictures = st.builds(Picture, st.integers(0, 4), st.integers(0, 4), st.integers(10**6, 2**63 - 1))


def paths(text: str) -> list[ET.Element]:
    return ET.fromstring(text).findall(f".//{NAMESPACE}path")


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


@given(pictures, st.sampled_from(["primary", "safe"]), st.booleans())
def test_the_text_does_not_name_colour_or_shape(picture: Picture, palette: str, patterns: bool) -> None:
    text = svg(picture, palette, patterns=patterns)  # type: ignore[arg-type]
    words = {*COLOURS, *SHAPES, "circle", "rect", "polygon"}
    assert not words & set(re.findall(r"[a-z]+", text.lower()))
    assert str(picture.seed) not in text
    assert {element.tag for element in ET.fromstring(text).iter()} <= {
        NAMESPACE + tag for tag in ("svg", "path", "clipPath", "g")
    }
    assert ET.fromstring(text).attrib["aria-label"] == "Picture"


@given(pictures)
def test_figures_are_within_the_picture(picture: Picture) -> None:
    figure = figure_of(picture)
    (x, y), radius = figure.centre, figure.radius
    assert 50 <= radius <= 150
    assert abs(x - 200) <= 50
    assert abs(y - 200) <= 50
    assert min(x, y, SIZE - x, SIZE - y) - radius >= 0


def test_polygons_are_regular() -> None:
    for shape, corners in zip(SHAPES, CORNERS, strict=True):
        figure = figure_of(Picture(0, SHAPES.index(shape), 5))
        found = points(outline_of(shape, figure))
        if shape == "circle":
            assert outline_of(shape, figure).count("A") == 2
            continue
        assert len(found) == corners
        (x, y), sides = figure.centre, []
        for (a, b), (c, d) in zip(found, [*found[1:], found[0]], strict=True):
            assert ((a - x) ** 2 + (b - y) ** 2) ** 0.5 == pytest.approx(figure.radius, abs=0.02)
            sides.append(((a - c) ** 2 + (b - d) ** 2) ** 0.5)
        assert max(sides) - min(sides) < 0.05


def test_colours_are_the_published_ones_within_ten() -> None:
    published = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (255, 0, 255)]
    for colour, base in enumerate(published):
        seen: set[tuple[int, ...]] = set()
        for seed in range(30):
            fill = paths(svg(Picture(colour, 0, seed)))[1].attrib["fill"]
            shade = tuple(int(fill[i : i + 2], 16) for i in (1, 3, 5))
            assert all(abs(a - b) <= 10 for a, b in zip(shade, base, strict=True))
            seen.add(shade)
        assert len(seen) > 20
    assert PALETTES["safe"].colours[0] == (213, 94, 0)


def test_size_place_and_shade_do_not_depend_on_the_meaning() -> None:
    assert len({figure_of(Picture(c, s, 9)) for c in range(5) for s in range(5)}) == 1


def test_places_are_drawn_uniformly() -> None:
    radii = Counter(figure_of(Picture(0, 0, seed)).radius for seed in range(2000))
    assert len(radii) == 101
    assert max(radii.values()) < 45
    turns = [figure_of(Picture(0, 0, seed)).turn for seed in range(2000)]
    assert min(turns) == 0
    assert max(turns) == 360


def test_pictures_depend_on_the_seed_alone() -> None:
    one, same, other = (svg(Picture(1, 2, seed), "safe", patterns=True) for seed in (1, 1, 2))
    assert one == same != other
    ids = [re.findall(r'id="([^"]+)"', text)[0] for text in (one, other)]
    assert ids[0] != ids[1]  # two pictures in one page


def test_patterns_and_outlines() -> None:
    counts = [svg(Picture(colour, 0, 1), "safe", patterns=True).count("rotate(") for colour in range(5)]
    assert counts == [0, 1, 1, 1, 2]
    assert "stroke-width" in svg(Picture(0, 0, 1), "safe")
    assert "stroke" not in svg(Picture(0, 0, 1))


def test_labels_are_escaped() -> None:
    assert ET.fromstring(svg(Picture(0, 0, 0), label='a "b" <c>')).attrib["aria-label"] == 'a "b" <c>'


def test_unknown_palettes() -> None:
    with pytest.raises(UnknownNameError, match="did you mean primary"):
        svg(Picture(0, 0, 0), "primry")  # type: ignore[arg-type]
