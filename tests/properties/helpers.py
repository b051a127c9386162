"""What the properties draw from: tables of meanings and messages, languages, files and what damages them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from icy.core.errors import IcyError
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

HUGE = (2**31, 10**10, 2**53 + 1, 2**61 - 1, 2**62, 2**63, 10**20)  # numbers that have gone wrong somewhere
SHORT_TEXT = st.text(max_size=8)
Rows = tuple[list[list[int]], list[list[int]]]  # meanings and messages
Found = TypeVar("Found")


def unless_refused(action: Callable[[], Found]) -> Found | None:
    """Return what an action returns, or None if it refuses in a sentence; any other error is one of icy's."""
    try:
        return action()
    except IcyError as error:
        said = str(error)
    assert said.strip()
    assert "weights_only" not in said  # torch's advice, to run what a file holds
    return None


@st.composite
def tables(draw: st.DrawFn, fewest: int = 1, shortest: int = 0, most: int = 3) -> Rows:
    """Meanings and messages of few rows, values and tokens: repeated, constant, ragged and empty ones among them."""
    rows, attributes = draw(st.integers(fewest, 9)), draw(st.integers(1, 3))
    longest = draw(st.integers(shortest, 4))
    value, token = st.integers(0, draw(st.integers(0, most))), st.integers(0, draw(st.integers(0, most)))
    meaning = st.lists(value, min_size=attributes, max_size=attributes)
    message = st.lists(token, min_size=draw(st.integers(shortest, longest)), max_size=longest)
    meanings = draw(st.lists(meaning, min_size=rows, max_size=rows))
    return meanings, draw(st.lists(message, min_size=rows, max_size=rows))


@st.composite
def languages(draw: st.DrawFn) -> Language:
    """Languages of all vocabularies, as letters and as numbers in csv, with and without names."""
    space = MeaningSpace(draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    vocab_size, length = draw(st.sampled_from([1, 2, 26, 27, 256, 257, 70_000, 2**31])), draw(st.integers(1, 4))
    message = st.lists(st.integers(0, vocab_size - 1), min_size=length, max_size=length)
    names = st.lists(SHORT_TEXT, min_size=space.values, max_size=space.values).map(tuple)
    return Language(
        space,
        np.array(draw(st.lists(message, min_size=space.size, max_size=space.size))),
        vocab_size,
        name=draw(SHORT_TEXT),
        seed=draw(st.none() | st.integers(0, 2**40)),
        value_names=draw(st.none() | st.tuples(*[names] * space.attributes)),
    )


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A file cut short, with bytes changed, or something else altogether."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.binary(max_size=200))
    found = bytearray(whole[: draw(st.integers(0, len(whole)))] if draw(st.booleans()) else whole)
    for _ in range(draw(st.integers(0, 4)) if found else 0):
        found[draw(st.integers(0, len(found) - 1))] = draw(st.integers(0, 255))
    return bytes(found)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(HUGE) | st.floats() | SHORT_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SHORT_TEXT, inner, max_size=3),
    max_leaves=6,
)
