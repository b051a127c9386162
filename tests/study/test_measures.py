"""Measures of games."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from icy.records.kinds import job_kind
from icy.study.game import Event, Trial
from icy.study.rows import MEASURES, game_measures, item_measures
from tests.study.game.helpers import game_of, play_out


def item(text: str, held_out: int | None = None, shown: tuple[int, int] = (0, 0)) -> Trial:
    return Trial(*(0, 0, "abcd", 2, 0, held_out), (0, 0), shown, shown, 0, raw=text, text=text, correct=text == "abcd")


def test_items_are_counted_by_their_split() -> None:
    found = item_measures(
        [item("abcd"), item("x"), item("abcd", 0, (1, 2)), item("abca", 1, (2, 2)), item("dcba", 2, (0, 2))]
    )
    assert (found["accuracy"], found["items"]) == (1 / 3, 3)
    assert (found["first"], found["first_items"]) == (1.0, 1)
    assert (found["answerable"], found["answerable_items"]) == (0.5, 2)
    assert (found["answerable_twice"], found["answerable_twice_items"]) == (0.0, 1)
    assert (found["trained"], found["trained_items"]) == (0.5, 2)
    assert found["letters"] == pytest.approx((4 + 3 + 0) / 12)
    assert found["distance"] == pytest.approx((0 + 1 / 4 + 1) / 3)


def test_measures_of_no_items_are_undefined() -> None:
    found = item_measures([item("abcd")])
    assert found["items"] == 0
    assert math.isnan(found["accuracy"])
    assert math.isnan(found["letters"])


def test_answers_of_other_lengths() -> None:
    found = item_measures([item("abcdd", 0), item("a", 1)])
    assert found["letters"] == pytest.approx((4 + 1) / 8)
    assert found["distance"] == pytest.approx((1 / 5 + 3 / 4) / 2)


def test_measures_of_a_game() -> None:
    game = game_of(dataset="eng")
    state = play_out(game, lambda trial: "aaaaaa")
    found = game_measures(game, state)
    assert (found["score"], found["cards"], found["identical"], found["views"]) == (0, 8, 1.0, 0)
    assert (found["distinct"], found["degenerate"], found["chance"]) == (25, 0.0, 26**-6)


def test_an_unanswered_item_is_not_counted() -> None:
    game = game_of()
    state = game.apply(game.new(), Event("start"))
    assert game_measures(game, state)["trained_items"] == 0
    state = game.apply(game.apply(state, Event("answer", state.trial.code)), Event("next"))
    assert game_measures(game, state)["trained_items"] == 1


def test_every_measure_is_a_column_of_records() -> None:
    own = {name for name in MEASURES if name not in ("accuracy", "minutes", "reaction_ms", "strange")}
    own |= {measure.items for measure in MEASURES.values() if measure.items}
    assert own == set(job_kind("study").measures)
    game = game_of()
    found = set(game_measures(game, play_out(game)))
    assert found == own - {"agreement"} | {"accuracy"}


def test_answerable_items_are_as_the_paper_has_them() -> None:
    trial = replace(item("x", 0), shown=(1, 2))
    assert (trial.answerable(), trial.answerable(2), trial.answerable(0)) == (True, False, True)
