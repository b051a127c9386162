"""The order of cards, and the draws from them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.study.game import Bag, Event, StudyGameSettings, instance_of
from icy.study.game.game import card_order, designed_cards, draw

from .helpers import game_of, play_out

TESTS = {29: 5, 39: 6, 49: 8}  # number of cards when a held-out item is asked, in the default schedule


@pytest.mark.parametrize("seeds", [range(500), pytest.param(range(10_000), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["synth", "eng"])
def test_every_held_out_value_is_in_two_cards_by_its_test(name: str, seeds: range) -> None:
    settings = StudyGameSettings(dataset=name)
    values, size = settings.content.values, settings.content.space.size
    for seed in seeds:
        instance = instance_of(settings, seed)
        order = card_order(settings, instance, seed)
        assert len(order) == size - 3
        assert {*order, *instance.held_out} == set(range(size))  # held-out items are not cards
        for held_out, cards in zip(instance.held_out, TESTS.values(), strict=True):
            available = order[: min(cards, settings.cap)]
            assert sum(m // values == held_out // values for m in available) >= 2
            assert sum(m % values == held_out % values for m in available) >= 2


def test_the_first_six_cards_are_as_designed() -> None:
    settings = StudyGameSettings(dataset="eng")
    instance = instance_of(settings, 3)
    (c0, s0), (c1, s1), (c2, s2) = (divmod(m, 5) for m in instance.held_out)
    pairs = [(c0, s1), (c1, s0), (c0, s2), (c2, s0), (c1, s2), (c2, s1)]
    assert designed_cards(settings, instance, seed=1) == tuple(5 * c + s for c, s in pairs)


def test_persons_of_an_instance_get_other_cards_after_the_first_six() -> None:
    settings = StudyGameSettings(dataset="eng")
    instance = instance_of(settings, 0)
    orders = {card_order(settings, instance, seed) for seed in range(20)}
    assert len({order[:6] for order in orders}) == 1
    assert len({order[6:] for order in orders}) == 20


def test_fewer_held_out_items_are_joined_with_other_values() -> None:
    settings = StudyGameSettings(dataset="eng", held_out_at=(20,))
    instance = instance_of(settings, 0)
    colour, shape = divmod(instance.held_out[0], 5)
    first = designed_cards(settings, instance, seed=0)
    assert len(set(first)) == 6
    assert sum(m // 5 == colour for m in first[:4]) == sum(m % 5 == shape for m in first[:4]) == 2


def test_published_cards_come_colour_by_colour() -> None:
    assert game_of("published").order == tuple(range(9))


@given(st.integers(2, 8), st.integers(0, 1000))
def test_bags_show_every_card_before_any_again_and_none_twice_in_a_row(cards: int, seed: int) -> None:
    bag, last, shown = Bag(), None, []
    for _ in range(4 * cards):
        last, bag = draw(bag, list(range(10, 10 + cards)), last, seed, "test")
        shown.append(last)
    for start in range(0, len(shown), cards):
        assert set(shown[start : start + cards]) == set(range(10, 10 + cards))
    assert all(a != b for a, b in pairwise(shown))


def test_a_new_card_begins_a_new_bag() -> None:
    card, bag = draw(Bag(), [0, 1, 2], None, 0, "test")
    assert (bag.number, bag.cards, len(bag.left)) == (1, 3, 2)
    _, bag = draw(bag, [0, 1, 2, 3], card, 0, "test")
    assert (bag.number, bag.cards, len(bag.left)) == (2, 4, 3)


def test_published_items_are_drawn_with_replacement() -> None:
    games, repeats, expected = 20, 0, 0.0
    for seed in range(games):
        trials = play_out(game_of("published", seed=seed)).trials
        repeats += sum(a.meaning == b.meaning for a, b in pairwise(trials))
        expected += sum(1 / trial.cards for trial in trials[1:] if trial.held_out is None)
    assert abs(repeats - expected) < 4 * expected**0.5


def test_train_shows_all_cards_before_any_again() -> None:
    game = game_of(dataset="eng", start=7)
    state = game.apply(game.new(), Event("start"))
    shown = []
    for _ in range(21):
        state = game.apply(state, Event("train_view"))
        assert state.train is not None
        shown.append(state.train.meaning)
    assert Counter(shown) == dict.fromkeys(game.order[:7], 3)
