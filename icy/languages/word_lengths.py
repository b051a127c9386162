"""Bounds of the lengths of words, such as "1-4"."""

from __future__ import annotations

import re

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError


def word_length_of(given: object) -> int | str:
    """Return a word length in its standard form: a whole number, or the bounds of several lengths, "1-4".

    Args:
        given: a whole number, or two between a hyphen. Equal bounds are one length.

    Raises:
        InvalidSettingError: `given` is something else, or the first bound is not the smaller one.

    Example:
        >>> from icy.languages.word_lengths import word_length_of
        >>> word_length_of("1 - 4"), word_length_of("4-4"), word_length_of("4")
        ('1-4', 4, 4)
    """
    found = re.fullmatch(r"\s*([0-9]{1,9})\s*[-–]\s*([0-9]{1,9})\s*", given) if isinstance(given, str) else None
    if found is None and isinstance(given, str) and not given.strip().isdecimal():
        raise InvalidSettingError(
            f"The word length must be a whole number, or two with a hyphen as in 1-4, not '{given}'."
        )
    if found is None:
        return whole_number("word length", int(given) if isinstance(given, str) else given)
    least, most = (whole_number("word length", int(number)) for number in found.groups())
    if least > most:
        raise InvalidSettingError(f"The word lengths {given} must begin with the smaller one: write {most}-{least}.")
    return most if least == most else f"{least}-{most}"


def bounds_of(word_length: int | str) -> tuple[int, int]:
    """Return the lengths of the shortest and the longest word.

    Args:
        word_length: as `word_length_of` returns it.

    Example:
        >>> from icy.languages.word_lengths import bounds_of
        >>> bounds_of("1-4"), bounds_of(4)
        ((1, 4), (4, 4))
    """
    if isinstance(word_length, int):
        return word_length, word_length
    least, most = word_length.split("-")
    return int(least), int(most)
