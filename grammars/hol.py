"""hol: an arbitrary message for every meaning."""

import numpy as np
from jaxtyping import Int64

from icy.core.errors import InvalidSettingError
from icy.core.register import register_grammar
from icy.core.streams import stream
from icy.core.text import counted
from icy.languages.meanings import MeaningSpace

from .grammar import ABSENT, IntArray, Lengths, Messages, Words, distinct_digits

ROOM_FOR_REPEATS = 1000  # from this number of possible messages per meaning, the authors draw with replacement


@register_grammar("hol", source="Perkins21 (HOL), Icy22 (hol)", aliases=("holistic",))
def hol(
    space: MeaningSpace,
    vocab_size: int,
    word_length: int,
    seed: int,
    words: Words | None = None,
    lengths: Lengths | None = None,
) -> Messages:
    """Gives every meaning a uniformly random message, which can only be memorized.

    Messages are distinct if fewer than 1000 are possible per meaning. Otherwise they are drawn with replacement, as in
    the authors' program, and two meanings rarely share a message.

    Args:
        space: the meanings.
        vocab_size: V.
        word_length: w; messages have length L = A * w, as in other grammars.
        seed: seed of the messages.
        words: base words; ignored.
        lengths: number of tokens of each message; by default A * w.

    Returns:
        Messages, shape [N, L].

    Raises:
        InvalidSettingError: there are fewer messages than meanings.

    Example:
        >>> from icy.grammars import make_language
        >>> make_language("hol", "2x3", vocab_size=4, word_length=2).distinct_messages
        9
    """
    length = space.attributes * word_length
    possible = vocab_size**length
    if possible < space.size:
        raise InvalidSettingError(
            f"{space} has {space.size} meanings, but a length of {length} gives only {counted(possible, 'message')} "
            "over a "
            f"vocabulary of {vocab_size}; raise the vocabulary or the word length."
        )
    rng = stream(seed, "hol")
    if lengths is None:
        return _uniform_messages(rng, space.size, vocab_size, length)
    messages = np.full((space.size, length), ABSENT)
    for shorter in np.unique(lengths).tolist():
        which = np.flatnonzero(lengths == shorter)
        messages[which, :shorter] = _uniform_messages(rng, len(which), vocab_size, shorter)
    return messages


def _uniform_messages(
    rng: np.random.Generator, count: int, vocab_size: int, length: int
) -> Int64[IntArray, "count={count} length={length}"]:
    """Draw messages, which are distinct if fewer than 1000 are possible per message."""
    if vocab_size**length < ROOM_FOR_REPEATS * count:
        return distinct_digits(rng, count, vocab_size, length)
    # Uniform tokens are distributed like the digits of a uniform number below V ** L, which may exceed 64 bits.
    return rng.integers(vocab_size, size=(count, length))
