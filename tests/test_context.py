"""Context independence, by co-occurrence and by alignment."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icy
from icy.errors import IcyError
from icy.metrics import context_independence

TWO = list(itertools.product(range(2), repeat=2))


def by_hand(meanings: np.ndarray, messages: list[list[int]]) -> float:
    """The definition, by dictionaries."""
    counts: dict[Any, dict[int, int]] = {}
    for meaning, message in zip(meanings.tolist(), messages, strict=True):
        for concept in enumerate(meaning):
            for token in message:
                counts.setdefault(concept, {}).setdefault(token, 0)
                counts[concept][token] += 1
    totals: dict[int, int] = {}
    for of_one in counts.values():
        for token, n in of_one.items():
            totals[token] = totals.get(token, 0) + n
    concepts = {concept for meaning in meanings.tolist() for concept in enumerate(meaning)}
    products = []
    for concept in concepts:
        of_one = counts.get(concept, {})
        most = max(of_one.values(), default=0)
        found = [n / sum(of_one.values()) * n / totals[token] for token, n in of_one.items() if n == most]
        products.append(max(found, default=0))
    return float(np.mean(products))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 20))
def test_it_is_the_definition(seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    meanings = random.integers(3, size=(rows, 2))
    messages = [random.integers(4, size=random.integers(0, 4)).tolist() for _ in range(rows)]
    if any(messages):
        assert context_independence(meanings, messages).value == pytest.approx(by_hand(meanings, messages), abs=1e-9)


def test_ties() -> None:
    messages = [(1 + a, 3 + b, 0) for a, b in TWO]
    assert context_independence(TWO, messages).value == pytest.approx(1 / 6)
    assert context_independence(TWO, messages, ties="lowest").value == pytest.approx(1 / 12)
    assert context_independence(TWO, messages, eos=0).value == pytest.approx(1 / 4)


def test_alignment_restores_what_co_occurrence_loses() -> None:
    meanings = icy.MeaningSpace(3, 4).all()
    messages = meanings + 4 * np.arange(3)
    score = context_independence(meanings, messages, alignment="em")
    assert score.details["converged"]
    assert score.value == pytest.approx(1, abs=1e-3)
    frame = score.details["concepts"]
    assert (frame["token"] == frame["value"] + 4 * frame["attribute"]).all()
    assert context_independence(meanings, messages).value == pytest.approx(1 / 9)
    assert context_independence(meanings, np.tile(messages, (1, 2)), alignment="em").value == pytest.approx(1, abs=1e-3)
    noise = np.random.default_rng(0).integers(12, size=messages.shape)
    assert context_independence(meanings, noise, alignment="em").value < 0.6


def test_alignment_counts_copies() -> None:
    random = np.random.default_rng(1)
    meanings, messages = random.integers(3, size=(15, 2)), random.integers(4, size=(15, 3))
    once = context_independence(meanings, messages, alignment="em").value
    thrice = context_independence(np.tile(meanings, (3, 1)), np.tile(messages, (3, 1)), alignment="em").value
    assert thrice == pytest.approx(once, abs=1e-9)


def test_smoothing_of_the_common_form() -> None:
    plain, smooth = (context_independence(TWO, TWO, smoothing=s).value for s in (0, 1e-7))
    assert plain == 0.28125
    assert smooth == pytest.approx(plain, abs=1e-6)
    assert smooth != plain


def test_mistakes_and_silence() -> None:
    for options, sentence in (
        ({"alignment": "ibm"}, "No alignment is called 'ibm'"),
        ({"ties": "first"}, "No rule for ties is called 'first'"),
        ({"smoothing": -1}, "at least 0"),
    ):
        with pytest.raises(IcyError, match=sentence):
            context_independence(TWO, TWO, **options)  # type: ignore[arg-type]
    silent = context_independence([[0], [1]], ["", ""])
    assert math.isnan(silent.value)
    assert "empty" in silent.why
