"""The robustness panel: its orders, its verdicts, and models with scaled weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import icy
from icy.core.registry import registry
from icy.experiments.sweep import make_sweep, sweep_request
from icy.experiments.sweep_file import read_sweep
from results.panel import __main__ as panel
from results.panel import conclusions, orders
from results.people import __main__ as people


def test_taus_are_one_for_equal_orders_and_minus_one_for_reversed_ones() -> None:
    means = np.arange(40.0).reshape(8, 5)
    for order, items in ((orders.tau_of_models, 5), (orders.tau_of_grammars, 8)):
        np.testing.assert_array_equal(order(means, 3 * means), np.ones(items))
        np.testing.assert_array_equal(order(means, -means), -np.ones(items))
    swapped = means[:, [1, 0, 2, 3, 4]]
    np.testing.assert_allclose(orders.tau_of_grammars(means, swapped), 0.8)  # 1 of 10 pairs is reversed
    changed = means[[1, 0, 2, 3, 4, 5, 6, 7]]
    np.testing.assert_allclose(orders.tau_of_models(means, changed), 1 - 2 / 12)
    sides = means[[4, 5, 6, 7, 0, 1, 2, 3]]  # models are compared within a side only
    np.testing.assert_array_equal(orders.tau_of_models(means, sides), np.ones(5))


def test_verdicts_name_the_settings() -> None:
    above, below, neither = (
        conclusions.Effect(2, 1.5, 3),
        conclusions.Effect(0.5, 0.4, 0.6),
        conclusions.Effect(1.1, 0.9, 1.3),
    )
    assert conclusions.verdict({"default": above, "width 64": above}) == "holds under all"
    assert conclusions.verdict({"default": above, "width 64": below}) == "reversed under width 64"
    assert conclusions.verdict({"default": below, "a": neither, "b": above}) == "reversed under b; not shown under a"
    assert conclusions.verdict({"default": neither, "a": above}) == "not shown by default; above 1 under a"


def long_table() -> pd.DataFrame:
    """Return records of a default and a wider setting, in which models and grammars are ordered by their place."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "model": model, "grammar": grammar, "seed": seed, "settings": "", "options": "", "hidden_size": hidden,
            "failed": False, "censored": False, "cap": 100.0, "baseline_crossing": 10.0, "seconds": 1.0,
            "crossing": 10 * (1 + m) * 2.0**g * np.exp(0.01 * rng.normal()),
        }
        for hidden in (128, 256)
        for m, model in enumerate(orders.MODELS)
        for g, grammar in enumerate(orders.ALL)
        for seed in range(123, 127)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_setting_that_changes_nothing_keeps_all_orders_and_conclusions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "RESAMPLES", 20)
    found = orders.read(long_table())
    assert list(found.cubes) == ["default", "width 256"]
    assert found.default.shape == (8, 6, 4)
    order = orders.tau(found, "width 256", "grammars, by ratio")
    assert order.mean[0] == 1
    assert order.p == 1
    row = conclusions.effects(found)["recurrent senders: rot > shufdet"]
    assert row["default"].factor == pytest.approx(4, rel=0.02)  # rot is two places after shufdet
    assert conclusions.verdict(row) == "holds under all"


def test_settings_are_compared_over_shared_seeds() -> None:
    long = long_table()
    missing = long["hidden_size"].eq(256) & long["seed"].eq(123) & long["grammar"].eq("rot")
    found = orders.read(long[~missing])
    assert found.seeds["width 256"] == [124, 125, 126]
    assert [cube.shape[-1] for cube in found.both("width 256")] == [3, 3]
    np.testing.assert_array_equal(found.both("width 256")[0], found.default[..., 1:])


def test_scaled_models_are_the_built_in_ones_with_scaled_weights(forgetting: None) -> None:
    import torch

    registry.load_file(panel.SCALED)
    for side, name in (("sender", "RNNZero:GRU"), ("sender", "FC2L"), ("receiver", "CNN")):
        make = getattr(icy, f"create_{side}")
        torch.manual_seed(0)
        plain = make(name, "3x4", 6, 4, 8)
        torch.manual_seed(0)
        scaled = make(f"Scaled-{name}", "3x4", 6, 4, 8, scale=0.5)
        assert type(scaled) is type(plain)
        for before, after in zip(plain.parameters(), scaled.parameters(), strict=True):
            assert torch.equal(after, before / 2)


@pytest.mark.slow
def test_the_sweeps_can_be_planned(forgetting: None, tmp_path: Path) -> None:
    given = read_sweep(panel.SWEEP)
    plan = make_sweep(sweep_request(**given, plugin=str(panel.SCALED), out=str(tmp_path)))
    assert len(plan.rows) == len(orders.SETTINGS) * len(orders.MODELS)
    assert len(make_sweep(sweep_request(**read_sweep(people.SWEEP), out=str(tmp_path))).rows) == len(
        people.LARGE_MODELS
    )
