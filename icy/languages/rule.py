"""The options of the rule for reading meanings and messages, and rows with missing values: docs/your-languages.md."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from icy.core.errors import InvalidSettingError, quoted, unknown
from icy.core.text import counted, listed

from .containers import Container, Entries, Values, is_missing

WAYS = ("auto", "letters", "spaces", "whole")
MISSING = ("refuse", "drop")
LARGEST = 2**62  # larger numbers are read as names: differences of smaller numbers fit in 64 bits
MOST_LISTED = 8  # limit of the dropped rows that a sentence lists
Names = tuple[Hashable, ...]


def row_number(row: int) -> str:
    """Return the position of a row as text, as in "row 3 (counted from 0)"."""
    return f"row {row} (counted from 0)"


@dataclass(frozen=True)
class Rule:
    """Options for reading meanings and messages, where the data can be read in several ways.

    Attributes:
        tokens: how texts are divided into tokens: into letters ("letters"), at spaces ("spaces"), not at all ("whole"),
            or at a separator, such as "-"; "auto" determines it from all texts, and
            refuses texts that can be read in two ways.
        eos: the token that ends a message: this token and all that follow are dropped.
        start: the token that begins every message and is dropped.
        pad: the token that pads messages before or after their tokens; NaN for missing values.
        one_hot: number of values of each attribute, if meanings are one-hot vectors side by side; one number if all
            attributes have the same number; "no" if columns of 0 and 1 are separate attributes.
        argmax: use the index of the largest entry as a token, if messages are vectors of real numbers; False if
            floats with a single 1 per message are tokens.
        missing: "refuse" rows with missing values, or "drop" them.
        lengths: number of tokens of each message, [N]; later tokens are dropped. EGG calls it `message_length`.
        phrases: whether meanings are phrases: any number of concepts, which mean the same at any place.
        place: words for the place of a row.
        columns: names of the columns of meanings and of messages, for errors.
    """

    tokens: str = "auto"
    eos: object = None
    start: object = None
    pad: object = None
    one_hot: int | str | Sequence[int] | None = None
    argmax: bool | None = None
    missing: str = "refuse"
    lengths: Container = None
    phrases: bool = False
    place: Callable[[int], str] = field(default=row_number)
    columns: tuple[Sequence[str], Sequence[str]] = ((), ())

    def __post_init__(self) -> None:
        if not isinstance(self.missing, str) or self.missing not in MISSING:
            raise unknown("treatment of missing values", str(self.missing), MISSING)
        if not isinstance(self.tokens, str) or not self.tokens:
            raise InvalidSettingError(f"tokens must be {listed(WAYS, 'or')} or a separator, not {quoted(self.tokens)}.")

    @property
    def pads_missing(self) -> bool:
        """Whether messages are padded with missing values."""
        return self.pad is not None and (is_missing(self.pad) or (isinstance(self.pad, str) and self.pad == ""))


def sorted_names(names: Values) -> Names:
    """Return the distinct names, numbers before texts, each kind in order."""
    try:
        return tuple(sorted(set(names), key=lambda name: (str(type(name)), name)))
    except TypeError as error:
        raise InvalidSettingError("Tokens and values must be numbers, or names that have an order.") from error


def without_missing(sides: Sequence[Entries | None], rule: Rule) -> tuple[list[Any], Rule, str]:
    """Drop the rows that have missing values, or raise an error.

    Args:
        sides: meanings, messages and weights of the rows: results of `icy.languages.containers.unpacked`, or None.
        rule: `rule.missing` determines whether these rows are dropped or refused.

    Returns:
        The remaining meanings, messages and weights, the rule with their places, and the dropped rows in words.

    Raises:
        InvalidSettingError: a value is missing, and the rule is to refuse.
    """
    gaps: dict[int, int] = {}  # the first side with a gap, by row
    for side, entries in enumerate(sides):
        for row, entry in enumerate(entries if isinstance(entries, list) else ()):  # an array has no missing values
            if _has_gap(entry, padded=side == 1 and rule.pads_missing):
                gaps.setdefault(row, side)
    if not gaps:
        return list(sides), rule, ""
    if rule.missing == "refuse":
        row, side = min(gaps.items())
        raise InvalidSettingError(_missing_error(sides[side][row], rule.place(row), side, rule))  # type: ignore[index]
    rows = max(len(entries) for entries in sides if entries is not None)
    left = [row for row in range(rows) if row not in gaps]
    if not left:
        raise InvalidSettingError("Every row has a missing value, so no row remains.")

    def rest(entries: Any) -> Any:
        return entries[left] if isinstance(entries, np.ndarray) else entries and [entries[row] for row in left]

    unit, *_ = words = rule.place(min(gaps)).split(maxsplit=2)  # such as "line", "4"
    numbers = [rule.place(row).split()[1] for row in sorted(gaps)]
    counting = f", {words[2].strip('()')}" if len(words) > 2 else ""
    dropped = (
        f"{len(gaps)} of {counted(rows, 'row')} dropped "
        f"({unit}{'s' * (len(numbers) > 1)} {listed(numbers, most=MOST_LISTED)}{counting})"
    )
    rule_of_rest = replace(rule, place=lambda row: rule.place(left[row]), lengths=rest(rule.lengths))
    return list(map(rest, sides)), rule_of_rest, dropped


def _has_gap(entry: object, padded: bool = False) -> bool:
    """Return whether an entry is missing or holds a missing value; padding at the ends of a message does not count."""
    if not isinstance(entry, list):
        return entry is None
    if padded:
        filled = [place for place, token in enumerate(entry) if token is not None]
        entry = entry[filled[0] : filled[-1] + 1] if filled else []
    return any(map(_has_gap, entry))


def _missing_error(entry: object, where: str, side: int, rule: Rule) -> str:
    """Return a sentence that names the place of the missing value and the possible remedies."""
    what, instead = (
        ("value", "or give unknown values their own name"),
        ("message", "or write an empty message as the token that ends messages (eos)"),
        ("weight", "or write 0"),
    )[side]
    names = (*rule.columns, ())[side]
    inside = isinstance(entry, list)
    gap = next((place for place, value in enumerate(entry) if _has_gap(value)), 0) if isinstance(entry, list) else 0
    if names:
        where += f", column {quoted(names[gap if len(names) > gap else 0])}"
    elif inside:
        where += f", {('attribute', 'token')[side]} {gap}"
    padding = "; if missing values pad messages, name them as padding: pad=float('nan') (--pad nan)"
    return (
        f'There is no {what} in {where}; fill it in, drop rows with gaps (missing="drop", or --missing drop), '
        f"{instead}{padding if side == 1 and inside else ''}."
    )
