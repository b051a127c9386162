"""Disentanglement of codes, discrete and real."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

import icy
from icy.errors import IcyError
from icy.metrics import factor_vae, mig, modularity

GRID = icy.MeaningSpace(3, 5).all()


def entropies(column: Any) -> float:
    return float(mutual_info_score(column, column))


def test_mig_and_modularity_are_their_definitions() -> None:
    random = np.random.default_rng(0)
    factors, codes = random.integers(3, size=(80, 3)), random.integers(4, size=(80, 4))
    codes[:, 1] = factors[:, 2]
    matrix = np.array([[mutual_info_score(c, f) for f in factors.T] for c in codes.T])
    gaps = [
        (np.sort(column)[-1] - np.sort(column)[-2]) / entropies(f)
        for column, f in zip(matrix.T, factors.T, strict=True)
    ]
    assert mig(factors, codes).value == pytest.approx(np.mean(gaps), abs=1e-9)
    squares = matrix**2
    parts = 1 - (squares.sum(1) - squares.max(1)) / (2 * squares.max(1))
    assert modularity(factors, codes).value == pytest.approx(parts.mean(), abs=1e-9)


def test_real_codes_go_into_bins() -> None:
    random = np.random.default_rng(0)
    codes = GRID / 5 + random.uniform(0, 0.01, size=GRID.shape)
    assert mig(GRID, codes, bins=5).value == pytest.approx(1)
    assert modularity(GRID, codes, bins=5).value == pytest.approx(1)
    assert factor_vae(GRID, codes, training_votes=200, test_votes=200).value == 1
    mixed = codes @ random.normal(size=(3, 3))
    assert mig(GRID, mixed).value < 0.5
    assert mig(GRID, codes, bins=1).value == 0
    # One bin is as wide as another, whatever is in it.
    assert mig(GRID[:, :1], np.exp(GRID[:, :1] * 3.0), bins=2).value < 1


def test_doubled_positions() -> None:
    """MIG compares codes and posdis attributes: to say the same twice ruins the one and not the other."""
    twice = np.concatenate([GRID, GRID], 1)
    assert mig(GRID, twice).value == 0
    assert modularity(GRID, twice).value == pytest.approx(1)
    assert icy.metrics.posdis(GRID, twice).value == pytest.approx(1)


def test_constant_codes_and_factors() -> None:
    with_end = np.insert(GRID, 3, 0, axis=1)
    assert modularity(GRID, with_end).value == pytest.approx(0.75)
    assert modularity(GRID, with_end, dead="skip").value == pytest.approx(1)
    assert factor_vae(GRID, with_end, training_votes=500, test_votes=500).value == 1
    with_constant = np.insert(GRID, 1, 7, axis=1)
    assert mig(with_constant, GRID).value == pytest.approx(1)
    assert math.isnan(mig(with_constant, GRID).details["gaps"][1])
    assert factor_vae(with_constant, GRID, training_votes=500, test_votes=500).value == 1


def test_factor_vae_of_noise_is_chance() -> None:
    random = np.random.default_rng(0)
    factors, codes = random.integers(4, size=(3000, 2)), random.integers(4, size=(3000, 3))
    score = factor_vae(factors, codes, training_votes=2000, test_votes=2000)
    assert score.value == pytest.approx(0.5, abs=0.08)
    assert score.error == pytest.approx(math.sqrt(score.value * (1 - score.value) / 2000))


def test_factor_vae_of_a_half_disentangled_code() -> None:
    """With b held a and a + b vary alike, so that the first code has nearly every vote, and they say nothing."""
    meanings = list(itertools.product(range(3), repeat=2))
    messages = [(a, (a + b) % 3) for a, b in meanings]
    scores = [factor_vae(meanings, messages, training_votes=400, test_votes=400, seed=s).value for s in (1, 1, 2)]
    assert scores[0] == scores[1]
    assert scores[0] == pytest.approx(0.5, abs=0.1)


def test_variance_of_numbers_depends_on_their_order() -> None:
    order = np.array([0, 4, 1, 3, 2])
    for codes in (GRID, order[GRID]):
        assert factor_vae(GRID, codes, training_votes=300, test_votes=300).value == 1
    assert factor_vae(GRID, GRID, variance="ordinal", training_votes=300, test_votes=300).value == 1


@pytest.mark.parametrize("metric", [mig, modularity, factor_vae])
def test_undefined(metric: Any) -> None:
    assert metric([[0, 0], [0, 0]], ["ab", "cd"]).why == "no attribute ever changes"
    assert metric([[0, 1], [1, 0]], ["", ""]).why


@pytest.mark.parametrize(
    ("metric", "options", "sentence"),
    [
        (modularity, {"dead": "drop"}, "No rule for dead codes"),
        (factor_vae, {"variance": "onehot"}, "did you mean one_hot"),
        (factor_vae, {"batch_size": 1}, "batch size must be a whole number, at least 2"),
        (mig, {"bins": 0}, "number of bins must be a whole number"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(metric: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(IcyError, match=sentence):
        metric(GRID, GRID, **options)


def test_codes_that_are_not_finite() -> None:
    with pytest.raises(IcyError, match="not numbers"):
        mig([[0], [1]], np.array([[0.5], [np.nan]]))
