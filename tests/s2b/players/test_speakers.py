"""Speakers: what they say, and channels too narrow for it."""

from __future__ import annotations

from typing import Any

import pytest

from icy.core.errors import IncompatibleError
from icy.s2b import evaluate, record
from tests.s2b.players.helpers import accuracy


def test_the_cheating_language_needs_an_unpermuted_vocabulary() -> None:
    """s2b-facts 7.4."""
    assert accuracy("digital", "digital", permutation=False, vocab_size=40) > 0.999
    assert accuracy("digital", "digital", vocab_size=40) == pytest.approx(0.5, abs=0.05)
    with pytest.raises(IncompatibleError, match="continuous stimuli"):
        accuracy("digital", "digital", representation="ohe")


def test_posdis_says_values_and_the_channel_carries_them_in_parts() -> None:
    games = record("posdis", "oracle", episodes=5, length=4)
    said = [f"{a + 1} {b + 1} {c + 1} 0" for a, b, c in games[["meaning_0", "meaning_1", "meaning_2"]].to_numpy()]
    assert games["said"].tolist() == said
    parts = record("posdis", "binding", episodes=5, length=1, rounds=3)
    said = [f"{a + 1} {b + 1} {c + 1}" for a, b, c in parts[["meaning_0", "meaning_1", "meaning_2"]].to_numpy()]
    assert parts["said"].tolist() == said


@pytest.mark.parametrize(
    ("speaker", "given", "said"),
    [
        ("posdis", {"vocab_size": 4}, "a vocabulary of 5 tokens"),
        ("posdis", {"length": 2}, "messages of 3 tokens"),
        ("bosdis", {}, "a vocabulary of 15 tokens"),
        ("holistic", {"vocab_size": 1}, "at least two tokens"),
        ("holistic", {"length": 2}, "messages of 3 tokens"),
    ],
)
def test_a_channel_too_narrow_for_a_language_is_said(speaker: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(IncompatibleError, match=said):
        evaluate(speaker, "oracle", episodes=2, seeds=1, **given)
