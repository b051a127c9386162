"""concat: the words of the attribute values, one after the other."""

from icy.core.register import register_grammar
from icy.languages.meanings import MeaningSpace

from .grammar import Lengths, Messages, Words, base_messages


@register_grammar("concat", source="Perkins21 (COMP), Icy22 (concat)", aliases=("comp", "compositional"))
def concat(
    space: MeaningSpace,
    vocab_size: int,
    word_length: int,
    seed: int,
    words: Words | None = None,
    lengths: Lengths | None = None,
) -> Messages:
    """Concatenates the words of the attribute values: fully compositional.

    Args:
        space: the meanings.
        vocab_size: V, with V ** w at least A * K.
        word_length: w.
        seed: seed of the base words, unless `words` is given.
        words: the base words, shape [A, K, w].
        lengths: number of tokens of each message; ignored, as it is that of the words.

    Returns:
        Messages, shape [N, A * w].

    Raises:
        InvalidSettingError: there are fewer than A * K different words.

    Example:
        >>> from icy.grammars import make_language
        >>> make_language("concat", "2x3", vocab_size=4, word_length=2).messages.shape
        (9, 4)
    """
    return base_messages(space, vocab_size, word_length, seed, words)
