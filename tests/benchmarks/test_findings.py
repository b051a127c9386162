"""Findings: their statistics, and that the page says what the records show."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from .helpers import benchmark


def test_models_that_agree_have_a_concordance_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark("findings", monkeypatch)
    alike = pd.DataFrame([[1.0, 2, 3], [10, 20, 30], [0, 5, 6]])
    assert bench.concordance(alike) == pytest.approx(1)
    turned = pd.DataFrame([[1.0, 2, 3], [2, 3, 1], [3, 1, 2]])
    assert bench.concordance(turned) == pytest.approx(0)


def test_shares_of_variance_are_those_of_their_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark("findings", monkeypatch)
    rows, columns = np.arange(3.0)[:, None, None], np.arange(2.0)[None, :, None]
    by_row = bench.shares(rows + np.zeros((3, 2, 2)))
    assert by_row == {"architecture": 1, "cell": 0, "both together": 0, "seed": 0}
    mixed = bench.shares(np.random.default_rng(0).normal(size=(4, 3, 2)) + rows[:1] + columns[:, :1])
    assert sum(mixed.values()) == pytest.approx(1)
    assert bench.shares(rows * 0 + columns * 0 + np.array([0.0, 1]))["seed"] == pytest.approx(1)


def test_intervals_are_over_models(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark("findings", monkeypatch)
    assert bench.over_models([0.5] * 4) == (0.5, 0.5, 0.5)
    mean, low, high = bench.over_models([0.0, 1.0])  # 12.706 standard errors of a half
    assert (mean, low, high) == pytest.approx((0.5, 0.5 - 6.3531, 0.5 + 6.3531), abs=1e-4)
    assert bench.times([math.log(2)] * 3) == "2.00 (2.00 to 2.00)"


def test_every_model_of_the_atlas_has_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark("findings", monkeypatch)
    assert set(bench.probes()["family"]) == set(bench.FAMILIES)


def test_the_page_says_what_the_records_show(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = benchmark("findings", monkeypatch)
    committed = bench.PAGE.read_text()
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    assert bench.page(bench.findings()) == committed
