"""Which columns of a file hold meanings and which hold messages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from icy.core.errors import InvalidSettingError

MESSAGES = ("message", "messages", "utterance", "utterances", "tokens")  # usual names of columns with messages


def require_distinct(header: Sequence[str], where: str) -> None:
    """Raise if several columns have one name.

    Raises:
        InvalidSettingError: they have.
    """
    first: dict[str, int] = {}
    for place, name in enumerate(header):
        if first.setdefault(name, place) < place:
            raise InvalidSettingError(
                f"The columns {first[name] + 1} and {place + 1} are both called '{name}' {where}; rename one."
            )


def choose_columns(
    columns: Sequence[str], meaning_columns: Sequence[str] | None, message_columns: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Return the columns of meanings and of messages: those asked for, else by name, else the rest.

    Raises:
        InvalidSettingError: a column is missing or asked for twice, or the columns cannot be distinguished.
    """
    tokens = list(message_columns or ()) or _default_message_columns(columns, meaning_columns)
    attributes = list(meaning_columns or ()) or _default_meaning_columns(columns, tokens)
    found = f"The table has the columns {', '.join(c or '(no name)' for c in columns)}"
    known = set(columns)
    unknown = [c for c in (*attributes, *tokens) if c not in known]
    if unknown:
        raise InvalidSettingError(f"{found}; there is no '{unknown[0]}'.")
    if "" in (*attributes, *tokens):
        raise InvalidSettingError(
            f"Column {list(columns).index('') + 1} has no name in the header: name it, or leave it out (pandas writes "
            "its index in this way unless index=False), or say which columns are meanings and which messages."
        )
    if tokens == list(columns) and len(tokens) == 1 and not meaning_columns:
        return [], tokens  # messages without meanings
    if not attributes or not tokens or len({*attributes, *tokens}) != len(attributes) + len(tokens):
        raise InvalidSettingError(
            f"{found}; say which are meanings and which messages, each in one of the two, by --meaning-columns and "
            "--message-columns (in Python, meaning_columns= and message_columns=)."
        )
    return attributes, tokens


def _default_message_columns(columns: Sequence[str], meaning_columns: Sequence[str] | None) -> list[str]:
    for called in (["message"], *([c for c in columns if c.lower() == name] for name in MESSAGES)):
        if len(called) == 1 and called[0] in columns:
            return called
    named = _in_order(columns, "t")
    attributes = set(meaning_columns or _in_order(columns, "m"))
    return named or [c for c in columns if attributes and c not in attributes]


def _default_meaning_columns(columns: Sequence[str], tokens: Sequence[str]) -> list[str]:
    taken = {*tokens, *_in_order(columns, "t")}  # t0, t1 and so on hold a message, even if another column does
    return _in_order(columns, "m") or [c for c in columns if c not in taken]


def _in_order(columns: Sequence[str], letter: str) -> list[str]:
    """Return the columns t0, t1, t2 and so on, by their numbers."""
    return sorted((c for c in columns if re.fullmatch(rf"{letter}\d+", c)), key=lambda c: int(c[1:]))
