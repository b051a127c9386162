"""Rows with missing values: refused with their place, or dropped on request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError

from .tokens import Rule

Entries = NDArray[Any] | list[Any]


def without_missing(meanings: Entries | None, messages: Entries, rule: Rule) -> tuple[Entries | None, Entries, Rule]:
    """Return meanings and messages without the rows in which a value is missing.

    Args:
        meanings: what `icy.languages.containers.unpacked` returned, or None if there are none.
        messages: likewise.
        rule: says whether such rows are dropped.

    Returns:
        Meanings, messages, and the rule with the places of the rows that are left.

    Raises:
        InvalidSettingError: a value is missing, and the rule refuses such rows.
    """
    gaps = dict.fromkeys(_rows_with_gaps(meanings, lambda row: None in row), "value")
    gaps |= dict.fromkeys(_rows_with_gaps(messages, lambda row: _is_broken(row, rule)), "message")
    if not gaps:
        return meanings, messages, rule
    if rule.missing == "refuse":
        row = min(gaps)
        raise InvalidSettingError(
            f"There is a missing value in the {'meaning' if gaps[row] == 'value' else 'message'} in {rule.place(row)}; "
            'fill it in, or drop such rows (missing="drop", or --missing drop). If missing values fill messages up, '
            'name them as padding (pad=float("nan"), or --pad nan).'
        )
    left = [row for row in range(len(messages)) if row not in gaps]
    kept = None if meanings is None else _some(meanings, left)
    return kept, _some(messages, left), replace(rule, place=lambda row: rule.place(left[row]))


def _rows_with_gaps(entries: Entries | None, broken: Any) -> list[int]:
    if entries is None or isinstance(entries, np.ndarray):  # which has no missing values
        return []
    return [place for place, row in enumerate(entries) if row is None or (isinstance(row, list) and broken(row))]


def _is_broken(row: list[Any], rule: Rule) -> bool:
    """Return whether a token is missing, at the beginning or end only if missing values are no padding."""
    if None not in row:
        return False
    said = [place for place, token in enumerate(row) if token is not None]
    return not rule.pads_missing or (bool(said) and said[-1] - said[0] + 1 > len(said))


def _some(entries: Entries, rows: list[int]) -> Entries:
    return entries[rows] if isinstance(entries, np.ndarray) else [entries[row] for row in rows]
