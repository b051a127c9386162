"""The simulated player reads the pages as people do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icy.study.stimuli import PALETTES, Picture, svg
from tests.study.service.robot import seen


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2**40), st.sampled_from(sorted(PALETTES)), st.booleans())
def test_it_recognizes_pictures(colour: int, shape: int, seed: int, palette: str, patterns: bool) -> None:
    picture = svg(Picture(colour, shape, seed), palette, patterns=patterns)  # type: ignore[arg-type]
    assert seen(picture, palette) == (colour, shape)
