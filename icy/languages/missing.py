"""Rows with missing values: an error names the row, or the rows are dropped on request."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import counted, listed

from .containers import Entries
from .rule import Rule

MOST_LISTED = 8  # limit of the dropped rows that a sentence lists


def without_missing(
    meanings: Entries | None, messages: Entries, weights: Entries | None, rule: Rule
) -> tuple[Entries | None, Entries, Entries | None, Rule, str]:
    """Drop the rows of meanings, messages and weights that have missing values, or raise an error.

    Args:
        meanings: result of `icy.languages.containers.unpacked`, or None.
        messages: result of `unpacked`.
        weights: weights of the rows, in the same form.
        rule: `rule.missing` determines whether these rows are dropped or refused.

    Returns:
        Meanings, messages, weights, the rule with the places of the remaining rows, and the dropped rows in words.

    Raises:
        InvalidSettingError: a value is missing, and the rule is to refuse.
    """
    sides = (meanings, messages, weights)
    gaps: dict[int, int] = {}  # the first side with a gap, by row
    for side, entries in enumerate(sides):
        for row, entry in enumerate(entries if isinstance(entries, list) else ()):  # an array has no missing values
            if _has_gap(entry, padded=side == 1 and rule.pads_missing):
                gaps.setdefault(row, side)
    if not gaps:
        return *sides, rule, ""
    if rule.missing == "refuse":
        row = min(gaps)
        raise InvalidSettingError(_missing_error(sides[gaps[row]][row], row, gaps[row], rule))  # type: ignore[index]
    left = [row for row in range(len(messages)) if row not in gaps]
    if not left:
        raise InvalidSettingError("Every row has a missing value, so no row remains.")
    chosen = [None if entries is None else _select_rows(entries, left) for entries in sides]
    lengths = None if rule.lengths is None else _select_rows(rule.lengths, left)
    rule_of_rest = replace(rule, place=lambda row: rule.place(left[row]), lengths=lengths)
    words = [rule.place(row).split(maxsplit=2) for row in sorted(gaps)]  # such as "line", "4"
    numbers = [number for _, number, *_ in words]
    counting = f", {words[0][2].strip('()')}" if len(words[0]) > 2 else ""
    dropped = (
        f"{len(gaps)} of {counted(len(messages), 'row')} dropped "
        f"({words[0][0]}{'s' * (len(numbers) > 1)} {listed(numbers, most=MOST_LISTED)}{counting})"
    )
    return chosen[0], _select_rows(messages, left), chosen[2], rule_of_rest, dropped


def _has_gap(entry: object, padded: bool = False) -> bool:
    """Return whether an entry is missing or holds a missing value; padding at the ends of a message does not count."""
    if not isinstance(entry, list):
        return entry is None
    if padded:
        filled = [place for place, token in enumerate(entry) if token is not None]
        entry = entry[filled[0] : filled[-1] + 1] if filled else []
    return any(map(_has_gap, entry))


def _missing_error(entry: object, row: int, side: int, rule: Rule) -> str:
    """Return a sentence that names the place of the missing value and the possible remedies."""
    what, instead = (
        ("value", "or give unknown values their own name"),
        ("message", "or write an empty message as the token that ends messages (eos)"),
        ("weight", "or write 0"),
    )[side]
    names = (*rule.columns, ())[side]
    gap = next((place for place, value in enumerate(entry) if _has_gap(value)), 0) if isinstance(entry, list) else 0
    where = rule.place(row)
    if names:
        where += f", column {quoted(names[gap if len(names) > gap else 0])}"
    elif isinstance(entry, list):
        where += f", {('attribute', 'token')[side]} {gap}"
    padding = "; if missing values pad messages, name them as padding: pad=float('nan') (--pad nan)"
    return (
        f'There is no {what} in {where}; fill it in, drop rows with gaps (missing="drop", or --missing drop), '
        f"{instead}{padding if side == 1 and isinstance(entry, list) else ''}."
    )


def _select_rows(entries: Entries, rows: list[int]) -> Entries:
    return entries[rows] if isinstance(entries, np.ndarray) else [entries[row] for row in rows]
