"""Agreement with published values, by intervals of Student's t."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from icy.analysis.literature.agreement import agreement, with_distance
from icy.records.long_table import to_long
from tests.helpers import record


def test_agreement_counts_combined_standard_errors() -> None:
    rows = [record("rot", seed, steps) for seed, steps in ((1, 1900), (2, 2000), (3, 2100))]
    (found,) = agreement(to_long(rows)).to_dict("records")
    assert found["published"] == 20.0
    assert found["icy_error"] == pytest.approx(1 / math.sqrt(3))
    assert found["distance"] == pytest.approx(0, abs=1e-6)
    assert found["within"]


def test_runs_without_an_error_are_assumed_to_spread_as_the_others() -> None:
    columns = {"icy": [0.5, 0.5], "published": [0.6, 0.6], "rounding": [0.0, 0.0]}
    cells = with_distance(
        pd.DataFrame(
            {
                **columns,
                "icy_error": [math.nan, 0.02],
                "seeds": [1, 4],
                "published_error": [0.01, math.nan],
                "n": [4, 1],
            }
        )
    )
    assert cells["icy_error"].isna().tolist() == [True, False]  # what is borrowed is not shown as one's own
    assert cells["freedom"].tolist() == [3, 3]  # of the one that has an error
    assert cells["distance"].tolist() == pytest.approx([-0.1 / math.hypot(0.02, 0.01), -0.1 / math.hypot(0.02, 0.04)])


def test_degrees_of_freedom_are_welchs() -> None:
    errors = {"icy_error": [0.01, 0.01], "published_error": [0.01, 1e-9], "seeds": [3, 5], "n": [3, 3]}
    cells = with_distance(pd.DataFrame({"icy": 0.5, "published": 0.5, "rounding": 0.0, **errors}))
    assert cells["freedom"].tolist() == pytest.approx([4, 4])  # 2 + 2 of equal errors; 5 - 1 where one error is all


def test_rounding_takes_no_degrees_of_freedom() -> None:
    """An error of 0 printed with two digits: only the rounding error, which is known, remains."""
    about = {"icy": 0.503, "icy_error": 0.0, "published": 0.50, "published_error": 0.0029, "seeds": 3, "n": 3}
    (cell,) = with_distance(pd.DataFrame([{**about, "rounding": 0.0029}])).to_dict("records")
    assert cell["distance"] == pytest.approx(0.003 / 0.0029)
    assert cell["freedom"] == math.inf
