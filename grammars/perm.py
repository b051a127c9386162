"""perm: one permutation of the positions, the same for every message."""

from icy.core.register import register_grammar

from .grammar import ABSENT, Corruption, TableMessages, WordTable
from .word_lengths import joined, spread


@register_grammar("perm", source="Perkins21 (PERM), Icy22 (perm)")
class Perm(Corruption):
    """Permutes the positions of all messages in the same random way.

    Token t of the new message is token pi[t] of the old one, for one uniform permutation pi of the L positions. Shorter
    messages leave out the positions that they do not have.

    Example:
        >>> from icy.grammars import make_language
        >>> make_language("perm", "2x3", vocab_size=4, word_length=2).name
        'perm'
    """

    shorter_words = True

    def apply(self, messages: TableMessages, table: WordTable) -> TableMessages:
        """Return messages with permuted positions; see Corruption.apply."""
        order = table.rng.permutation(table.message_length)
        if not table.shorter_words:
            return messages[:, order]
        return spread(joined(joined(messages)[:, order]), messages != ABSENT)
