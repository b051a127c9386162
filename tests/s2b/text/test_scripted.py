"""Scripted text models: what they must score, and that a prompt holds all that a player has seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icy.core.errors import InvalidSettingError
from icy.s2b import GameSettings, TextListener, TextSpeaker, evaluate, evaluate_text, text_model
from icy.s2b.players.speakers import DigitalSpeaker
from icy.s2b.text.prompt import FORMS, rounded
from tests.s2b.helpers import GAMES
from tests.s2b.text.helpers import RoundedNearest, decisions

WITH_NUMBERS: dict[str, dict[str, Any]] = {
    "S = O = 1": {},
    "O = 4": {"samples": 4, "most": 3},
    "S = 2": {"shots": 2, "most": 3},
    "K = 2": {"distractors": 2, "samples": 2},
    "partial": {"distractors": 2, "view": "partial"},
    "several rounds": {"rounds": 3, "length": 1, "shots": 2},
    "not descriptive": {"descriptive": False, "distractors": 1},
    "near32": {"compat": "near32", "samples": 4},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_the_oracle_is_always_right(name: str) -> None:
    rows = evaluate_text("scripted-oracle", episodes=6, seeds=2, **GAMES[name]).table()
    assert set(rows["support"]) == {1.0}
    assert set(rows["zsct"].dropna()) <= {1.0}  # a common game of one split has no query
    assert set(rows["invalid"]) == {0.0}


def test_always_yes_is_right_as_often_as_yes_is() -> None:
    rows = evaluate_text("scripted-yes", episodes=20, seeds=3).table()
    assert (rows["yes"] == 1).all()
    assert rows["zsct"].tolist() == rows["kept"].tolist()
    assert 0.4 < rows["zsct"].mean() < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_a_reader_of_the_prompt_equals_nearest_game_by_game(name: str) -> None:
    """`nearest` is shown three decimals here, as a prompt shows them, so that nothing is left to tell the two apart."""
    settings = GameSettings.of(**WITH_NUMBERS[name])
    seeds = range(40, 46)
    read = decisions(TextListener(text_model("scripted-reader#nearest")), settings, seeds)
    assert len(read) > 40
    assert read == decisions(RoundedNearest(), settings, seeds)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_the_printed_form_holds_all_that_is_needed(name: str) -> None:
    settings = GameSettings.of(**WITH_NUMBERS[name])
    read = decisions(TextListener(text_model("scripted-reader"), prompt="metarg24"), settings, range(40, 43))
    assert read == decisions(RoundedNearest(), settings, range(40, 43))


def test_a_reader_of_the_printed_form_plays_as_nearest() -> None:
    settings = GameSettings.of(most=2, vocab_size=9, length=5)
    read = decisions(TextListener(text_model("scripted-reader"), prompt="metarg24"), settings, range(2))
    assert read == decisions(RoundedNearest(), settings, range(2))


def test_three_decimals_are_as_good_as_all() -> None:
    seeds = range(300)
    settings = GameSettings(most=3)
    exact, short = (decisions(player, settings, seeds) for player in ("nearest", RoundedNearest()))
    differ = sum(one != other for one, other in zip(exact, short, strict=True))
    assert differ <= len(exact) // 1000


class RoundedDigital(DigitalSpeaker):
    """The digital speaker, shown three decimals."""

    def acting(self, seen: Any) -> Any:
        return super().acting(type(seen)(**{**vars(seen), "stimulus": rounded(seen.stimulus)}))


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"distractors": 2}, {"feedback": False}, {"masks": "near32"}], ids=str)
def test_a_speaker_that_reads_its_prompt_says_what_the_player_says(given: dict[str, Any]) -> None:
    settings = {"permutation": False, "vocab_size": 9, **given}
    usual = evaluate(RoundedDigital(), "digital", episodes=6, seeds=2, **settings)
    for form in FORMS:
        reader = TextSpeaker(text_model("scripted-reader"), prompt=form)
        found = evaluate(reader, "digital", episodes=6, seeds=2, **settings)
        assert np.array_equal(found.scores.zsct, usual.scores.zsct)
        assert np.array_equal(found.scores.support, usual.scores.support)
    assert found.scores.zsct.mean() > (0.6 if "distractors" not in given else 0.4)


def test_a_privileged_player_cannot_be_read() -> None:
    with pytest.raises(InvalidSettingError, match="oracle needs facts that a prompt does not contain"):
        evaluate_text("scripted-reader#oracle", episodes=1, seeds=1)
