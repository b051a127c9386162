"""Names of languages that are used as grammars: NAME@DIGEST, with the hash of their content."""

from __future__ import annotations

import re

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
