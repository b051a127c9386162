"""Filters that select the games of a report."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from icy.core.errors import InvalidSettingError
from icy.study.rows import COLUMNS, FILTERS, Filter, sensitivity, strange_answers

GOOD = {"score": 150.0, "share of the commonest answer": 0.2, "median answer time, ms": 4000.0,
        "share of answers with other letters": 0.0, "degenerate": 0.0}  # fmt: skip


def game(person: str, accuracy: float = 1.0, kind: str = "human", grammar: str = "concat", **numbers: float) -> Any:
    """The rows of a game."""
    about = {**dict.fromkeys(COLUMNS), "agent_kind": kind, "agent": kind, "protocol": "played", "preset": "clean",
             "dataset": "eng", "grammar": grammar, "instance": 0, "person": person}  # fmt: skip
    exact = {**about, "metric": "exact", "split": "held-out", "value": accuracy, "items": 3}
    return [exact, *({**about, "metric": name, "split": "game", "value": v} for name, v in numbers.items())]


def kept_people(rows: list[Any], **how: Any) -> list[str]:
    """The people that a filter keeps."""
    found = Filter(**how).select(pd.DataFrame(rows, columns=list(COLUMNS)))
    return list(dict.fromkeys(found["person"]))


def test_games_of_a_low_score_are_left_out() -> None:
    rows = [*game("a", **GOOD), *game("b", **{**GOOD, "score": 99}), *game("c", **{**GOOD, "score": 100})]
    assert kept_people(rows) == ["a", "b", "c"]
    assert kept_people(rows, least_score=100) == ["a", "c"]


@pytest.mark.parametrize(
    "bad",
    [
        {"share of the commonest answer": 0.82},
        {"median answer time, ms": 999.0},
        {"share of answers with other letters": 0.22},
    ],
    ids=str,
)
def test_rules_of_attention(bad: dict[str, float]) -> None:
    edge = {"share of the commonest answer": 0.8, "median answer time, ms": 1000.0,
            "share of answers with other letters": 0.2}  # fmt: skip
    rows = [*game("good", **GOOD), *game("edge", **{**GOOD, **edge}), *game("bad", **{**GOOD, **bad})]
    assert kept_people(rows, attention=True) == ["good", "edge"]
    assert kept_people(rows, least_score=50) == ["good", "edge", "bad"]


def test_games_with_missing_numbers_pass_and_senders_and_published_people_stay() -> None:
    sender = game("0", kind="model", **{**GOOD, "score": 3.0, "share of the commonest answer": 1.0})
    published = game("", kind="published")
    assert kept_people([*game("a", score=150.0), *sender, *published], attention=True, least_score=50) == ["a", "0", ""]


def test_games_in_degenerate_languages_are_left_out() -> None:
    rows = [*game("0", kind="model", **{**GOOD, "degenerate": 1.0}), *game("a", **GOOD), *game("", kind="published")]
    assert kept_people(rows, degenerate=False) == ["a", ""]


def test_filters_decide_per_game() -> None:
    rows = [*game("a", grammar="concat", **GOOD), *game("a", grammar="rot", **{**GOOD, "score": 1.0})]
    found = Filter(least_score=50).select(pd.DataFrame(rows, columns=list(COLUMNS)))
    assert set(found["grammar"]) == {"concat"}


def test_the_table_of_sensitivity_has_every_filter() -> None:
    rows = [
        *game("a", 1.0, **GOOD),
        *game("b", 0.0, **{**GOOD, "score": 60.0}),
        *game("c", 0.0, **{**GOOD, "score": 9}),
    ]
    found = sensitivity(pd.DataFrame(rows, columns=list(COLUMNS))).set_index("filter")
    assert list(found.index) == list(FILTERS)
    assert found["games"].to_dict() == {
        **dict.fromkeys(FILTERS, 3),
        "score of 50 and more": 2,
        "score of 100 and more": 1,
    }
    assert found.loc["all games", "concat"] == pytest.approx(1 / 3)
    assert found.loc["score of 100 and more", "concat"] == 1


def test_an_invalid_score_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="least score"):
        Filter(least_score=math.nan)


def test_letters_are_those_of_the_codes_of_the_game() -> None:
    assert strange_answers(["abab", "bbbb"], ["abab", "aXb", "", "q"]) == 2
