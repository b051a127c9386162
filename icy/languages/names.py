"""Names of languages that are used as grammars, NAME@DIGEST, and lengths of words, such as "1-4"."""

from __future__ import annotations

import re

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError

# -- names of languages that are used as grammars: NAME@DIGEST, with the hash of their content -------------------------


DIGEST = r"[0-9a-f]{16}"  # digest of a Language


def grammar_name(name: str, digest: str) -> str:
    """Return the name, NAME@DIGEST, under which a language is used as a grammar.

    Special characters of names of grammars, patterns and lists become "-".

    Example:
        >>> grammar_name("rot+perm", "1a2b3c4d5e6f7081"), grammar_name("", "1a2b3c4d5e6f7081")
        ('rot-perm@1a2b3c4d5e6f7081', 'language@1a2b3c4d5e6f7081')
    """
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-")
    return f"{plain or 'language'}@{digest}"


def is_language(grammar: str) -> bool:
    """Return whether the name of a grammar is the name of a language.

    Example:
        >>> is_language("emerged@1a2b3c4d5e6f7081"), is_language("rot+perm")
        (True, False)
    """
    return re.fullmatch(rf"[\w.-]+@{DIGEST}", grammar) is not None


def content_name(grammar: str) -> str:
    """Return "@" and the hash of a language; return the name of any other grammar unchanged.

    Keys of records use this name, so a renamed file is still the same language.

    Example:
        >>> content_name("emerged@1a2b3c4d5e6f7081"), content_name("rot+perm")
        ('@1a2b3c4d5e6f7081', 'rot+perm')
    """
    return f"@{grammar.rpartition('@')[2]}" if is_language(grammar) else grammar


def language_file(grammar: str) -> str:
    """Return the file of a language in the results folder.

    Example:
        >>> language_file("emerged@1a2b3c4d5e6f7081")
        'grammars/1a2b3c4d5e6f7081.npz'
    """
    return f"grammars/{grammar.rpartition('@')[2]}.npz"


def meanings_file(name: str) -> str:
    """Return the file of a table of meanings, NAME@DIGEST, in the results folder."""
    return f"meanings/{name.rpartition('@')[2]}.csv"


def short_name(grammar: str) -> str:
    """Return the name of a grammar, without the hash of a language.

    Example:
        >>> short_name("emerged@1a2b3c4d5e6f7081"), short_name("rot")
        ('emerged', 'rot')
    """
    return grammar.partition("@")[0] if is_language(grammar) else grammar


# -- bounds of the lengths of words, such as "1-4" ---------------------------------------------------------------------


def word_length_of(given: object) -> int | str:
    """Return a word length in its standard form: a whole number, or the bounds of several lengths, "1-4".

    Args:
        given: a whole number, or two between a hyphen. Equal bounds are one length.

    Raises:
        InvalidSettingError: `given` is something else, or the first bound is not the smaller one.

    Example:
        >>> from icy.languages.names import word_length_of
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
        >>> from icy.languages.names import bounds_of
        >>> bounds_of("1-4"), bounds_of(4)
        ((1, 4), (4, 4))
    """
    if isinstance(word_length, int):
        return word_length, word_length
    least, most = word_length.split("-")
    return int(least), int(most)
