"""Interfaces of grammars, and the base words that all grammars of one seed share.

A grammar is either

- a function `(space, vocab_size, word_length, seed)` that returns a Language or messages [N, L], or
- a `Corruption`: a map on a whole table of base messages. Corruptions can be chained, as in `rot+perm`.

Both are registered with `icy.core.register.register_grammar`. A grammar for one side declares it in `sides`, a class
attribute of a corruption or an attribute of a function.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from jaxtyping import Int64, Integer
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import SIDES
from icy.core.streams import Seed, stream
from icy.core.text import counted
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

IntArray = NDArray[np.int64]
Messages = Int64[IntArray, "meaning={space.size} length={space.attributes*word_length}"]  # of a function
TableMessages = Int64[IntArray, "meaning={table.space.size} length={table.message_length}"]  # of a corruption
Lengths = Int64[IntArray, "meaning={space.size}"]
Words = Int64[IntArray, "attr={space.attributes} value={space.values} word_length={word_length}"]

ABSENT = -1  # in place of a token after the end of a shorter word, and of the words of values that do not exist
LARGEST_DRAW = 2**62  # numbers up to this are drawn as one 64-bit integer, larger ones digit by digit


class Grammar(Protocol):
    """A function that makes a language.

    Args:
        space: the meanings.
        vocab_size: number of tokens, V.
        word_length: tokens per attribute word, w; messages have length L = A * w.
        seed: every draw must come from `icy.core.streams.stream(seed, NAME)`, with the grammar's own name.

    A function that accepts base words from the user also has an argument `words=None`, of shape [A, K, w]. A function
    that accepts words of different lengths also has `lengths=None`, the number of tokens of each message, [N]; then w
    is the longest word, `words` has ABSENT (-1) after the end of a word, and so have the returned messages.

    Returns:
        A Language over `space`, or its messages: shape [N, L], tokens 0..V-1, rows in the order of meanings.
    """

    def __call__(
        self, space: MeaningSpace, vocab_size: int, word_length: int, seed: int
    ) -> Language | Integer[NDArray[np.integer[Any]], "meaning length"]: ...


@dataclass(frozen=True)
class WordTable:
    """Sizes and random generator of a table of messages, for a corruption.

    Attributes:
        space: the meanings, in the order of the rows.
        vocab_size: number of tokens, V.
        word_length: tokens per word, w.
        rng: the generator to draw from; each corruption of a seed has its own.
        shorter_words: whether words may be shorter than w. Then messages have ABSENT (-1) in place of missing tokens
            of a word.
    """

    space: MeaningSpace
    vocab_size: int
    word_length: int
    rng: np.random.Generator
    shorter_words: bool = False

    @property
    def message_length(self) -> int:
        """Tokens per message, L = A * w."""
        return self.space.attributes * self.word_length

    def words(
        self, messages: Int64[IntArray, "meaning length={self.message_length}"]
    ) -> Int64[IntArray, "meaning attr={self.space.attributes} word_length={self.word_length}"]:
        """Return messages [N, L] as words, shape [N, A, w]; a view, so copy it before you change it."""
        return messages.reshape(len(messages), self.space.attributes, self.word_length)


class Corruption(ABC):
    """A map on a whole table of messages. To add a grammar, register a subclass.

    Attributes:
        sides: the sides that can learn the grammar: "sender", "receiver" or both.
        shorter_words: whether `apply` takes words of different lengths (see WordTable). It must keep the number of
            tokens of every message.

    Example:
        >>> import numpy as np
        >>> from icy.grammars.grammar import Corruption, WordTable
        >>> class Mirror(Corruption):
        ...     def apply(self, messages, table):
        ...         return messages[:, ::-1]
        >>> from icy.languages.meanings import MeaningSpace
        >>> table = WordTable(MeaningSpace(1, 2), vocab_size=3, word_length=2, rng=np.random.default_rng(0))
        >>> Mirror().apply(np.array([[0, 1], [2, 1]]), table).tolist()
        [[1, 0], [1, 2]]
    """

    sides: ClassVar[tuple[str, ...]] = SIDES
    shorter_words: ClassVar[bool] = False

    @abstractmethod
    def apply(self, messages: TableMessages, table: WordTable) -> TableMessages:
        """Return the corrupted messages.

        Args:
            messages: shape [N, L], 64-bit integers, row i for meaning i; do not change them in place.
            table: the space, the sizes, and the random generator to draw from.

        Returns:
            Shape [N, L], tokens 0..V-1.
        """


def base_words(space: MeaningSpace, vocab_size: int, word_length: int, seed: Seed) -> Words:
    """Draw the words of all attribute values: uniform, and distinct within and across attributes (Perkins21, Icy22).

    The words depend only on the seed and the sizes, so all grammars of a seed share them.

    Args:
        space: the meanings.
        vocab_size: V.
        word_length: w.
        seed: seed of the words, or the generator to draw them from.

    Returns:
        Shape [A, K, w]; ABSENT at values that an attribute does not have.

    Raises:
        InvalidSettingError: there are fewer different words than values.
    """
    require_enough_words(space, vocab_size, word_length)
    words = np.full((space.attributes, space.values, word_length), ABSENT)
    words[space.existing] = distinct_digits(stream(seed, "words"), sum(space.size_of_each), vocab_size, word_length)
    return words


def require_enough_words(space: MeaningSpace, vocab_size: int, word_length: int) -> None:
    """Raise InvalidSettingError if there are fewer different words of a length than values."""
    count, possible = sum(space.size_of_each), vocab_size**word_length
    if possible < count:
        raise InvalidSettingError(
            f"{space} needs {counted(count, 'different word')}, but a length of {word_length} gives only {possible} "
            f"over a vocabulary of {vocab_size}; raise the vocabulary or the word length."
        )


def base_messages(
    space: MeaningSpace, vocab_size: int, word_length: int, seed: Seed, words: Words | None = None
) -> Messages:
    """Return the messages of the compositional language: the words of the values, in the order of attributes.

    Args:
        space: the meanings.
        vocab_size: V.
        word_length: w.
        seed: seed of the words, or the generator to draw them from, unless `words` is given.
        words: the words of all values, shape [A, K, w].

    Returns:
        Shape [N, A * w].

    Raises:
        InvalidSettingError: as for `base_words`, or the table does not fit in memory.
    """
    if words is None:
        words = base_words(space, vocab_size, word_length, seed)
    space.check_fits(space.attributes * word_length)
    messages = np.empty((space.size, space.attributes, word_length), dtype=np.int64)
    sizes, repeats = space.size_of_each, space.strides  # the latter: meanings in a row with the same value
    for attribute, of_values in enumerate(words):
        of_one = messages[:, attribute].reshape(-1, sizes[attribute], repeats[attribute], word_length)
        of_one[...] = of_values[: sizes[attribute], None]
    return messages.reshape(space.size, -1)


def distinct_digits(
    rng: np.random.Generator, count: int, base: int, length: int
) -> Int64[IntArray, "count={count} length={length}"]:
    """Draw distinct uniform numbers below base ** length, as digits, least significant first.

    Returns:
        Shape [count, length].
    """
    possible = base**length
    if possible <= LARGEST_DRAW:
        return digits(rng.choice(possible, size=count, replace=False), base, length)
    # Too large for 64-bit integers: draw uniform rows, and repeat in the very unlikely case that two are equal.
    while True:
        rows = rng.integers(base, size=(count, length))
        if len(np.unique(rows, axis=0)) == count:
            return rows


def digits(numbers: Int64[IntArray, "*axes"], base: int, length: int) -> Int64[IntArray, "*axes length={length}"]:
    """Return the digits [..., length] of numbers [...], least significant first.

    Example:
        >>> import numpy as np
        >>> from icy.grammars.grammar import digits
        >>> digits(np.array([6, 16]), base=4, length=3).tolist()
        [[2, 1, 0], [0, 0, 1]]
    """
    shown = np.empty((*numbers.shape, length), dtype=np.int64)
    for place in range(length):
        numbers, shown[..., place] = np.divmod(numbers, base)
    return shown


def given_words(words: object, space: MeaningSpace, vocab_size: int, word_length: int) -> Words:
    """Check a user's table of words, and return it as a new array.

    Raises:
        InvalidSettingError: `words` is not an array [A, K, w] of tokens 0..V-1, or two values have the same word.
            Words of values that an attribute does not have are ignored.
    """
    shape = (space.attributes, space.values, word_length)
    try:
        given = np.array(words)
    except ValueError:  # rows of different lengths
        given = np.array([])
    if given.shape != shape or given.dtype.kind not in "iu":
        raise InvalidSettingError(
            f"The words of {space} must be whole numbers of shape {shape}: attributes, values, tokens of a word; the "
            f"given words have shape {given.shape}."
        )
    used = given[space.existing]
    if used.min() < 0 or used.max() >= vocab_size:
        raise InvalidSettingError(
            f"Tokens of words run from 0 to {vocab_size - 1}; found {used.min()} to {used.max()}."
        )
    if len(np.unique(used, axis=0)) < len(used):
        raise InvalidSettingError("Two attribute values have the same word; give each value its own word.")
    return given.astype(np.int64)


def check_settings(space: MeaningSpace, vocab_size: int, word_length: int) -> None:
    """Raise an error for sizes that no grammar supports, before memory is allocated.

    Raises:
        InvalidSettingError: the vocabulary is below 2, the word length below 1, or the table too large for memory.
    """
    whole_number("vocabulary size", vocab_size, least=2)
    whole_number("word length", word_length)
    space.check_fits(space.attributes * word_length)


def check_two_attributes(table: WordTable, name: str) -> None:
    """Raise IncompatibleError if the space has one attribute, for a grammar that combines words."""
    if table.space.attributes < 2:
        raise IncompatibleError(f"The grammar '{name}' needs at least 2 attributes; {table.space} has 1.")
