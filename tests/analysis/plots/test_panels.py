"""Panels and lines of a plot."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from icy.analysis.plots.panels import blocks, error_lengths, lines_of, title_and_notes
from icy.records.load import long_of
from tests.analysis.plots.helpers import sized
from tests.helpers import long


def test_rows_are_told_apart_by_what_differs() -> None:
    (block,) = blocks(long_of(sized()))
    assert [line.label for line in block.lines][:2] == ["FC2L, E=8", "FC2L, E=16"]
    assert [line.label for line in block.lines_over("hidden_size")] == ["FC2L", "HierZero:GRU"]


def test_lines_stand_by_model_then_in_the_order_of_tables() -> None:
    rows = [("b10", "soft"), ("b2", "discr"), ("b2", "soft"), ("b2", "gumb")]
    found = lines_of(pd.DataFrame(rows, columns=["model", "representation"]), ["representation"], sides=True)
    assert [line.label for line in found] == ["b2, soft", "b2, gumb", "b2, discr", "b10, soft"]


def test_intervals_of_ratios_are_students_on_the_log_scale() -> None:
    table = long({"A": {"rot": [2.0, 4.0, 3.0]}}, protocol="acquire", measure="ratio", cap=20.0)
    ((line,),) = [block.lines for block in blocks(table)]
    cell = line.cell("rot", "ci95")
    assert cell is not None
    down, up = error_lengths(cell, ratio=True)
    logs = pd.Series([math.log(v) for v in (2.0, 4.0, 3.0)])
    factor = math.exp(4.302653 * logs.std() / math.sqrt(3))
    assert (3 + up, 3 - down) == pytest.approx((3 * factor, 3 / factor))
    assert "mean ± 95 % interval (Student's t), of ratios on the log scale" in title_and_notes(table, "ci95")[1]
    assert not any("log scale:" in note for note in title_and_notes(table, "sd")[1])
