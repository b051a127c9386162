"""Options of a long table, which stand there as text, read and shown."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def told_options(text: str) -> dict[str, str]:
    """Return what the options of a long table say, by name; values may be lists and dicts, with commas.

    Example:
        >>> told_options("a.b=1, c=[1, 2]")
        {'a.b': '1', 'c': '[1, 2]'}
    """
    return dict(part.split("=", 1) for part in re.split(r", (?=[\w.]+=)", text) if "=" in part)


def split_shared(texts: Sequence[str]) -> tuple[str, list[str]]:
    """Return the options shared by all rows of a long table, and the other options of each row.

    Example:
        >>> split_shared(["a=1, b=2", "a=1, b=3"])
        ('a=1', ['b=2', 'b=3'])
    """
    told = [told_options(text) for text in texts]
    shared = set.intersection(*(set(one.items()) for one in told)) if len(set(texts)) > 1 else set()
    rest = [", ".join(f"{name}={value}" for name, value in one.items() if (name, value) not in shared) for one in told]
    return ", ".join(f"{name}={value}" for name, value in sorted(shared)), rest if shared else list(texts)


def shown_settings(told: Mapping[str, str]) -> Iterator[str]:
    """Yield settings as they are shown: without those that are None, and those of a dict one by one."""
    for name, text in told.items():
        inner = _dict_of(text)
        if inner:
            yield from (f"{name}.{n}={v}" for n, v in inner.items() if v is not None)
        elif text != "None":
            yield name if inner is not None else f"{name}={text}"


def _dict_of(text: str) -> dict[Any, Any] | None:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return found if isinstance(found, dict) else None


def whole_text(value: object) -> str:
    """Return a value of a long table as text, whole numbers without a point."""
    return f"{value:g}" if isinstance(value, float) else str(value)
