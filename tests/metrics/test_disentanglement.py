"""Disentanglement of codes, discrete and real."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

import icy
from icy.core.errors import IcyError
from icy.metrics import factor_vae, mig, modularity
from icy.metrics.disentanglement import _unlikeness, read_codes

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


TWO, THREE = (list(itertools.product(range(k), repeat=2)) for k in (2, 3))


@pytest.mark.parametrize(
    ("meanings", "messages", "gap", "modular"),
    [
        (TWO, [(1 + a, 1 + (a ^ b)) for a, b in TWO], 0.5, 0.5),
        (TWO, [(1 + 2 * a + b,) for a, b in TWO], 1, 0),
        (TWO, [(1 + a, 3 + b, 5) for a, b in TWO], 1, 2 / 3),
        (TWO, [(1, 3), (4, 1), (3, 2), (2, 4)], 0, 0),
        (THREE, [(1 + a, 1 + (a + b) % 3) for a, b in THREE], 0.5, 0.5),
        (THREE, [(1 + (a + b) % 3, 1 + (a + 2 * b) % 3) for a, b in THREE], 0, 0),
    ],
)
def test_toys(meanings: Any, messages: Any, gap: float, modular: float) -> None:
    """metrics-facts 11"""
    assert mig(meanings, messages).value == pytest.approx(gap, abs=1e-12)
    assert modularity(meanings, messages).value == pytest.approx(modular, abs=1e-12)


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), rows=st.integers(12, 40))
def test_what_they_do_not_depend_on(seed: int, rows: int) -> None:
    """Names by position, the order of positions, attributes and rows, and copies (metrics-facts 13)."""
    random = np.random.default_rng(seed)
    factors, codes = random.integers(3, size=(rows, 3)), random.integers(4, size=(rows, 3))
    order = random.permutation(rows)
    renamed = np.stack([random.permutation(4)[column] for column in codes[order].T], 1)[:, random.permutation(3)]
    others = (2 - factors[order])[:, random.permutation(3)]
    for metric in (mig, modularity):
        before = metric(factors, codes).value
        assert 0 <= before <= 1
        assert metric(np.tile(others, (2, 1)), np.tile(renamed, (2, 1))).value == pytest.approx(before, abs=1e-9)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_names_of_tokens_do_not_move_the_vote(seed: int) -> None:
    random = np.random.default_rng(seed)
    factors, codes = random.integers(3, size=(40, 2)), random.integers(4, size=(40, 2))
    renamed = np.stack([random.permutation(4)[column] for column in codes.T], 1)
    few = {"training_votes": 50, "test_votes": 50}
    assert factor_vae(factors, codes, **few).value == factor_vae(factors, renamed, **few).value


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), batch=st.integers(2, 9))
def test_variance_of_one_hot_vectors(seed: int, batch: int) -> None:
    codes = np.random.default_rng(seed).integers(4, size=(3, 5, batch))
    assert _unlikeness(codes) == pytest.approx(np.eye(4)[codes].var(2, ddof=1).sum(-1), abs=1e-12)


def test_many_tokens_need_no_vectors() -> None:
    """One token for every row: its one-hot vectors would take 3 GB."""
    rows = np.arange(20_000)
    factors = np.stack([rows % 2, rows // 2 % 2], 1)
    score = factor_vae(factors, np.stack([rows, factors[:, 1]], 1), training_votes=100, test_votes=100)
    assert score.details["attributes"][1] == 1


@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1e6, 1e200])
def test_scale_does_not_matter(scale: float) -> None:
    few = {"training_votes": 60, "test_votes": 60}
    codes = np.hstack([GRID * scale, np.full((len(GRID), 1), 0.1 * scale)])
    assert factor_vae(GRID, codes, **few).value == 1
    assert factor_vae(GRID, codes, **few).details["active"] == [0, 1, 2]
    assert mig(GRID, codes).value == pytest.approx(1)


def test_rounding_is_no_code() -> None:
    """Numbers that should be equal, and are not in the last digit, do not fill the bins."""
    noise = 0.3 + np.random.default_rng(0).integers(2, size=(len(GRID), 1)) * 2.0**-54
    codes = np.hstack([GRID + 0.5, noise])
    assert len(np.unique(noise)) == 2
    assert math.isnan(modularity(GRID, codes, dead="skip").details["scores"][3])
    assert factor_vae(GRID, codes, training_votes=60, test_votes=60).details["active"] == [0, 1, 2]


def test_bins_are_those_of_the_reference_library() -> None:
    codes = np.random.default_rng(0).normal(size=(50, 1))
    expected = np.digitize(codes[:, 0], np.histogram(codes[:, 0], 7)[1][:-1])
    found = read_codes(np.zeros((50, 1), dtype=int), codes, None).classes(7)[0]
    assert (found == np.unique(expected, return_inverse=True)[1]).all()


def test_real_codes_are_recognized() -> None:
    codes = GRID + 0.5
    for real in (codes, codes.astype(np.float32), codes.tolist(), GRID.astype(float), GRID.astype(float).tolist()):
        assert not read_codes(GRID, real, None).discrete
    for tokens in (GRID, GRID.tolist(), [(1, 2)] * 124 + [(1,)], ["abc"] * 125):
        assert read_codes(GRID, tokens, None).discrete
    assert not read_codes((GRID, codes), None, None).discrete
    with pytest.raises(IcyError, match="125 meanings and 124 messages"):
        mig(GRID, codes[1:])
    with pytest.raises(IcyError, match="real numbers"):
        mig(codes, codes)


def test_one_attribute() -> None:
    assert "no second attribute" in modularity([[0], [1]], ["a", "b"]).why
    assert mig([[0], [1]], ["a", "b"]).value == 1
    assert "no second attribute" in factor_vae([[0], [1]], ["a", "b"]).why  # any guess would be right


def test_copies_of_one_row_do_not_vary() -> None:
    """Where a value has one row all dimensions tie, and the first has the vote, not the one rounded luckily."""
    codes = np.random.default_rng(0).normal(size=(7, 3))
    score = factor_vae(np.arange(7)[:, None] + [0, 0], codes, training_votes=50, test_votes=50)
    assert list(score.details["attributes"]) == [0]


@pytest.mark.parametrize("variance", ["one_hot", "ordinal"])
@pytest.mark.parametrize("first", [10**13, 2**53 + 1, 2**61])
def test_large_tokens_that_differ_by_one_do_differ(variance: str, first: int) -> None:
    """As real codes they would be one and the same, up to rounding."""
    options: dict[str, Any] = {"variance": variance, "training_votes": 200, "test_votes": 200}
    meanings = np.array(list(itertools.product(range(3), repeat=2)))
    assert (
        factor_vae(meanings, meanings + first, **options).value == factor_vae(meanings, meanings, **options).value == 1
    )
