"""Lengths of messages that the sender may end early: settings and measures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.training.tasks import Lengths, length_measures

SPACE = MeaningSpace(1, 4)
ALL = np.arange(4)


def language(*lengths: int) -> Language:
    """Messages of these lengths, of tokens 0; the end token is 1."""
    return Language(SPACE, [[0] * n + [1] * (4 - n) for n in lengths], 2, eos=1)


@pytest.mark.parametrize(
    ("cost", "costs"),
    [
        (0, (0.0, False, False)),
        ("0.5", (0.5, False, False)),
        ("lazy", (0.0, True, False)),
        ("impatient", (0.0, False, True)),
        ("lazimpa", (0.0, True, True)),
    ],
)
def test_costs(cost: Any, costs: tuple[float, bool, bool]) -> None:
    lengths = Lengths(6, cost)
    assert lengths.costs == costs
    assert lengths.readings == (6 if costs[2] else 1)
    assert Lengths.of(lengths.config()) == lengths
    assert set(lengths.facts()) == set(lengths.config())


def test_messages_of_a_fixed_length_have_no_settings() -> None:
    assert not Lengths().vary
    assert Lengths(None, 0).config() == Lengths(None, "0").facts() == {}
    assert Lengths(6).config() == Lengths(6, "0.0").config() == {"max_length": 6}


def test_measures_of_equal_frequencies_and_of_a_table() -> None:
    assert length_measures([language(1, 2, 3, 4)], None, 0) == {"mean_length": 2.5}
    assert length_measures([language(1, 2, 3, 4)], Frequencies("equal"), 0) == {"mean_length": 2.5}
    weights = Frequencies("", "file", ALL[:3], np.array([3.0, 2.0, 1.0]))
    assert length_measures([language(1, 2, 3, 4)], weights, 0) == {
        "mean_length": pytest.approx(10 / 6),
        "length_by_rank": pytest.approx(1.0),  # the most frequent meaning has the shortest message
    }
    assert length_measures([language(3, 2, 1, 4)], weights, 0)["length_by_rank"] == pytest.approx(-1.0)
    equal = length_measures([language(2, 2, 2, 4)], weights, 0)
    assert equal == {"mean_length": pytest.approx(2.0), "length_by_rank": None}
    both = length_measures([language(1, 2, 3, 4), language(2, 2, 2, 4)], weights, 0)
    assert both == {"mean_length": pytest.approx((10 / 6 + 2) / 2), "length_by_rank": pytest.approx(1.0)}


def test_measures_have_the_frequencies_of_the_seed() -> None:
    law = Frequencies("zipf:1")
    _, weights = law.of_seed(SPACE, 7)
    lengths = 1 + np.argsort(np.argsort(-weights))  # as long as the rank
    assert length_measures([language(*lengths)], law, 7) == {
        "mean_length": pytest.approx(float(lengths @ weights)),
        "length_by_rank": pytest.approx(1.0),
    }
