"""Random draws as in the authors' service, with NumPy's legacy generator."""

from typing import Any, cast

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from icy.core.streams import stream
from icy.grammars.grammar import digits

from .datasets import Dataset

IntArray = NDArray[np.int64]


class LegacyGenerator:
    """NumPy's legacy generator, with the methods that grammars use.

    Args:
        seed: seed of the generator, below 2 ** 32.

    Example:
        >>> LegacyGenerator(0).permutation(6).tolist()
        [5, 2, 1, 3, 0, 4]
    """

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed)

    def permutation(self, count: int) -> IntArray:
        """Draw a permutation of the numbers from 0 to count - 1."""
        return np.asarray(self._state.permutation(count), dtype=np.int64)

    def permuted(self, rows: IntArray, axis: int) -> IntArray:
        """Draw a permutation of every row, one row after the other."""
        return np.stack([row[self._state.permutation(len(row))] for row in rows])

    def random(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Draw uniform numbers from 0 to 1."""
        return np.asarray(self._state.random_sample(shape))


def legacy_words(seed: int, content: Dataset) -> Int64[IntArray, "attr value letter"]:
    """Return the random words of a game in the authors' service, by attribute and value, [A, K, w]."""
    sizes = (2, content.values, content.word_length)
    possible = content.vocab_size**content.word_length
    words = np.random.RandomState(seed).choice(possible, size=sizes[0] * sizes[1], replace=False)
    return digits(words, content.vocab_size, content.word_length).reshape(sizes)


def legacy_generators(content: Dataset) -> Any:
    """Return the argument `generators` of `make_language`: a function that creates random generators.

    If words are random, the authors' draws cannot be reproduced from the seed, so icy's streams are used.
    """
    if content.words is None:
        return stream

    def generator(seed: int, *names: str | int) -> np.random.Generator:
        return cast(np.random.Generator, LegacyGenerator(seed))

    return generator
