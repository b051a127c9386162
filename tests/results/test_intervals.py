"""The simulation of coverage: its rows, and the coverage of intervals."""

from __future__ import annotations

import math

import pytest

from results.intervals import __main__ as script


def test_coverage_counts_only_tries_with_an_interval() -> None:
    none, wide, off = (math.nan, math.nan), (-1.0, 1.0), (1.0, 2.0)
    assert script.coverage([(0.0, wide)] * 3 + [(0.0, off)]) == "75.0% ± 21.7%"
    assert script.coverage([(0.0, wide)] * 3 + [(0.0, none)]) == "100.0% ± 0.0% (25% without one)"
    assert script.coverage([(0.0, wide)] + [(0.0, none)] * 3) == "-"


def test_tries_are_the_same_in_every_run() -> None:
    assert script.table_row(0, 5) == script.table_row(0, 5)
    assert script.table_row(0, 5)[:3] == ["ratio of a model", "3 seeds", "10"]


@pytest.mark.slow
def test_every_row_has_a_truth_and_intervals() -> None:
    for index, (*_, function, given) in enumerate(script.CASES):
        truth, ends, _ = function(script.np.random.default_rng(index), **given)
        assert math.isfinite(truth)
        assert math.isnan(ends[0]) or ends[0] < ends[1]
