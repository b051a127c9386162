"""The page of people and networks: orders of grammars, and cells at the target accuracy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from results.people import __main__ as people


def test_taus_of_many_rows_equal_scipy() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 4, (50, 5)).astype(float), rng.normal(size=(50, 5))
    first[:, 0] = 5  # never constant
    expected = [people.tau(a, b) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(people.taus(first, second), expected)
    assert people.share_as_high(np.arange(5.0), np.arange(5.0)) == pytest.approx(1 / 120)
    assert people.share_as_high(np.arange(5.0), -np.arange(5.0)) == 1


def test_people_vary_as_printed() -> None:
    eng = people.people("eng")
    np.testing.assert_allclose(eng.draws.mean(0), eng.means, atol=0.01)
    np.testing.assert_allclose(1.96 * eng.draws.std(0), [0.2, 0.2, 0.08, 0.03, 0.2], rtol=0.1)  # as printed, table 22


def test_only_cells_with_all_seeds_at_the_target_count() -> None:
    rows = [
        {"protocol": "generalise", "role": "sender", "model": model, "grammar": grammar, "seed": seed,
         "reason": "cap" if (model, grammar, seed) == ("a", "rot", 2) else "target", "accuracy": 0.5 + seed / 10}
        for model in "ab" for grammar in people.GRAMMARS for seed in (1, 2)
        if (model, grammar, seed) != ("b", "perm", 1)
    ]  # fmt: skip
    table = people.accuracies(pd.DataFrame(rows))
    assert table.loc[("sender", "a"), "concat"] == pytest.approx(0.65)
    assert np.isnan(table.loc[("sender", "a"), "rot"])
    assert np.isnan(table.loc[("sender", "b"), "perm"])


def test_an_accuracy_of_zero_has_an_exact_interval() -> None:
    agent = people.Agent("x", "network", np.zeros(5), np.zeros((10, 5)), instances=20)
    value, low, high = agent.cell(0)
    assert (value, low) == (0, 0)
    assert high == pytest.approx(1 - 0.025 ** (1 / 20))
