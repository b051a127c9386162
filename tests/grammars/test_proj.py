"""The grammar proj."""

from __future__ import annotations

import numpy as np
import pytest

from icy.core.errors import InvalidSettingError
from icy.core.streams import stream
from icy.grammars import (
    make_language,
)
from icy.grammars.base import base_messages
from icy.languages.meanings import MeaningSpace


def test_proj_equals_a_plain_loop() -> None:
    at = (MeaningSpace(3, 3), 4, 2, 11)
    base = base_messages(*at)
    matrix = stream(11, "proj").random((24, 24))
    by_hand = []
    for message in base:
        one_hot = np.zeros(24)
        for position, token in enumerate(message):
            one_hot[position * 4 + token] = 1
        scores = one_hot @ matrix
        by_hand.append([int(np.argmax(scores[t * 4 : t * 4 + 4])) for t in range(6)])
    assert make_language("proj", *at).messages.tolist() == by_hand


def test_proj_distinct_messages_at_main_setting() -> None:
    """Reference facts, section 6: 91.6 +- 1.6 % over seeds 123-127."""
    rates = [make_language("proj", "5x10", seed=seed).facts()["fraction_distinct"] for seed in range(123, 128)]
    assert abs(np.mean(rates) - 0.916) < 3 * 0.016


def test_proj_matrix_too_large() -> None:
    with pytest.raises(InvalidSettingError, match="matrix of proj needs about"):
        make_language("proj", "2x3", vocab_size=10**6, word_length=2)
