"""Datasets: colored shapes, and the words of their values (Icy22 section 4.3, appendix K)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, require_known
from icy.languages.language import LETTERS
from icy.languages.meanings import MeaningSpace

ATTRIBUTES = ("colour", "shape")  # in the order of the message
COLOURS = ("red", "green", "blue", "yellow", "magenta")
SHAPES = ("circle", "triangle", "square", "pentagon", "hexagon")

WordTable = tuple[tuple[tuple[int, ...], ...], ...]
"""Tokens of the words, by attribute and value."""


@dataclass(frozen=True)
class Dataset:
    """Colored shapes, and the letters of their codes.

    Meanings are numbered in row-major order (color, shape): the shape varies fastest.

    Attributes:
        name: name of the dataset in options.
        values: number of colors and number of shapes, K.
        word_length: number of letters per word, w.
        vocab_size: number of letters, V.
        cents_per_ten: pay for ten points, in hundredths of the currency.
        words: English words of the values; None if every language draws random words.
    """

    name: str
    values: int
    word_length: int
    vocab_size: int
    cents_per_ten: float
    words: WordTable | None = None

    @property
    def space(self) -> MeaningSpace:
        """The meanings: a color, then a shape."""
        return MeaningSpace(len(ATTRIBUTES), self.values)

    @property
    def length(self) -> int:
        """Number of letters per code, L."""
        return len(ATTRIBUTES) * self.word_length

    @property
    def alphabet(self) -> str:
        """The letters that codes use."""
        return LETTERS[: self.vocab_size]

    def changed(
        self, values: int | None = None, word_length: int | None = None, vocab_size: int | None = None
    ) -> "Dataset":
        """Return the dataset with other sizes; None keeps a size.

        Raises:
            InvalidSettingError: a size is out of range, or would change the English words.
        """
        checked = {
            "values": values if values is None else whole_number("number of values", values, 2, len(COLOURS)),
            "word_length": word_length if word_length is None else whole_number("word length", word_length, 1, 16),
            "vocab_size": vocab_size if vocab_size is None else whole_number("vocabulary", vocab_size, 2, len(LETTERS)),
        }
        sizes: dict[str, Any] = {n: size for n, size in checked.items() if size not in (None, getattr(self, n))}
        if self.words is not None:
            if set(sizes) - {"values"}:
                raise InvalidSettingError(
                    f"The dataset '{self.name}' has fixed words, so word_length and vocab_size cannot change; use the "
                    "dataset 'synth'."
                )
            sizes["words"] = tuple(of_values[: sizes.get("values", self.values)] for of_values in self.words)
        return replace(self, **sizes)

    def named(self, meaning: int) -> tuple[str, str]:
        """Return the names of the color and the shape of a meaning, as in ("red", "circle").

        Example:
            >>> dataset("eng").named(24)
            ('magenta', 'hexagon')
        """
        return COLOURS[meaning // self.values], SHAPES[meaning % self.values]


def _tokens(words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(LETTERS.index, word)) for word in words)


ENGLISH: WordTable = _tokens(("red", "grn", "blu", "yel", "mag")), _tokens(("cir", "tri", "box", "pnt", "hex"))
DATASETS = {
    one.name: one
    for one in (
        Dataset("synth", values=3, word_length=2, vocab_size=4, cents_per_ten=4),
        Dataset("eng", values=5, word_length=3, vocab_size=26, cents_per_ten=1, words=ENGLISH),
    )
}


def dataset(name: str) -> Dataset:
    """Find a dataset by name.

    Raises:
        UnknownNameError: no dataset has this name.
    """
    require_known("dataset", name, DATASETS)
    return DATASETS[name]
