"""Panels and lines of a plot."""

from __future__ import annotations

import pandas as pd

from icy.analysis.plots.panels import blocks, lines_of
from icy.records.load import long_of
from tests.analysis.plots.helpers import sized


def test_rows_are_told_apart_by_what_differs() -> None:
    (block,) = blocks(long_of(sized()))
    assert [line.label for line in block.lines][:2] == ["FC2L, E=8", "FC2L, E=16"]
    assert [line.label for line in block.lines_over("hidden_size")] == ["FC2L", "HierZero:GRU"]


def test_lines_stand_by_model_then_in_the_order_of_tables() -> None:
    rows = [("b10", "soft"), ("b2", "discr"), ("b2", "soft"), ("b2", "gumb")]
    found = lines_of(pd.DataFrame(rows, columns=["model", "representation"]), ["representation"], sides=True)
    assert [line.label for line in found] == ["b2, soft", "b2, gumb", "b2, discr", "b10, soft"]
