"""pairsum: the next word is added to each word."""

import numpy as np

from icy.core.register import register_grammar

from .grammar import ABSENT, Corruption, TableMessages, WordTable, check_two_attributes


@register_grammar("pairsum", source="Perkins21 (PAIRSUM), Icy22 (pairsum), authors' program (WordPairSums)")
class PairSum(Corruption):
    """Adds to each word the next word, token by token, modulo V.

    Words are updated in order and in place, as in the authors' program. So the updated first word is added to the last
    word, which makes the map invertible. (Perkins21 writes that the previous word is added.) Words of different lengths
    keep their lengths, and nothing is added where the next word has no token.

    Raises:
        IncompatibleError: the space has only one attribute.

    Example:
        >>> import numpy as np
        >>> from icy.grammars.grammar import WordTable
        >>> from icy.grammars.pairsum import PairSum
        >>> from icy.languages.meanings import MeaningSpace
        >>> table = WordTable(MeaningSpace(3, 1), vocab_size=4, word_length=2, rng=np.random.default_rng(0))
        >>> PairSum().apply(np.array([[1, 2, 3, 0, 2, 1]]), table).tolist()
        [[0, 2, 1, 1, 2, 3]]
    """

    shorter_words = True

    def apply(self, messages: TableMessages, table: WordTable) -> TableMessages:
        """Return messages of summed words; see Corruption.apply."""
        check_two_attributes(table, "pairsum")
        words = table.words(messages).copy()
        attributes = table.space.attributes
        for a in range(attributes):
            word, following = words[:, a], words[:, (a + 1) % attributes]
            if table.shorter_words:
                word[...] = np.where(word == ABSENT, ABSENT, (word + np.maximum(following, 0)) % table.vocab_size)
            else:
                word[...] = (word + following) % table.vocab_size
        return words.reshape(messages.shape)
