"""Positions, symbols and attributes: posdis, bosdis and the table of information."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import mutual_info_score

import icy
from icy.languages.table import number, together
from icy.metrics import bosdis, information_table, posdis
from icy.metrics.information import conditional_entropy, entropy, joint_entropy, mutual_information

# Chaabouni et al. 2020, appendix 8.2
BAGS = ["004", "005", "006", "007", "141", "151", "161", "171", "242", "252", "262", "272", "343", "335", "336", "337"]
GRID = list(itertools.product(range(4), repeat=2))


def test_bags_of_symbols() -> None:
    messages = [list(map(int, message)) for message in BAGS]
    assert bosdis(GRID, messages).value == pytest.approx(1)
    assert bosdis(GRID, messages, ignore=[0]).value == pytest.approx(1)
    assert posdis(GRID, messages).value == pytest.approx(0.429163, abs=1e-6)
    assert icy.metrics.topsim(GRID, messages).value == pytest.approx(0.745356, abs=1e-6)


def test_a_rule_based_speaker_on_five_rows() -> None:
    """Too few rows for measures of information (metrics-facts 2)."""
    latents = [(0, 1, 2), (1, 3, 4), (2, 5, 0), (3, 1, 2), (4, 3, 4)]
    messages = [(*(v + 1 for v in row), 0) for row in latents]
    assert posdis(latents, messages).value == pytest.approx(0.114847, abs=1e-6)
    assert icy.metrics.hce(latents, messages).value == pytest.approx(1 / 3)
    assert icy.metrics.topsim(latents, messages).value == pytest.approx(1)


POSDIS_SPEAKER = {  # s2b-facts 9.2: values per latent; topsim by edit distance, bosdis without the end of a message
    (2, 2, 2): (0.980, 0), (2, 3, 5): (0.966, 0.452), (2, 4, 4): (0.965, 0.048), (2, 5, 5): (0.971, 0.060),
    (3, 3, 3): (0.942, 0), (3, 4, 5): (0.952, 0.248), (4, 4, 4): (0.937, 0), (5, 5, 5): (0.942, 0),
}  # fmt: skip


@pytest.mark.parametrize("sizes", POSDIS_SPEAKER, ids=str)
def test_the_posdis_speaker(sizes: tuple[int, ...]) -> None:
    """Attributes may have different numbers of values."""
    meanings = list(itertools.product(*map(range, sizes)))
    messages = [(*(value + 1 for value in meaning), 0) for meaning in meanings]
    assert posdis(meanings, messages).value == pytest.approx(1)
    found = icy.metrics.topsim(meanings, messages).value, bosdis(meanings, messages, ignore=[0]).value
    assert found == pytest.approx(POSDIS_SPEAKER[sizes], abs=5e-4)


@pytest.mark.parametrize(("rows", "mean"), [(30, 0.769), (100, 0.933), (1000, 0.994)])
def test_a_perfect_language_on_random_rows_is_below_one(rows: int, mean: float) -> None:
    random = np.random.default_rng(0)
    found = []
    for _ in range(20):
        meanings = random.integers(5, size=(rows, 3))
        found.append(posdis(meanings, meanings).value)
    assert np.mean(found) == pytest.approx(mean, abs=5 * np.std(found) / math.sqrt(20))


def test_constant_parts() -> None:
    meanings = list(itertools.product(range(2), repeat=2))
    messages = [(a, 0, b, 0) for a, b in meanings]
    assert posdis(meanings, messages).value == 1
    assert posdis(meanings, messages, constant="zero").value == 0.5
    ones = [(5, 5)] * 4
    assert math.isnan(posdis(meanings, ones).value)
    assert posdis(meanings, ones, constant="zero").value == 0
    assert math.isnan(bosdis(meanings, ones).value)
    assert bosdis(meanings, ones, constant="zero", vocab_size=9).value == 0
    bag = [(1, 3), (4, 1), (3, 2), (2, 4)]
    assert bosdis(meanings, bag, constant="zero", vocab_size=8).value == 0.5


def test_one_attribute_has_no_second() -> None:
    score = posdis([[0], [1]], ["a", "b"])
    assert math.isnan(score.value)
    assert "no second attribute" in score.why


def test_details_name_the_attribute_of_each_part() -> None:
    meanings = list(itertools.product(range(2), repeat=2))
    score = posdis(meanings, [(b, a) for a, b in meanings])
    assert score.details["attributes"] == {0: 1, 1: 0}
    assert bosdis(meanings, ["ac", "ad", "bc", "bd"]).details["attributes"] == {"a": 0, "b": 0, "c": 1, "d": 1}


def test_shorter_messages_have_an_end() -> None:
    """Where a message ends is seen by position, and is one more value of it."""
    meanings = [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert posdis(meanings, [[1], [1, 2], [3], [3, 2]]).value == 1
    assert posdis(meanings, [[1, 0], [1, 2], [3, 0], [3, 2]], eos=0).value == 1


def test_information_table() -> None:
    meanings = list(itertools.product(range(2), repeat=2))
    table = information_table(meanings, [(a, a ^ b, 7) for a, b in meanings], attributes=["shape", "colour"])
    assert table["information"].tolist() == [1, 0, 0, 0, 0, 0]
    assert table["attribute_given_position"].tolist() == [0, 1, 1, 1, 1, 1]
    assert table["position_entropy"].tolist() == [1, 1, 0] * 2
    assert table["share"].tolist() == [1, 0, 0, 0, 0, 0]
    assert table["attribute"].unique().tolist() == ["shape", "colour"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grammar", "expected"),
    [  # icy-facts 6: posdis, bosdis, HCE at 5x10 over seeds 123 to 127, mean and standard deviation
        ("concat", ((1, 0), (0.036, 0.016), (1, 0))),
        pytest.param("proj", ((0.037, 0.009), (0.017, 0.008), (0.296, 0.010)), marks=pytest.mark.slow),
        ("shufdet", ((0.172, 0.027), (0.036, 0.016), (0.312, 0.053))),
        pytest.param("shuf", ((0.002, 0.001), (0.036, 0.016), (0.198, 0.026)), marks=pytest.mark.slow),
        pytest.param("pairsum", ((0.101, 0.037), (0.008, 0.005), (0.550, 0.030)), marks=pytest.mark.slow),
        ("rot", ((0.224, 0.005), (0.044, 0.014), (0.398, 0.129))),
        ("hol", ((0, 0), (0, 0), (0.022, 0.010))),
    ],
)
def test_values_measured_on_the_authors_languages(grammar: str, expected: Any) -> None:
    """Within four standard errors of the difference of two means over five seeds, and the digits they are given to."""
    found = []
    for seed in range(123, 128):
        language = icy.make_language(grammar, "5x10", seed=seed)
        found.append(
            [
                posdis(language, constant="zero").value,
                bosdis(language, constant="zero").value,
                icy.metrics.hce(language).value,
            ]
        )
    for ours, own_sd, (mean, sd) in zip(np.mean(found, 0), np.std(found, 0, ddof=1), expected, strict=True):
        assert ours == pytest.approx(mean, abs=4 * math.sqrt((sd**2 + own_sd**2) / 5) + 0.001)


def test_large_tokens_take_no_extra_memory() -> None:
    """A table of every token up to 2^62 would take 23 GB and more."""
    meanings = list(itertools.product(range(2), repeat=2))
    bag = np.array([(1, 3), (4, 1), (3, 2), (2, 4)])
    for large in (10**10, 2**61, 2**62, 2**63 - 1, 10**20):
        messages = [[large if token == 4 else token for token in row] for row in bag.tolist()]
        assert bosdis(meanings, messages).value == bosdis(meanings, bag).value == 1
    huge = bosdis(meanings, np.where(bag == 4, 2**40, bag), constant="zero")
    assert huge.value == pytest.approx(4 / (2**40 + 1))
    assert huge.details["gaps"] == {1: 1, 2: 1, 3: 1, 2**40: 1}


def test_ignored_symbols_are_not_in_the_vocabulary() -> None:
    meanings, bag = list(itertools.product(range(2), repeat=2)), [(1, 3), (4, 1), (3, 2), (2, 4)]
    for ignored, symbols in ((0, 4), ([0], 4), ([0, 0.0], 4), ([9, -1, "a"], 5), ([0, 1], 3), ((), 5)):
        score = bosdis(meanings, bag, constant="zero", ignore=ignored)  # type: ignore[arg-type]
        assert score.value == pytest.approx((3 if ignored == [0, 1] else 4) / symbols)
    named = [[f"t{token}" for token in row] for row in bag]
    assert bosdis(meanings, named, constant="zero", ignore=["t1"], vocab_size=9).value == pytest.approx(3 / 8)


# -- entropies, against SciPy's and scikit-learn's ---------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 40))
def test_entropies_are_those_of_scipy_and_scikit_learn(seed: int, rows: int, values: int) -> None:
    random = np.random.default_rng(seed)
    x, y = (number(random.integers(values, size=rows)) for _ in range(2))
    assert entropy(x) == pytest.approx(scipy_entropy(np.bincount(x), base=2), abs=1e-12)
    found = mutual_information(x, y)
    assert found == pytest.approx(mutual_info_score(x, y) / math.log(2), abs=1e-9)
    assert 0 <= found <= min(entropy(x), entropy(y))
    assert conditional_entropy(x, y) == pytest.approx(entropy(x) - found, abs=1e-9)
    assert joint_entropy(x, y) == pytest.approx(entropy(together(x, y)), abs=1e-9)
