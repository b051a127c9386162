"""Weights of rows: how often each counts."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import counted

from .containers import plain
from .tokens import Rule
from .values import values_of

MOST_WEIGHT = 2**53  # sums of whole weights are exact below it, as floats too


def read_weights(given: Any, rows: int, rule: Rule) -> NDArray[Any]:
    """Return weights of rows, [N]: integers if all are whole.

    Raises:
        InvalidSettingError: weights that are negative, not finite, all 0, too large, or not one per row.
    """
    values = [plain(value) for value in given] if hasattr(given, "__iter__") and not isinstance(given, str) else None
    if values is None or len(values) != rows:
        found = "one number" if values is None else counted(len(values), "weight")
        raise InvalidSettingError(f"Every row has one weight; {found} for {counted(rows, 'row')} were given.")
    values = values_of(values)
    for row, value in enumerate(values):
        if not isinstance(value, numbers.Real) or not 0 <= value < np.inf:  # type: ignore[operator]
            shown = "missing" if value is None else quoted(value)
            raise InvalidSettingError(
                f"Weights of rows are numbers of at least 0, and that of {rule.place(row)} is {shown}."
            )
    if not 0 < (total := sum(values)) < MOST_WEIGHT:
        raise InvalidSettingError(f"The sum of weights is above 0 and below 2^53, not {quoted(total)}; scale them.")
    whole = all(value == int(value) for value in values)
    return np.array(values, dtype=np.int64 if whole else np.float64)
