"""Populations, and lengths of messages that the sender may end early."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.training.populations import Lengths, Population, length_measures, member_seed
from tests.training.pairs.helpers import pair_task

# -- populations: pairings, schedules of replacement, and seeds of agents ----------------------------------------------


SIZES = [(1, 1), (3, 3), (2, 5), (5, 2), (1, 4), (4, 1)]


@pytest.mark.parametrize(("senders", "receivers"), SIZES)
def test_every_agent_plays_in_every_update(senders: int, receivers: int) -> None:
    """The larger side once, and the smaller side equally often up to one pairing."""
    population = Population(senders, receivers)
    for update in range(20):
        partners = population.partners(7, update)
        assert partners.shape == (2, max(senders, receivers))
        for numbers, members in zip(partners, (senders, receivers), strict=True):
            counts = Counter(numbers.tolist())
            assert sorted(counts) == [*range(members)]
            assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize(("senders", "receivers"), [(2, 3), (3, 2), (2, 2)])
def test_all_pairings_are_equally_likely(senders: int, receivers: int) -> None:
    population, draws = Population(senders, receivers), 1200
    counts = np.zeros((senders, receivers))
    for update in range(draws):
        np.add.at(counts, tuple(population.partners(3, update)), 1)
    expected = draws * population.size / (senders * receivers)
    assert abs(counts / expected - 1).max() < 0.12


@pytest.mark.parametrize(("senders", "receivers"), SIZES)
def test_the_rounds_of_an_evaluation_hold_each_pairing_once(senders: int, receivers: int) -> None:
    rounds = list(Population(senders, receivers).rounds())
    assert {len(numbers[0]) for numbers in rounds} == {max(senders, receivers)}
    met = [tuple(pairing) for numbers in rounds for pairing in numbers.T.tolist()]
    assert sorted(met) == [(i, j) for i in range(senders) for j in range(receivers)]


def test_schedules_of_replacement() -> None:
    gradual = Population(2, 3, 10)
    assert [gradual.replaced(1, update) for update in (0, 5, 11)] == [{}, {}, {}]
    turns = [gradual.replaced(1, update) for update in (10, 20, 30, 40)]
    assert turns == [{"sender": [s], "receiver": [r]} for s, r in ((0, 0), (1, 1), (0, 2), (1, 0))]
    assert Population(1, 3, 10, "receivers").replaced(1, 10) == {"receiver": [0, 1, 2]}
    drawn = [Population(3, 3, 10, "random").replaced(1, update)["sender"][0] for update in range(10, 400, 10)]
    assert set(drawn) == {0, 1, 2}
    assert Population(2, 2).replaced(1, 10) == {}
    assert [gradual.until_replacement(update) for update in (0, 3, 10, 19)] == [10, 7, 10, 1]


def test_the_first_agents_have_the_seed_of_the_population() -> None:
    assert member_seed(123, 0) == 123
    seeds = {member_seed(123, number, update) for number in range(3) for update in (0, 10, 20)}
    assert len(seeds) == 9


def test_a_pair_adds_nothing_to_keys() -> None:
    pair = pair_task().config()
    of_population = {"senders": 1, "receivers": 1, "replace_every": 5, "replacement": "gradual"}
    assert not of_population.keys() & pair.keys()
    assert pair_task(senders=2).config() == {**pair, "senders": 2, "receivers": 1}
    assert pair_task(replace_every=5).config() == {**pair, **of_population}


# -- lengths of messages that the sender may end early: settings and measures ------------------------------------------


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


def test_messages_of_a_fixed_length_have_no_settings() -> None:
    assert not Lengths().vary
    fixed, ending = pair_task(length_cost="0"), pair_task(max_length=6)
    added = {"max_length", "length_cost"}
    assert not added & {*fixed.config(), *fixed.facts()}
    assert ending.config() == pair_task(max_length=6, length_cost="0.0").config()
    assert ending.config()["max_length"] == 6
    assert added & {*ending.config()} == added & {*ending.facts()} == {"max_length"}
    lazy = pair_task(max_length=6, length_cost="lazy")
    assert added <= {*lazy.config()} & {*lazy.facts()}


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
