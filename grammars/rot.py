"""rot: each token is rotated by the sum of all tokens before it."""

import numpy as np

from icy.core.register import register_grammar

from .grammar import ABSENT, Corruption, TableMessages, WordTable


@register_grammar("rot", source="Perkins21 (ROT), Icy22 (rot), authors' program (Cumrot)")
class Rot(Corruption):
    """Replaces each token by the sum of all tokens up to it, modulo V, across word boundaries.

    Example:
        >>> import numpy as np
        >>> from icy.grammars.grammar import WordTable
        >>> from icy.grammars.rot import Rot
        >>> from icy.languages.meanings import MeaningSpace
        >>> table = WordTable(MeaningSpace(3, 1), vocab_size=4, word_length=2, rng=np.random.default_rng(0))
        >>> Rot().apply(np.array([[1, 2, 3, 0, 2, 1]]), table).tolist()
        [[1, 3, 2, 2, 0, 1]]
    """

    shorter_words = True

    def apply(self, messages: TableMessages, table: WordTable) -> TableMessages:
        """Return rotated messages; see Corruption.apply."""
        if not table.shorter_words:
            return np.cumsum(messages, axis=1, dtype=np.int64) % table.vocab_size
        present = messages != ABSENT
        return np.where(present, np.cumsum(messages * present, axis=1) % table.vocab_size, ABSENT)
