"""Findings: their statistics, and that the page says what the records show."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from .helpers import benchmark


def table(ratios: dict[str, dict[str, float]], cut: Sequence[tuple[str, str]] = ()) -> Any:
    """A table of findings, of ratios by model and grammar, some of them cut."""
    from findings_data import Table

    values = np.log(pd.DataFrame(ratios).T)
    return Table(values, pd.DataFrame({g: [(m, g) in cut for m in values.index] for g in values}, index=values.index))


def test_models_that_agree_have_a_concordance_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark("findings", monkeypatch)
    alike = pd.DataFrame([[1.0, 2, 3], [10, 20, 30], [0, 5, 6]])
    assert bench.concordance(alike) == pytest.approx(1)
    turned = pd.DataFrame([[1.0, 2, 3], [2, 3, 1], [3, 1, 2]])
    assert bench.concordance(turned) == pytest.approx(0)
    tied = pd.DataFrame([[1.0, 20, 20], [2, 20, 20]])  # they agree in all that they tell
    assert bench.concordance(tied) == pytest.approx(1)


def test_components_of_variance_are_those_of_their_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark("findings", monkeypatch)
    rows, columns = np.arange(3.0)[:, None, None], np.arange(2.0)[None, :, None]
    by_row = bench.components(rows + np.zeros((3, 2, 2)))
    assert by_row == pytest.approx({"architecture": 1, "cell": 0, "both together": 0, "seed": 0})
    assert bench.components(rows * 0 + columns * 0 + np.array([0.0, 1]))["seed"] == pytest.approx(1)
    rng = np.random.default_rng(0)
    many = 2 * rng.normal(size=(60, 1, 1)) + rng.normal(size=(1, 60, 1)) + rng.normal(size=(60, 60, 3))
    found = bench.components(many)  # variances of 4, 1 and 1
    assert sum(found.values()) == pytest.approx(1)
    assert found["architecture"] == pytest.approx(4 / 6, abs=0.1)
    assert found["both together"] < 0.01


def test_intervals_are_over_models(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark("findings", monkeypatch)
    import findings_data as data

    assert data.over_models([0.5] * 4) == (0.5, 0.5, 0.5)
    mean, low, high = data.over_models([0.0, 1.0])  # 12.706 standard errors of a half
    assert (mean, low, high) == pytest.approx((0.5, 0.5 - 6.3531, 0.5 + 6.3531), abs=1e-4)
    assert str(data.mean_of([0.25, 0.5])) == "0.25 and 0.50"


def test_ratios_that_were_cut_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark("findings", monkeypatch)
    from findings_data import ratio_of

    same = table({name: {"rot": 2.0} for name in "abc"})
    assert str(ratio_of(same, "rot")) == "2.00 (2.00 to 2.00)"
    capped = table({name: {"rot": 20.0} for name in "abc"}, [(name, "rot") for name in "abc"])
    assert str(ratio_of(capped, "rot")) == "> 20"
    two = table({"a": {"rot": 20.0}, "b": {"rot": 5.0}}, [("a", "rot")])
    assert str(ratio_of(two, "rot")) == "5.00 and 20.00†"
    assert ratio_of(two, "rot").high == math.inf
    few = table(
        {name: {"rot": value} for name, value in zip("abcd", (2, 3, 20, 20), strict=True)}, [("c", "rot"), ("d", "rot")]
    )
    assert str(ratio_of(few, "rot")).startswith("> ")  # two that were not cut say little of the others


def test_quotients_leave_out_pairs_that_were_both_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark("findings", monkeypatch)
    from findings_data import quotient_of

    one = table({"a": {"rot": 20.0}, "b": {"rot": 4.4}, "c": {"rot": 8.0}, "d": {"rot": 4 / 1.1}}, [("a", "rot")])
    other = table({"a": {"rot": 20.0}, "b": {"rot": 2.0}, "c": {"rot": 4.0}, "d": {"rot": 2.0}}, [("a", "rot")])
    assert str(quotient_of(one, other, "rot")) == "2.00 (1.58 to 2.53)"  # Student's t of the three others' logarithms
    low = table({name: {"rot": 2.0} for name in "abcd"})
    assert str(quotient_of(one, low, "rot")).startswith("> ")
    assert str(quotient_of(one.only(["a"]), other, "rot")) == "-"


def test_orders_of_models_that_were_mostly_cut_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark("findings", monkeypatch)
    from findings_data import FEW, correlation_of, shown

    values = {f"sender/{n}": {"perm": 1.0 + n, "rot": 2.0 + n} for n in range(FEW)}
    alike = correlation_of(table(values), table(values), "perm", "rot")
    assert alike is not None
    assert alike.value == pytest.approx(1)
    capped = table(values, [(name, "rot") for name in list(values)[:3]])
    assert shown(correlation_of(capped, capped, "perm", "rot")) == "-"
    few = table({name: values[name] for name in list(values)[1:]})
    assert correlation_of(few, few, "perm", "rot") is None


def test_every_model_of_the_atlas_has_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark("findings", monkeypatch)
    assert set(bench.probes()["model"].map(bench.family_of)) == set(bench.FAMILIES)


def test_models_of_which_seeds_failed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark("findings", monkeypatch)
    for protocol in ("acquire", "budget"):
        long = bench.probes(protocol=protocol)
        assert long.groupby("model")["seed"].nunique().eq(3).all()


@pytest.mark.slow
def test_the_page_says_what_the_records_show(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = benchmark("findings", monkeypatch)
    committed = bench.PAGE.read_text()
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    found = bench.findings()
    assert bench.page(found) == committed
    pictures = re.findall(r"\]\(([\w-]+\.png)\)", committed)
    assert [name for name in pictures if not bench.PAGE.with_name(name).is_file()] == []
    assert [one.title for one in found if one.drawn is not None and one.picture not in pictures] == []
