"""The simulated player reads the pages as people do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icy.study.stimuli import PALETTES, Picture, svg
from tests.study.service.robot import Page, seen


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2**40), st.sampled_from(sorted(PALETTES)), st.booleans())
def test_it_recognizes_pictures(colour: int, shape: int, seed: int, palette: str, patterns: bool) -> None:
    picture = svg(Picture(colour, shape, seed), palette, patterns=patterns)  # type: ignore[arg-type]
    assert seen(picture, palette) == (colour, shape)


def test_it_reads_forms_pictures_and_codes() -> None:
    page = Page(
        '<form action="/a/tab"><input type="hidden" name="tab" value="train"><input name="x" value="no"></form>'
        '<img class="picture" src="/p"><b class="code">abc</b>'
    )
    assert page.forms["tab train"].fields == {"tab": "train"}
    assert (page.picture, page.codes) == ("/p", ["abc"])
    assert Page("<p>nothing</p>").picture == ""
