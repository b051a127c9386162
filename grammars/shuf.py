"""shuf: the words of every message in a random order."""

from typing import ClassVar

import numpy as np
from jaxtyping import Int64

from icy.core.register import register_grammar

from .grammar import Corruption, IntArray, TableMessages, WordTable


@register_grammar("shuf", source="Perkins21 (SHUF), Icy22 (shuf)")
class Shuf(Corruption):
    """Puts the words of every message in its own random order, drawn once (for receivers).

    For every meaning a uniform permutation q of the words is drawn when the table is made, and slot p of the message
    gets word q[p]. The order is arbitrary, and a sender can only memorize it, so "all" leaves shuf out for senders.

    Example:
        >>> from icy.grammars import make_language
        >>> make_language("shuf", "2x3", vocab_size=4, word_length=2).name
        'shuf'
    """

    sides: ClassVar[tuple[str, ...]] = ("receiver",)
    shorter_words = True

    def apply(self, messages: TableMessages, table: WordTable) -> TableMessages:
        """Return messages of shuffled words; see Corruption.apply."""
        in_order = np.tile(np.arange(table.space.attributes), (len(messages), 1))
        return reorder_words(messages, table, table.rng.permuted(in_order, axis=1))


def reorder_words(
    messages: TableMessages,
    table: WordTable,
    orders: Int64[IntArray, "meaning={table.space.size} attr={table.space.attributes}"],
) -> TableMessages:
    """Return messages with the word orders[:, p] at slot p.

    Args:
        messages: shape [N, L].
        table: sizes of the table.
        orders: a permutation of the words for every message, shape [N, A].

    Returns:
        Shape [N, L].
    """
    first_word = np.arange(len(messages))[:, None] * table.space.attributes
    words = messages.reshape(-1, table.word_length)
    return np.take(words, first_word + orders, axis=0).reshape(messages.shape)
