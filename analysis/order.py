"""The order in which tables and plots show grammars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from icy.core.registry import SIDES

# The order of the papers' tables; other grammars follow in alphabetical order.
ORDER = ("concat", "perm", "proj", "pairsum", "rot", "shuf", "shufdet", "hol")
ORDERED = {"representation": ("soft", "gumb", "discr"), "side": SIDES, "preset": ("default", "published")}


def in_order(grammars: Iterable[str]) -> list[str]:
    """Grammars in the order of the papers' tables, others after them."""
    return sorted(set(grammars), key=lambda g: (ORDER.index(g) if g in ORDER else len(ORDER), g))


def place_of(name: str, value: Any) -> tuple[int, str]:
    """Where a value stands among those of its column."""
    usual = ORDERED.get(name, ())
    return usual.index(value) if value in usual else len(usual), value if isinstance(value, str) else ""
