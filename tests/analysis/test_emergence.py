"""Bias of senders, and the languages that they invent."""

from __future__ import annotations

import math

import pandas as pd
import pytest

import icy
from icy.analysis.emergence import Emergence, emerged, plot_emergence, probed_senders, sender_bias
from icy.core.errors import InvalidSettingError


def probes(ratios: dict[str, dict[str, float]]) -> pd.DataFrame:
    rows = [
        {"model": f"sender/{model}", "seed": 1, "grammar": grammar, "value": value, "measure": "ratio", "failed": False}
        for model, found in ratios.items()
        for grammar, value in found.items()
    ]
    return pd.DataFrame(rows)


def games(scores: dict[str, list[float]]) -> pd.DataFrame:
    rows = [
        {"model": f"{model}+RNN1L:LSTM", "grammar": "near", "seed": seed, "failed": False, "measure": "accuracy",
         "cbm": value, "cbm_floor": 0.1, "topsim": value, "accuracy": 0.9, "value": 0.9}
        for model, values in scores.items()
        for seed, value in enumerate(values)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_bias_is_the_log_quotient_of_noise_to_composition() -> None:
    found = sender_bias(probes({"A": {"concat": 1, "shufdet": 2, "rot": 8, "proj": 2, "hol": 16}}))
    assert found.loc["A", "bias"] == pytest.approx(math.log(4 / 2))
    assert found.loc["A", "against_holistic"] == pytest.approx(math.log(8))
    with pytest.raises(InvalidSettingError, match="ratios to concat"):
        sender_bias(probes({"A": {"concat": 1}}))


def test_languages_are_means_over_seeds_above_chance() -> None:
    found = emerged(games({"A": [0.3, 0.5]}))
    assert found.loc["A", ["topsim", "above_chance", "seeds"]].tolist() == pytest.approx([0.4, 0.3, 2])
    with pytest.raises(InvalidSettingError, match="several games"):
        emerged(pd.concat([games({"A": [0.3]}).assign(options=said) for said in ("targets=1", "targets=2")]))
    with pytest.raises(InvalidSettingError, match="have no games"):
        emerged(games({"A": [0.3]}).drop(columns="cbm_floor"))


def test_the_two_are_correlated_and_drawn() -> None:
    ratios = {name: {"concat": 1.0, "shufdet": 1.0, "rot": n + 2.0} for n, name in enumerate("ABCDE")}
    found = Emergence.of(probes(ratios), games({name: [n / 10, n / 10 + 0.02] for n, name in enumerate("ABCDE")}))
    assert found.correlation("topsim").value == pytest.approx(1.0)
    table = found.correlations(["bias"]).set_index("score")
    assert table.loc["accuracy", "spearman"] != table.loc["accuracy", "spearman"]  # all alike: undefined
    assert len(plot_emergence(found).axes) == 2
    with pytest.raises(InvalidSettingError, match="at least four senders; 1 has both probes and games"):
        Emergence.of(probes({"A": ratios["A"]}), games({"A": [0.3]}))


def test_the_atlas_has_senders_to_compare_with() -> None:
    found = sender_bias(probed_senders(icy.atlas().to_dataframe()))
    assert len(found) >= 40
    assert found["bias"].notna().all()
