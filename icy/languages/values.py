"""The rule for reading values and meanings from every container and file."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Real
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import listed

from .rule import LARGEST, Array, Entries, Names, Rule, Values, sorted_names
from .texts import listed_texts
from .tokens import is_one_hot

BETWEEN = (",", ";", "|", "/", "-", "_", " ")  # possible separators of the values of a meaning in one text
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity)\s*", re.IGNORECASE)
TRUTH = {"True": 1, "False": 0, "true": 1, "false": 0}
Meanings = Real[Array, "meaning attr"]


def read_meanings(given: Entries, rule: Rule) -> tuple[Meanings, tuple[Names | None, ...]]:
    """Read meanings by the rule.

    Args:
        given: result of `icy.languages.rule.unpacked`: one entry per row, none missing.
        rule: options.

    Returns:
        The values as numbers, [N, A], and for each attribute the names of its values, or None if they are numbers.

    Raises:
        InvalidSettingError: rows differ in their number of attributes, or may be one-hot vectors.
    """
    if isinstance(given, np.ndarray):
        given = given[:, None] if given.ndim == 1 else given
        if given.ndim == 3 and is_one_hot(given):
            return np.asarray(given.argmax(-1), dtype=np.int64), ()
        columns = None if given.ndim == 2 else _columns(given.tolist(), rule)
    else:
        columns = _columns(given, rule)
    values, names = _of_numbers(given) if columns is None else _of_columns(columns, rule.phrases)  # type: ignore[arg-type]
    return _decoded(values, names, rule)


def _columns(rows: Values, rule: Rule) -> list[Values]:
    """Return the values of each attribute, [N] each. Lists, and texts that are lists, become several attributes.

    For phrases, return the concepts at each place, and None after the end of a phrase.
    """
    if rule.phrases and all(isinstance(row, list) for row in rows):
        phrases = [row[0] if len(row) == 1 and isinstance(row[0], list) else row for row in rows]
        longest = max(map(len, phrases), default=0)
        if not longest:
            raise InvalidSettingError("All phrases are empty.")
        return [[phrase[at] if at < len(phrase) else None for phrase in phrases] for at in range(longest)]
    single = bool(rows) and not any(isinstance(row, list) for row in rows)
    table = [[row] for row in rows] if single else rows
    lengths = [len(row) if isinstance(row, list) else -1 for row in table]
    if not table or min(lengths) < 1 or min(lengths) < max(lengths):
        of_lists = sorted({len(row) for row in rows if isinstance(row, list)})
        shape = f"({len(rows)}, {of_lists[0]} to {of_lists[-1]})" if len(of_lists) > 1 else (len(rows), *of_lists)
        raise InvalidSettingError(
            "Meanings must be a table with one row per meaning and one column per attribute, all of one length; the "
            f"given data has the shape {shape}."
        )
    found = list(chain.from_iterable(split_lists(list(column), rule) for column in zip(*table, strict=True)))
    return _split_evenly(found[0]) if len(found) == 1 else found


def split_lists(column: Values, rule: Rule) -> list[Values]:
    """Split a column of lists into several columns; return other columns unchanged."""
    if all(isinstance(entry, str) for entry in column):
        column = listed_texts(column, "meaning", rule) or column
    if not any(isinstance(entry, list) for entry in column):
        return [column]
    lengths = {len(entry) if isinstance(entry, list) else 0 for entry in column}
    if len(lengths) > 1 or 0 in lengths:
        raise InvalidSettingError(
            "A column holds lists of several lengths, but every meaning must have a value of every attribute; choose "
            "the columns of meanings."
        )
    return list(chain.from_iterable(split_lists(list(part), rule) for part in zip(*column, strict=True)))


def _split_evenly(column: Values) -> list[Values]:
    """Split a column of texts such as "red circle" into several columns, if the parts combine like attributes."""
    if not all(isinstance(entry, str) for entry in column) or all(NUMBER.fullmatch(entry) for entry in column):
        return [column]
    distinct = set(column)
    for mark in BETWEEN:
        rows = [[part.strip() for part in entry.strip().split(mark)] for entry in column]
        if len({len(row) for row in rows}) == 1 and len(rows[0]) > 1 and all(map(all, rows)):
            parts = [list(part) for part in zip(*rows, strict=True)]
            if max(len(set(part)) for part in parts) < len(distinct):
                return parts
    return [column]


def _of_numbers(table: Array) -> tuple[Meanings, tuple[Names | None, ...]]:
    """Convert numbers to integers if all are whole, otherwise to floats; too large numbers become names."""
    if not table.shape[1]:
        raise InvalidSettingError("Meanings must have a column per attribute, but these have no columns.")
    small = not table.size or (table.min() > -LARGEST and table.max() < LARGEST)
    if table.dtype.kind == "f":
        _require_finite(table)
        return table.astype(np.int64 if small and (table == np.round(table)).all() else np.float64), ()
    return (table.astype(np.int64), ()) if small else _of_columns(table.T.tolist())


def _of_columns(columns: Sequence[Values], phrases: bool = False) -> tuple[Meanings, tuple[Names | None, ...]]:
    """Number the values of columns of numbers and names; return the numbers, and each attribute's names or None.

    The concepts of phrases are the same at any place, so they are numbers only if all of them are.
    """
    read = [values_of(column) for column in columns]
    if phrases:
        concepts = iter(values_of([concept for column in columns for concept in column if concept is not None]))
        read = [[None if concept is None else next(concepts) for concept in column] for column in columns]
    real = any(isinstance(v, float) for column in read for v in column)
    if real and all(isinstance(v, (int, float)) for column in read for v in column):
        large = next((v for column in read for v in column if isinstance(v, int) and abs(v) > 2**53), None)
        if large is not None:
            raise InvalidSettingError(f"The number {quoted(large)} loses digits among real numbers; leave it out.")
        table = np.array(read, dtype=float).T
        _require_finite(table)
        return table, ()
    numbered, names = zip(*map(_number_names, read), strict=True)
    return np.stack(numbered, 1), names if any(n is not None for n in names) else ()


def _require_finite(table: Array) -> None:
    if not np.isfinite(table).all():
        raise InvalidSettingError("Some meanings are NaN or infinite; leave these rows out.")


def values_of(column: Values) -> Values:
    """Convert entries to numbers if all are numbers. "0" and "00" are different names, unless numbers are real."""
    entries = [unicodedata.normalize("NFC", entry.strip()) if isinstance(entry, str) else entry for entry in column]
    if set(map(str, entries)) <= TRUTH.keys():
        return [TRUTH[str(entry)] for entry in entries]
    if not all(NUMBER.fullmatch(e) if isinstance(e, str) else isinstance(e, (int, float)) for e in entries):
        return entries
    for kind in (int, float):
        try:
            found: Values = [kind(entry) for entry in entries]
            if not all(map(_same_number, found, entries)):
                continue
        except (ValueError, OverflowError):
            continue
        real = kind is float and not all(number.is_integer() for number in found)
        if not real and len(set(found)) < len(set(map(str, entries))):
            return entries
        if kind is float and not real and all(abs(number) < LARGEST for number in found):
            return [int(number) for number in found]
        return found
    return entries


def _same_number(number: float, entry: object) -> bool:
    """Return whether a number equals an entry; a number too large for a float does not equal infinity."""
    if isinstance(entry, str):
        return not (isinstance(number, float) and math.isinf(number)) or "inf" in entry.lower()
    return bool(number == entry)


def _number_names(column: Values) -> tuple[NDArray[np.int64], Names | None]:
    """Convert one attribute's values to integers; return the integers and their names.

    Whole numbers below LARGEST are not changed and have no names. Other values, such as words and larger numbers, are
    numbered in sorted order; the names are the values.
    """
    if all(isinstance(v, int) for v in column) and min(column) > -LARGEST and max(column) < LARGEST:
        return np.array(column, dtype=np.int64), None
    names = sorted_names(column)
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[v] for v in column], dtype=np.int64), names


# -- one-hot vectors -------------------------------------------------------------------------------------------------


def _decoded(
    values: Meanings, names: tuple[Names | None, ...], rule: Rule
) -> tuple[Meanings, tuple[Names | None, ...]]:
    """Decode one-hot vectors side by side; raise an error if values look one-hot and `rule.one_hot` is unset."""
    if rule.one_hot == "no" or (rule.one_hot is None and (not len(values) or rule.phrases)):
        return values, names
    width, found = values.shape[1], two_valued(values, names)
    if rule.one_hot is None:
        if not found.sizes:
            return values, names
        shown, comma = listed([*map(str, found.sizes)]), ",".join(map(str, found.sizes))
        if len(found.columns) < width:
            raise InvalidSettingError(
                f"{len(found.columns)} of the columns look like one-hot vectors of {shown} values, "
                'but others do not; give each attribute one column, or set one_hot="no" (--one-hot no).'
            )
        raise InvalidSettingError(
            f"The {width} columns of {' and '.join(map(quoted, found.pair))} can be read in two ways: as one-hot "
            f"vectors of {shown} values (one_hot=[{comma}], or --one-hot {comma}), or as {width} attributes of two "
            'values each (one_hot="no", or --one-hot no).'
        )
    one_each = isinstance(rule.one_hot, (list, tuple, np.ndarray))
    given: Sequence[Any] = rule.one_hot if one_each else [rule.one_hot]  # type: ignore[assignment]
    sizes = [whole_number("number of values of a one-hot vector", size) for size in given]
    sizes = sizes if one_each else sizes * max(width // sizes[0], 1)
    if sum(sizes) != width or (names and len(found.columns) < width):
        raise InvalidSettingError(
            f"Meanings of {width} columns{' with names' if names else ''} are not one-hot vectors of "
            f"{listed([*dict.fromkeys(map(str, sizes))])} values side by side."
        )
    ends = np.cumsum(sizes)
    blocks = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    for block in blocks:
        hits = found.hits[:, block]
        fine = (hits.sum(1) == 1) & (hits >= 0).all(1)
        if not fine.all():
            row = int(np.argmin(fine))
            raise InvalidSettingError(
                f"The meaning in {rule.place(row)} is not one-hot: {quoted(values[row, block].tolist())} must have a "
                f"single {found.pair[1]}."
            )
    return np.stack([found.hits[:, block].argmax(1) for block in blocks], 1).astype(np.int64), ()


class TwoValued(NamedTuple):
    """Columns with two values, which may be one-hot vectors.

    Attributes:
        pair: the two values that most columns have: absent and present.
        columns: the columns that have no other values.
        hits: 1 where a value is present, 0 where it is absent, and -1 for other values, [N, A].
        sizes: widths of the one-hot vectors that the columns seem to consist of; empty if there are none.
    """

    pair: tuple[Any, Any]
    columns: list[int]
    hits: NDArray[np.int64]
    sizes: tuple[int, ...]


def two_valued(values: Meanings, names: Sequence[Names | None]) -> TwoValued:
    """Find the columns that may be one-hot vectors: 0 and 1, -1 and 1, 0 and 255, "no" and "yes".

    Args:
        values: values as numbers, [N, A].
        names: the names of the values of each attribute, or None if they are numbers; empty if all are numbers.
    """
    own: list[tuple[Any, ...]] = []  # the one or two values of each column
    for column, named in zip(values.T, names or [None] * values.shape[1], strict=True):
        used = np.unique(column).tolist()
        own.append(tuple(used if named is None else [named[v] for v in used]) if len(used) < 3 else (None,))
    pairs = [one for one in own if len(one) == 2]
    pair = max(pairs, key=lambda one: (pairs.count(one), one == (0, 1)), default=(0, 1))
    columns = [a for a, one in enumerate(own) if set(one) <= set(pair)]
    hits = np.full(values.shape, -1)
    for a in columns:
        name = own[a][0]
        hits[:, a] = (values[:, a] != values[:, a].min()) if len(own[a]) == 2 else name == pair[1]
    sizes = one_hot_sizes(hits[:, columns])
    if not sizes and isinstance(pair[0], str) and (swapped := one_hot_sizes(1 - hits[:, columns])):
        return TwoValued(pair[::-1], columns, np.where(hits < 0, hits, 1 - hits), swapped)
    return TwoValued(pair, columns, hits, sizes)


def one_hot_sizes(values: Meanings) -> tuple[int, ...]:
    """Return the widths of one-hot vectors that the rows seem to consist of; empty if there are none.

    Example:
        >>> import numpy as np
        >>> from icy.languages.values import one_hot_sizes
        >>> one_hot_sizes(np.array([[1, 0, 0, 0, 1], [0, 1, 0, 1, 0], [0, 0, 1, 1, 0]]))
        (3, 2)
    """
    if len(values) < 3 or values.shape[1] < 3 or not ((values == 0) | (values == 1)).all():
        return ()
    if len(np.unique(values, axis=0)) < 3:  # too few for a decision
        return ()
    sizes, block = [], 0
    sums = np.zeros(len(values))
    for column in values.T:
        if (sums == 1).all() and column.any():
            sizes.append(block)
            block, sums = 0, np.zeros(len(values))
        block, sums = block + 1, sums + column
        if (sums > 1).any():
            return ()
    found = (*sizes, block)
    return found if (sums == 1).all() and min(found) > 1 else ()
