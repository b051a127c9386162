"""A player that composes."""

from collections import Counter
from collections.abc import Iterable

from .base import Item
from .memory import Memoriser


class Composer(Memoriser):
    """Remembers codes, and puts new ones together of a word for the colour and a word for the shape.

    A word is what the codes of a colour most often begin with, or those of a shape end with; for one that it never saw
    it types random letters. It is right wherever the language is that of concat and both words were shown.
    """

    def guess(self, item: Item) -> str:
        """Return two words side by side."""
        half = self.seat.content.word_length
        begins = (code[:half] for (colour, _), code in self.known.items() if colour == item[0])
        ends = (code[half:] for (_, shape), code in self.known.items() if shape == item[1])
        return self._word(begins) + self._word(ends)

    def _word(self, seen: Iterable[str]) -> str:
        """Return the most frequent of some words, the one seen first of equals."""
        counts = Counter(seen)
        return counts.most_common(1)[0][0] if counts else self.seat.letters(self.seat.content.word_length)
