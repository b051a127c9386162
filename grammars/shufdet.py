"""shufdet: the last attribute determines the order of the words."""

import numpy as np

from icy.core.register import register_grammar

from .grammar import Corruption, TableMessages, WordTable
from .shuf import reorder_words


@register_grammar(
    "shufdet", source="Icy22 main text (shufdet), Perkins21 (SHUFDET), authors' program (ShuffleWordsDet)"
)
class ShufDet(Corruption):
    """Puts the words of a message in an order that the value of the last attribute determines.

    A uniform permutation of the words is drawn for every value of the last attribute; two values may share a
    permutation. The authors' program and the main text of Icy22 use the last attribute; Perkins21 and appendix H of
    Icy22 state the first attribute.

    Example:
        >>> from icy.grammars import make_language
        >>> make_language("shufdet", "2x3", vocab_size=4, word_length=2).distinct_messages
        9
    """

    shorter_words = True

    def apply(self, messages: TableMessages, table: WordTable) -> TableMessages:
        """Return messages of reordered words; see Corruption.apply."""
        attributes, values = table.space.attributes, table.space.size_of_each[-1]
        in_order = np.tile(np.arange(attributes), (values, 1))
        order_of_value = table.rng.permuted(in_order, axis=1)
        last_values = np.arange(len(messages)) % values
        return reorder_words(messages, table, order_of_value[last_values])
