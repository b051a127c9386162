"""Words of different lengths: a random prefix code, and messages with absent tokens."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int64
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError
from icy.core.streams import stream
from icy.languages.frequencies import Frequencies
from icy.languages.meanings import MAX_LOG2_SIZE, MeaningSpace
from icy.languages.names import bounds_of

from .grammar import ABSENT, IntArray, digits, require_enough_words

Words = Int64[IntArray, "attr={space.attributes} value={space.values} longest"]
Tokens = Int64[IntArray, "meaning length"]


def words_of_lengths(
    space: MeaningSpace, vocab_size: int, word_length: int | str, seed: int, frequencies: Frequencies | None = None
) -> Words:
    """Draw words of different lengths: a prefix code, in which no word is the beginning of another word.

    Each value draws its length uniformly from the lengths that leave a word for every other value, in a random order
    of the values. Then the words are drawn uniformly, short words first. A word never begins with an earlier one. With
    frequencies, the lengths are sorted: frequent values get the short words.

    Args:
        space: the meanings.
        vocab_size: V.
        word_length: bounds of the lengths, such as "1-4".
        seed: seed of the words.
        frequencies: how often each meaning occurs; by default equally often.

    Returns:
        Shape [A, K, w], where w is the largest length; ABSENT after the end of a word, and for values that an attribute
        does not have.

    Raises:
        InvalidSettingError: there are fewer words than values, or more than 2^62 words.
    """
    least, most = bounds_of(word_length)
    if most * np.log2(vocab_size) > MAX_LOG2_SIZE:
        raise InvalidSettingError(
            f"Words of different lengths may have up to 2^{MAX_LOG2_SIZE} different words; a length of {most} over a "
            f"vocabulary of {vocab_size} has more. Give a smaller one."
        )
    require_enough_words(space, vocab_size, most)
    count, rng = sum(space.size_of_each), stream(seed, "word lengths")
    lengths = np.array(_draw_lengths(rng, count, vocab_size, least, most))
    in_order = rng.permutation(count)
    if frequencies is not None:
        lengths.sort()
        numbers, weights = frequencies.of_seed(space, seed)
        columns = zip(space.meanings(numbers).T, space.size_of_each, strict=True)
        shares = np.concatenate([np.bincount(values, weights=weights, minlength=size) for values, size in columns])
        in_order = in_order[np.argsort(-shares[in_order], kind="stable")]
    of_value = np.empty(count, dtype=np.int64)
    of_value[in_order] = lengths
    words = np.full((space.attributes, space.values, most), ABSENT)
    words[space.existing] = _draw_code(stream(seed, "words of different lengths"), of_value, vocab_size, most)
    return words


def _draw_lengths(rng: np.random.Generator, count: int, vocab_size: int, least: int, most: int) -> list[int]:
    """Draw lengths that a prefix code can have (Kraft's inequality).

    A word of n tokens uses up V ** (most - n) of the V ** most longest words.
    """
    left, lengths = vocab_size**most, []
    for others in reversed(range(count)):
        shortest = next(n for n in range(least, most + 1) if vocab_size ** (most - n) + others <= left)
        lengths.append(int(rng.integers(shortest, most + 1)))
        left -= vocab_size ** (most - lengths[-1])
    return lengths


def _draw_code(rng: np.random.Generator, lengths: Sequence[int] | IntArray, vocab_size: int, most: int) -> IntArray:
    """Draw a uniform prefix code with these lengths, shape [n, most], with ABSENT after the end of a word."""
    lengths = np.asarray(lengths)
    words = np.full((len(lengths), most), ABSENT)
    begin, size = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)  # the longest words that are used up
    for length in np.unique(lengths).tolist():
        which, unit = np.flatnonzero(lengths == length), vocab_size ** (most - length)
        used = np.concatenate([[0], np.cumsum(size // unit)])
        free_before = begin // unit - used[:-1]  # free words of this length before each used one
        drawn = rng.choice(vocab_size**length - int(used[-1]), size=len(which), replace=False)
        numbers = drawn + used[np.searchsorted(free_before, drawn, side="right")]
        words[which, :length] = digits(numbers, vocab_size, length)[:, ::-1]
        begin, size = np.append(begin, numbers * unit), np.append(size, np.full(len(which), unit))
        order = np.argsort(begin)
        begin, size = begin[order], size[order]
    return words


def joined(messages: Tokens, fill: int = ABSENT) -> Tokens:
    """Return messages with their tokens at the beginning, and `fill` in place of absent tokens at the end.

    Example:
        >>> import numpy as np
        >>> from icy.grammars.word_lengths import joined
        >>> joined(np.array([[2, -1, 0, 1], [2, -1, 3, -1]]), fill=4).tolist()
        [[2, 0, 1, 4], [2, 3, 4, 4]]
    """
    order = np.argsort(messages == ABSENT, axis=1, kind="stable")
    tokens = np.take_along_axis(messages, order, axis=1)
    return np.where(tokens == ABSENT, fill, tokens)


def spread(tokens: Tokens, present: Bool[NDArray[np.bool_], "meaning length"]) -> Tokens:
    """Return joined messages with their tokens at the places that are present, the inverse of `joined`."""
    messages = np.full(present.shape, ABSENT)
    messages[present] = tokens[tokens != ABSENT]
    return messages
