"""How columns and their values are written."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from icy.analysis.order import heading, text_of


def test_headings_have_spaces() -> None:
    assert heading("word_length") == "word length"


@pytest.mark.parametrize(
    ("value", "text"), [(20.0, "20"), (0.99, "0.99"), (4, "4"), ("soft", "soft"), ("", "-"), (None, "-"), (pd.NA, "-")]
)
def test_values_are_short(value: Any, text: str) -> None:
    assert text_of(value) == text
