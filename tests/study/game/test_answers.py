"""Typed answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.study.game import MOST_LETTERS, fault_of, normalised


@pytest.mark.parametrize(
    ("raw", "text"), [("redcir", "redcir"), (" RedCir\n", "redcir"), ("ｒｅｄ", "red"), ("RED", "red"), ("ﬁ", "fi")]
)
def test_answers_are_normalized(raw: str, text: str) -> None:
    assert normalised(raw) == text
    assert fault_of(raw) == ""


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("a" * (MOST_LETTERS + 1), "long"),
        ("rêd", "letters"),
        ("red1", "letters"),
        ("<b>", "letters"),
    ],
)
def test_invalid_answers_have_a_fault(raw: str, fault: str) -> None:
    assert fault_of(raw) == fault


@given(st.text(max_size=80))
def test_valid_answers_are_ascii_letters(raw: str) -> None:
    if not fault_of(raw):
        assert normalised(raw).isascii()
        assert normalised(raw).isalpha()
        assert normalised(normalised(raw)) == normalised(raw)
