"""Small settings drawn at random, and the built-in grammars."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from icy.core.registry import registry
from icy.core.streams import stream
from icy.grammars import (
    Corruption,
    WordTable,
)
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

BUILT_IN = ["concat", "hol", "pairsum", "perm", "proj", "rot", "shuf", "shufdet"]
CORRUPTIONS = [name for name in BUILT_IN if name not in ("concat", "hol")]
TOY = np.array([[1, 2, 3, 0, 2, 1]])

Sizes = tuple[MeaningSpace, int, int, int]


@st.composite
def sizes(draw: st.DrawFn) -> Sizes:
    """A small space of at least two attributes, a vocabulary and word length with enough words, and a seed."""
    space = MeaningSpace(draw(st.integers(2, 4)), draw(st.integers(1, 4)))
    vocab_size = draw(st.integers(2, 6))
    shortest = math.ceil(math.log(space.attributes * space.values + 0.5, vocab_size))
    return space, vocab_size, draw(st.integers(shortest, shortest + 2)), draw(st.integers(0, 999))


def table(space: MeaningSpace, vocab_size: int, word_length: int, seed: int, name: str) -> WordTable:
    return WordTable(space, vocab_size, word_length, stream(seed, name))


def apply(name: str, messages: NDArray[np.int64], at: Sizes) -> NDArray[np.int64]:
    corruption: Corruption = registry.get(name, "grammar").create()
    return corruption.apply(messages, table(*at, name))


def words_of(language: Language) -> NDArray[np.int64]:
    return language.messages.reshape(language.space.size, language.space.attributes, -1).astype(np.int64)


# -- laws --------------------------------------------------------------------------------------------------------------


def orders(name: str, at: Sizes) -> NDArray[np.int64]:
    """The order of words that a shuffle gives every meaning, [N, A]."""
    space, _, word_length, _ = at
    marked = np.arange(space.attributes).repeat(word_length)[None, :].repeat(space.size, axis=0)
    return apply(name, marked, at)[:, ::word_length]
