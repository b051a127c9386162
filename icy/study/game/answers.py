"""Typed answers: normalization and validation."""

import unicodedata

from icy.languages.language import LETTERS

MOST_LETTERS = 64  # maximum length of an answer


def normalised(raw: str) -> str:
    """Normalize an answer for comparison with the code: Unicode NFKC, without surrounding space, lower case.

    Example:
        >>> normalised("  RedCir ")
        'redcir'
    """
    return unicodedata.normalize("NFKC", raw).strip().casefold()


def fault_of(raw: str) -> str:
    """Return the fault of an answer: "empty", "long" or "letters" (other than a to z); "" if the answer is valid.

    An invalid answer has no effect on the game: the item stays open.

    Example:
        >>> fault_of("redcir"), fault_of(" "), fault_of("red cir"), fault_of("a" * 65)
        ('', 'empty', 'letters', 'long')
    """
    if len(raw) > MOST_LETTERS:
        return "long"
    text = normalised(raw)
    if not text:
        return "empty"
    return "" if set(text) <= set(LETTERS) else "letters"
