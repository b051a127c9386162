"""Oracles have the expected scores (cbm-games-facts.md section 15)."""

from __future__ import annotations

import pytest
import torch

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.games.comparison import ORACLES, Holistic, Ideal, make_oracle
from icy.games.evaluation import language_scores
from icy.games.playing import PlayedTurns, play
from icy.games.rules import Rules
from icy.games.settings import TurnSettings
from icy.games.turns import Turns
from icy.games.worlds.world import make_world


def played(name: str, world: str, length: int, kind: str = "auto", turns: int = 500) -> PlayedTurns:
    drawn = Turns(make_world(world), TurnSettings(rule_length=length, distractor_kind=kind), [0])
    return play(make_oracle(name, drawn.rules), drawn, 20, "test", turns, 50)  # type: ignore[arg-type]


@pytest.mark.parametrize(("world", "length"), [("thing", n) for n in (1, 2, 3, 4, 5)] + [("shape", n) for n in (1, 4)])
def test_an_ideal_language_scores_1_everywhere(world: str, length: int) -> None:
    found = played("ideal", world, length)
    scores = language_scores(found.spoken, languages=0)
    assert (found.accuracy, scores["cbm"], scores["ami"]) == pytest.approx((1, 1, 1), abs=1e-9)
    assert (scores["ambiguity_rate"], scores["paraphrase_rate"], scores["unmatched_rate"]) == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("world", ["thing", "shape"])
def test_a_holistic_language_is_understood_and_scores_at_its_floor(world: str) -> None:
    found = played("holistic", world, 4, turns=1000)
    scores = language_scores(found.spoken)
    assert (found.accuracy, scores["ami"]) == pytest.approx((1, 1), abs=1e-9)
    assert scores["cbm"] == pytest.approx(scores["cbm_holistic"], abs=0.05)
    if world == "thing":  # an evaluation has 900 phrases in Thing, and 34 in Shape
        assert scores["cbm"] == pytest.approx(scores["cbm_floor"], abs=0.02)


@pytest.mark.parametrize(("kind", "accuracy"), [("uniform", 0.95), ("near", 0.8125), ("nearest", 0.625)])
def test_one_of_four_concepts_gives_the_expected_accuracy(kind: str, accuracy: float) -> None:
    found = played("literal", "thing", 4, kind, turns=2000)
    assert found.accuracy == pytest.approx(accuracy, abs=0.005)
    assert language_scores(found.spoken, languages=0)["cbm"] == 0.25


def test_guessing_is_right_half_the_time() -> None:
    found = played("random", "thing", 1, turns=1000)
    scores = language_scores(found.spoken)
    assert found.accuracy == pytest.approx(0.5, abs=0.01)
    assert scores["cbm"] == pytest.approx(scores["cbm_floor"], abs=0.02)
    assert abs(scores["ami"]) < 0.05


def test_every_phrase_of_a_holistic_language_has_its_own_message() -> None:
    rules = Rules.of(make_world("thing", attributes=3, values=4), 2)
    codes = Holistic(rules).table
    assert len(torch.unique(codes, dim=0)) == rules.count
    assert (codes == Holistic(rules).table).all()
    with pytest.raises(InvalidSettingError, match="There are 8 messages of 1 word, too few for 16"):
        Holistic(_with_too_few_messages())


def _with_too_few_messages() -> Rules:
    rules = Rules.of(make_world("thing", attributes=2, values=4), 2)
    rules.length = 1
    return rules


def test_messages_are_understood() -> None:
    rules = Rules.of(make_world("shape", canvas=16), 3)
    ideal = Ideal(rules)
    assert (ideal.understood(ideal.words(rules.table)) == rules.table).all()


def test_oracles_have_names() -> None:
    rules = Rules.of(make_world("thing"), 1)
    assert all(make_oracle(name, rules) is not None for name in ORACLES)
    with pytest.raises(UnknownNameError, match="did you mean ideal"):
        make_oracle("ideel", rules)
