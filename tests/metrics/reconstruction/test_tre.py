"""Tree reconstruction error: conventions, drawn rows, and mistakes."""

from __future__ import annotations

import math

import pytest

import icy
from icy.core.errors import IcyError
from icy.metrics import tre
from tests.metrics.reconstruction.helpers import THREE, TWO


def test_conventions_have_what_moves_the_value() -> None:
    trained = tre(TWO, TWO, composition="linear", restarts=1, steps=3).conventions
    assert {"restarts": 1, "steps": 3, "learning_rate": 0.05, "optimizer": "adam", "seed": 0}.items() <= trained.items()
    drawn = tre(THREE, THREE, rows=5, seed=2)
    assert (drawn.conventions["rows"], drawn.conventions["seed"]) == (5, 2)
    assert "seed" not in tre(TWO, TWO).conventions


def test_drawn_rows_have_a_standard_error() -> None:
    language = icy.make_language("proj", "3x5", 4, 2, 1)
    whole = tre(language)
    drawn = [tre(language, rows=60, seed=seed, composition="permutation") for seed in range(8)]
    assert whole.error is None
    assert {score.details["rows"] for score in drawn} == {60}
    assert all(score.error is not None and 0 < score.error < 0.5 for score in drawn)
    assert len({score.value for score in drawn}) > 1
    assert tre(language, rows=60, seed=3).value == tre(language, rows=60, seed=3).value


def test_the_error_of_drawn_rows_by_hand() -> None:
    """Of rows that err by 0 or 2; with all but one of them drawn, little is left to chance."""
    score = tre([[0]] * 10 + [[1]], [[0]] * 6 + [[1]] * 5, composition="permutation", rows=10)
    wrong = score.value * 10 / 2
    assert round(wrong, 9) in (3, 4)
    variance = (wrong * (2 - score.value) ** 2 + (10 - wrong) * score.value**2) / 9
    assert score.error == pytest.approx(math.sqrt(variance / 10 * (1 - 10 / 11)))


def test_undefined_and_unfit_tables() -> None:
    assert "empty" in tre([[0], [1]], ["", ""]).why
    assert "any composition reconstructs" in tre([[0], [1]], ["ab", "ab"]).why
    assert tre([[0, 1]], [[2, 3]]).why == "no attribute ever changes"
    with pytest.raises(IcyError, match="discrete attributes"):
        tre([[0.5], [1]], ["a", "b"])


def test_large_tokens_take_no_extra_memory() -> None:
    large = [[token * 10**9 for token in message] for message in TWO]
    for options in ({}, {"composition": "permutation"}, {"composition": "linear", "restarts": 1, "steps": 3}):
        assert tre(TWO, large, **options).value == tre(TWO, TWO, **options).value  # type: ignore[arg-type]
    with pytest.raises(IcyError, match="number the tokens from 0 without gaps"):
        tre(TWO, large, preset="published")
