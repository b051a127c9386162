"""Selecting rows of results."""

from __future__ import annotations

import pytest

from icy.core.errors import UnknownNameError
from icy.records.select import select
from tests.helpers import THREE, long


def test_selection() -> None:
    table = long(THREE)
    assert set(select(table, ["a", "sender/B"])["model"]) == {"sender/A", "sender/B"}
    assert set(select(table, grammars=["*rot*"])["grammar"]) == {"rot"}
    with pytest.raises(UnknownNameError, match="No grammar in these results is called 'hol'"):
        select(table, grammars=["hol"])
