"""The grammar hol."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError
from icy.grammars import (
    make_language,
)


@given(st.integers(0, 50))
def test_hol_is_without_replacement_when_messages_are_few(seed: int) -> None:
    assert make_language("hol", "2x4", 2, 2, seed).distinct_messages == 16  # all 2^4 messages, each once
    assert make_language("hol", "2x5", 6, 3, seed).distinct_messages == 25


def test_hol_is_with_replacement_when_there_are_many() -> None:
    # 10^4 meanings, 4^12 messages: 1678 per meaning; 2.98 pairs are expected to coincide at each seed.
    repeats = sum(10**4 - make_language("hol", "2x100", 4, 6, seed).distinct_messages for seed in range(12))
    assert 12 * 2.98 - 18 < repeats < 12 * 2.98 + 18


def test_hol_uses_every_token_at_every_position() -> None:
    messages = make_language("hol", "5x10").messages
    counts = np.stack([(messages == token).sum(axis=0) for token in range(4)])
    assert (np.abs(counts - 25_000) < 5 * np.sqrt(1e5 * 3 / 16)).all()


def test_hol_needs_as_many_messages_as_meanings() -> None:
    with pytest.raises(InvalidSettingError, match="100 meanings, but a length of 4 gives only 16 messages"):
        make_language("hol", "2x10", 2, 2)
