"""Answers that are typed: how they are read, and what is no answer."""

import unicodedata

from icy.languages.language import LETTERS

MOST_LETTERS = 64  # of an answer


def normalised(raw: str) -> str:
    """Return an answer as it is compared with the code: compatible letters, no space around it, lower case.

    Example:
        >>> normalised("  RedCir ")
        'redcir'
    """
    return unicodedata.normalize("NFKC", raw).strip().casefold()


def fault_of(raw: str) -> str:
    """Say why something typed is no answer: "empty", "long", "letters" for others than a to z, or "" if it is one.

    What is no answer costs nothing: the item stays open.

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
