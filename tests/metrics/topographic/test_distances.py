"""Distances of meanings and messages."""

from __future__ import annotations

import math

import pytest
from rapidfuzz.distance import Levenshtein

import icy
from icy.core.errors import InvalidSettingError
from icy.metrics import topsim


def test_a_function_is_a_distance() -> None:
    language = icy.make_language("shufdet", "2x4", 3, 3, 1)
    edit = topsim(language)
    own = topsim(
        language,
        meaning=lambda a, b: float((a != b).sum()),
        message=lambda a, b: Levenshtein.distance(a.tolist(), b.tolist()),
    )
    assert own.value == pytest.approx(edit.value, abs=1e-12)
    assert own.conventions["message"] == "<lambda>"


def test_distances_that_cannot_be() -> None:
    with pytest.raises(InvalidSettingError, match="take the distance euclidean or cosine"):
        topsim([[0.5], [1]], [[0], [1]])
    with pytest.raises(InvalidSettingError, match="not finite"):
        topsim([[0], [1]], [[0], [1]], meaning=lambda a, b: math.inf)
