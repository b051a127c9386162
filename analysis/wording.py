"""Names of columns of the long table, and their values, as text for titles, labels and axes."""

from __future__ import annotations

from typing import Any

import pandas as pd

LETTERS = {"vocab_size": "V", "word_length": "w", "hidden_size": "E"}  # the papers' letters for sizes


def heading(name: str) -> str:
    """Return the name of a column with spaces, as in "word length"."""
    return name.replace("_", " ")


def text_of(value: Any) -> str:
    """Return a setting as text: floats without trailing zeros, "-" for missing or empty values."""
    return "-" if pd.isna(value) or value == "" else f"{value:g}" if isinstance(value, float) else str(value)


def range_text(values: pd.Series[int]) -> str:
    """Return the range of counts as text, such as "3-5", or "3" if all are equal."""
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low}-{high}"
