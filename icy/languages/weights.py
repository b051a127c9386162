"""Weights of rows: the number of times each row counts."""

from __future__ import annotations

import numbers

import numpy as np

from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import counted

from .containers import Array, Entries
from .rule import Rule
from .values import values_of

MOST_WEIGHT = 2**53  # sums of whole weights below this limit are exact, as floats too


def require_one_each(given: Entries, rows: int) -> None:
    """Raise InvalidSettingError unless there are as many weights as rows."""
    if len(given) != rows:
        raise InvalidSettingError(
            f"Each row needs one weight, but there are {counted(rows, 'row')} and {counted(len(given), 'weight')}."
        )


def read_weights(given: Entries, rule: Rule) -> Array:
    """Read weights of rows, [N]; integers if all are whole.

    Args:
        given: result of `icy.languages.containers.unpacked`.
        rule: rule that names the row in errors, by its `place`.

    Raises:
        InvalidSettingError: weights that are negative, not finite, all 0, or too large.
    """
    values = values_of(given.tolist() if isinstance(given, np.ndarray) else given)
    if not all(isinstance(value, numbers.Real) for value in values):  # then the first text is the wrong weight
        values = [number for value in values for number in values_of([value])]
    for row, value in enumerate(values):
        if not isinstance(value, numbers.Real) or not 0 <= value < np.inf:  # type: ignore[operator]
            raise InvalidSettingError(
                f"Weights of rows must be numbers of at least 0, but {rule.place(row)} has {quoted(value)}."
            )
    if not 0 < (total := sum(values)) < MOST_WEIGHT:
        raise InvalidSettingError(f"The sum of weights must be in (0, 2^53), not {quoted(total)}; scale them.")
    whole = all(value == int(value) for value in values)
    return np.array(values, dtype=np.int64 if whole else np.float64)
