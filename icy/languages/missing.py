"""Rows with missing values: refused with their place, or dropped on request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, quoted

from .tokens import Rule

Entries = NDArray[Any] | list[Any]


def without_missing(
    meanings: Entries | None, messages: Entries, weights: NDArray[Any] | None, rule: Rule
) -> tuple[Entries | None, Entries, NDArray[Any] | None, Rule]:
    """Return meanings and messages without the rows in which a value is missing.

    Args:
        meanings: what `icy.languages.containers.unpacked` returned, or None if there are none.
        messages: likewise.
        weights: of the rows, [N], if there are any.
        rule: says whether these rows are dropped.

    Returns:
        Meanings, messages, weights, and the rule with the places of the rows that are left.

    Raises:
        InvalidSettingError: a value is missing, and the rule says to refuse.
    """
    gaps = dict.fromkeys(_rows_with_gaps(meanings, lambda row: None in row), 0)
    gaps |= {row: 1 for row in _rows_with_gaps(messages, lambda row: _is_broken(row, rule)) if row not in gaps}
    if not gaps:
        return meanings, messages, weights, rule
    if rule.missing == "refuse":
        row = min(gaps)
        raise InvalidSettingError(_refusal((meanings, messages)[gaps[row]], row, gaps[row], rule))
    left = [row for row in range(len(messages)) if row not in gaps]
    kept = None if meanings is None else _some(meanings, left)
    counts = None if weights is None else weights[left]
    return kept, _some(messages, left), counts, replace(rule, place=lambda row: rule.place(left[row]))


def _refusal(entries: Any, row: int, side: int, rule: Rule) -> str:
    """Return a sentence with the place of the missing value and the possible remedies."""
    what, instead = (
        ("value", "or give a value that is not known a name of its own"),
        ("message", "or write a message of no tokens as the token that ends it, which eos names"),
    )[side]
    entry, names = entries[row], rule.columns[side]
    gap = entry.index(None) if isinstance(entry, list) else 0
    where = rule.place(row)
    if names:
        where += f", column {quoted(names[gap if len(names) > gap else 0])}"
    elif isinstance(entry, list):
        where += f", {('attribute', 'token')[side]} {gap}"
    padding = "; if missing values fill messages up, name them as padding: pad=float('nan') (--pad nan)" if side else ""
    return (
        f'There is no {what} in {where}; fill it in, drop rows with gaps (missing="drop", or --missing drop), '
        f"{instead}{padding}."
    )


def _rows_with_gaps(entries: Entries | None, broken: Any) -> list[int]:
    if entries is None or isinstance(entries, np.ndarray):  # which has no missing values
        return []
    return [place for place, row in enumerate(entries) if row is None or (isinstance(row, list) and broken(row))]


def _is_broken(row: list[Any], rule: Rule) -> bool:
    """Return whether a token is missing, at the beginning or end only if missing values do not count as padding."""
    if None not in row:
        return False
    said = [place for place, token in enumerate(row) if token is not None]
    return not rule.pads_missing or (bool(said) and said[-1] - said[0] + 1 > len(said))


def _some(entries: Entries, rows: list[int]) -> Entries:
    return entries[rows] if isinstance(entries, np.ndarray) else [entries[row] for row in rows]
