"""Words and tables in plain text: lists in sentences, natural order, Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any


def listed(names: Sequence[str], word: str = "and") -> str:
    """Names as a sentence has them.

    Example:
        >>> listed([".png", ".svg", ".pdf"], "or")
        '.png, .svg or .pdf'
    """
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def natural(name: str) -> list[Any]:
    """A sort key that puts `b2` before `b10` and ignores case."""
    return [int(part) if part.isdigit() else part.lower() for part in re.split(r"(\d+)", name)]


def several(value: Any) -> list[Any]:
    """One value or several as a list: "soft,gumb" is two.

    Example:
        >>> several("soft,gumb"), several(4), several(["3x4", "5x10"])
        (['soft', 'gumb'], [4], ['3x4', '5x10'])
    """
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        return [int(part) if part.isdigit() else part for part in parts]
    return list(value) if isinstance(value, (list, tuple, set)) else [value]
