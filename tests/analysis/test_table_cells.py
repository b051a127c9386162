"""Cells of tables."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from icy.analysis.table_cells import (
    EMPTY,
    Reference,
    TableCell,
    both_censored,
    cell_in_row,
    cell_of,
    cell_of_values,
    p_text,
)


def replicates(values: list[float], failed: int = 0, cut: int = 0) -> pd.DataFrame:
    """Some replicates; the first were cut, and the last failed."""
    good = pd.DataFrame({"value": values, "failed": False, "censored": [i < cut for i in range(len(values))]})
    bad = pd.DataFrame({"value": [math.nan] * failed, "failed": True, "censored": False})
    return pd.concat([good, bad]) if failed else good


def ratio_cell(part: pd.DataFrame) -> TableCell:
    return cell_in_row(part.assign(measure="ratio", grammar="rot"), "sd", log=True)


@pytest.mark.parametrize(("spread", "width"), [("sd", 1.0), ("sem", 3**-0.5), ("ci95", 4.302653 * 3**-0.5)])
def test_mean_and_spread(spread: str, width: float) -> None:
    cell = cell_of(replicates([1.0, 2.0, 3.0]), spread)
    assert (cell.mean, cell.seeds, cell.failed, cell.censored) == (2.0, 3, 0, 0)
    assert cell.spread == pytest.approx(width)


def test_failed_and_cut_runs_are_counted_and_printed() -> None:
    cell = cell_of(replicates([20.0, 4.0], failed=1, cut=1), "sd")
    assert (cell.mean, cell.seeds, cell.failed, cell.censored) == (12.0, 2, 1, 1)
    assert cell.text(1) == "12.0±11.3† (1 failed)"
    assert cell.to_dict() == {
        "mean": 12.0,
        "spread": pytest.approx(11.3137, abs=1e-4),
        "seeds": 2,
        "censored": 1,
        "failed": 1,
    }


def test_a_cell_without_results() -> None:
    assert EMPTY.text(2) == "-"
    assert cell_of(replicates([], failed=2), "sd").text(2) == "failed"
    assert EMPTY.to_dict() == {"mean": None, "spread": None, "seeds": 0}


def test_undefined_values_are_no_failures() -> None:
    cell = cell_of_values(pd.Series([0.5, math.nan]), "sd")
    assert (cell.mean, cell.seeds, cell.failed) == (0.5, 1, 0)
    assert cell_of_values(pd.Series([math.nan]), "sd").text(2) == "-"


def test_a_reference_value_is_printed_with_its_distance() -> None:
    reference = Reference(0.48, 0.01, 1.26)
    assert reference.text(2) == "0.48±0.01 (+1.3)"
    assert Reference(0.48, math.nan, math.nan, censored=True).text(2) == "0.48†"
    shown = TableCell(0.5, 0.01, 3, 0, 0, reference=reference).to_dict()
    assert (shown["other"], shown["other_error"], shown["distance"]) == (0.48, 0.01, 1.26)


@pytest.mark.parametrize(
    ("cut", "other", "both"), [(2, 20.04, True), (2, 19.96, True), (2, 19.0, False), (1, 20.04, False), (0, 21, False)]
)
def test_ratios_cut_in_both(cut: int, other: float, both: bool) -> None:
    assert both_censored(20.0, 2, cut, other) is both


def test_ratios_have_a_summary_on_the_log_scale() -> None:
    cell = ratio_cell(replicates([2.0, 8.0], failed=1))
    assert (cell.mean, cell.failed) == (5.0, 1)
    assert cell.below("log", 2, "sd") == "4.00×/2.67"
    shown = cell.to_dict()
    assert (shown["geometric_mean"], shown["geometric_spread"]) == pytest.approx((4.0, math.exp(math.log(4) / 2**0.5)))
    assert shown["low"] * shown["high"] == pytest.approx(16)
    cut = ratio_cell(replicates([20.0, 20.0, 9.0], cut=2))
    assert cut.below("log", 2, "sd") == "> 15.33"
    assert (cut.to_dict()["geometric_mean"], cut.to_dict()["high"]) == (None, None)
    assert cut.to_dict()["low"] == pytest.approx((20 * 20 * 9) ** (1 / 3))


@pytest.mark.parametrize(("resolution", "shown"), [(0.5, "~2.00±0.20"), (0.05, "2.00±0.20"), (math.nan, "2.00±0.20")])
def test_a_ratio_with_coarse_evaluations_is_marked(resolution: float, shown: str) -> None:
    cell = ratio_cell(replicates([1.8, 2.0, 2.2]).assign(resolution=resolution))
    assert cell.text(2) == shown
    assert ratio_cell(replicates([2.0]).assign(resolution=0.5)).text(2) == "2.00"  # one seed has no spread
    assert cell.to_dict().get("resolution", math.nan) == pytest.approx(resolution, nan_ok=True)


def test_p_values_have_two_digits() -> None:
    assert [p_text(p) for p in (0.0321, 0.0004, 1.0, 0.5)] == ["0.032", "<0.001", "1", "0.5"]
    assert TableCell(1.0, 0.1, 3, 0, 0).below("p", 2, "sd") == ""
