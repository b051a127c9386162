"""Small languages, by hand and at random."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

MESSAGES = [[0, 0], [0, 1], [1, 0], [1, 2]]


@st.composite
def languages(draw: st.DrawFn) -> Language:
    space = MeaningSpace(draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    vocab_size = draw(st.sampled_from([1, 2, 4, 26, 27, 256, 257, 70_000, 2**31]))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    return Language(
        space,
        rng.integers(vocab_size, size=(space.size, draw(st.integers(1, 5)))),
        vocab_size,
        name=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
        seed=draw(st.none() | st.integers()),
        value_names=draw(st.sampled_from([None, [[f"v{i}é" for i in range(space.values)]] * space.attributes])),
    )


def small() -> Language:
    return Language(MeaningSpace(2, 2), np.array(MESSAGES), 3, name="small", seed=5)
