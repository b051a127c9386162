"""Floors of concept best matching, compared with cbm-games-facts.md section 10."""

from __future__ import annotations

import math

import numpy as np
import pytest

from icy.core.errors import UnknownNameError
from icy.games.evaluation import RATES, cbm_floor, random_words

from .helpers import silent

# world, rule length, printed words: CBM, ambiguity, paraphrases, unmatched, from independent programs.
TABLE1 = [
    ("shape", 1, 11, (0.11, 0.89, 0, 0.25)),
    ("shape", 1, 26, (0.09, 0.57, 0.33, 0)),
    ("shape", 4, 16, (0.29, 0.71, 0, 0.02)),
    ("shape", 4, 26, (0.20, 0.48, 0.32, 0)),
    ("thing", 1, 18, (0.07, 0.93, 0, 0.60)),
    ("thing", 1, 50, (0.11, 0.89, 0, 0)),
    ("thing", 4, 36, (0.14, 0.86, 0, 0.26)),
    ("thing", 4, 64, (0.13, 0.67, 0.20, 0)),
]


@pytest.mark.parametrize(("world", "length", "words", "expected"), TABLE1, ids=lambda given: str(given))
def test_floors_of_the_published_rows(world: str, length: int, words: int, expected: tuple[float, ...]) -> None:
    found = cbm_floor(silent(world, length), words, length)
    rates = [found[name] for name in ("cbm", *RATES[:3])]
    assert rates == pytest.approx(expected, abs=0.015)
    assert rates[0] == pytest.approx(expected[0], abs=0.01)


@pytest.mark.slow
def test_the_holistic_floor_is_higher_with_few_phrases() -> None:
    few, many = silent("shape", 4), silent("thing", 4)
    assert cbm_floor(few, 16, 4, "phrase")["cbm"] > cbm_floor(few, 16, 4)["cbm"] + 0.15
    assert cbm_floor(many, 36, 4, "phrase")["cbm"] < cbm_floor(many, 36, 4)["cbm"] + 0.02


def test_words_of_floors_default_to_the_used_words() -> None:
    said = silent("thing", 1)
    assert cbm_floor(said)["cbm"] == cbm_floor(said, 1, 1)["cbm"]  # a single word
    assert math.isnan(cbm_floor(said, languages=0)["cbm"])
    with pytest.raises(UnknownNameError, match="No way to draw messages is called 'word'"):
        cbm_floor(said, drawn_for="word")


def test_random_words_are_reproducible_and_uniform() -> None:
    words = random_words(5000, 2, 4)
    assert (words == random_words(5000, 2, 4)).all()
    assert (words != random_words(5000, 2, 4, language=1)).any()
    assert np.bincount(words.ravel()) == pytest.approx(2500, rel=0.1)
