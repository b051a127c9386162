"""Named columns: which hold meanings and which messages, and which have an entry per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icy.core.errors import InvalidSettingError
from icy.core.text import counted, listed

from .columns import MESSAGES
from .found import File, Found

MEANINGS = (
    *("meaning", "meanings", "attributes", "concepts", "concept", "phrase", "phrases", "semantics", "input", "inputs"),
    *("sender_input", "sender_inputs", "observations", "observation"),
)
SETS = ("concepts", "phrase", "phrases", "semantics")  # names of meanings that are sets
OPTIONS = "--meaning-columns and --message-columns (in Python, meaning_columns= and message_columns=)"


def of_columns(file: File, held: Mapping[str, Any], what: str, noun: str) -> Found:
    """Return the named entries that have as many rows as the messages, or, if no name says which these are, as all.

    Args:
        file: its options name columns.
        held: lists or arrays, and values of other kinds, by name; dictionaries are opened: "aux.length".
        what: the format, in words.
        noun: the word for an entry, such as "array".

    Raises:
        InvalidSettingError: columns are missing, empty or of different lengths.
    """
    flat = opened(held)
    rows = {name: len(entries) for name, entries in flat.items() if _has_rows(entries)}
    there = listed([f"{name} ({counted(n, 'row')})" for name, n in rows.items()]) or "none"
    meanings, messages = roles(rows)
    required = (*(file.meaning_columns or meanings or ()), *(file.message_columns or messages or ()))
    if absent := [name for name in required if name not in rows]:
        raise InvalidSettingError(f"There is no {noun} '{absent[0]}'; the file has {there}. {OPTIONS} choose others.")
    lengths = {rows[name] for name in required or rows}
    if not rows or (not required and len(lengths) > 1):
        raise InvalidSettingError(f"The file has the {noun}s {there}; choose meanings and messages by {OPTIONS}.")
    if len(lengths) > 1:
        raise InvalidSettingError(f"Meanings and messages differ in length: the file has {there}.")
    if lengths == {0}:
        raise InvalidSettingError(f"The {noun} '{[*required, *rows][0]}' has no rows.")
    columns = {name: flat[name] for name, n in rows.items() if n in lengths}
    meanings, messages = roles(columns)
    rest = [name for name in flat if name not in columns]
    remarks = [f"not used: {listed(rest)}"] if rest else []
    return Found(columns, what, meanings, messages, phrases=are_phrases(columns, meanings), remarks=remarks)


def roles(columns: Mapping[str, Any]) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return the columns of meanings and of messages by their names; None where no name says so.

    Example:
        >>> roles({"Meaning.size": [1, 2], "Meaning.hue": [0, 0], "Tokens": ["a", "b"], "id": [1, 2]})
        (('Meaning.size', 'Meaning.hue'), ('Tokens',))
        >>> roles({"message": ["a", "b"]}), roles({"a": [1, 2], "b": [3, 4]})
        (((), ('message',)), (None, None))
    """
    first = {name: name.partition(".")[0].lower() for name in columns}
    meaning, message = (next((n for n in known if n in first.values()), None) for known in (MEANINGS, MESSAGES))
    messages = tuple(name for name, begin in first.items() if begin == message) or None
    meanings = tuple(name for name, begin in first.items() if begin == meaning) or None
    return meanings or (() if messages == tuple(columns) else None), messages


def are_phrases(columns: Mapping[str, Any], meanings: Sequence[str] | None, pairs: bool = False) -> bool:
    """Return whether meanings are lists of concepts: of different lengths, or, in pairs and by some names, of texts."""
    if meanings is None or len(meanings) != 1:
        return False
    lists = columns[meanings[0]]
    if not all(isinstance(entry, list) for entry in lists):
        return False
    texts = any(isinstance(concept, str) for entry in lists for concept in entry)
    return texts and (pairs or meanings[0].lower() in SETS or len({len(entry) for entry in lists}) > 1)


def opened(held: Mapping[Any, Any]) -> dict[str, Any]:
    """Return entries by name, such as "aux.length" for an entry of a dictionary, and nested tensors as lists."""
    flat: dict[str, Any] = {}
    for name, entry in held.items():
        if isinstance(entry, Mapping):
            flat |= {f"{name}.{key}": value for key, value in opened(entry).items()}
        else:
            flat[str(name)] = list(entry.unbind()) if getattr(entry, "is_nested", False) else entry
    return flat


def _has_rows(entries: Any) -> bool:
    return isinstance(entries, (list, tuple)) or getattr(entries, "ndim", 0) > 0
