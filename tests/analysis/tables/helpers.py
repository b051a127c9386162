"""Marks of a table."""

from __future__ import annotations

from typing import Any


def marks(table: Any) -> dict[tuple[str, str], str]:
    return {(labels[0], g): c.mark for labels, cells in table.rows for g, c in cells.items() if c.mark}
