"""Residual entropy and HCE: exact searches, ties, and the published tables."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icy.metrics import Table, hce, residual_entropy
from icy.metrics.residual import _residual

Languages = dict[str, np.ndarray]


def by_hand(meanings: np.ndarray, messages: np.ndarray, normalised: bool) -> float:
    """The definition: every assignment of a position to an attribute."""
    table = Table.of(meanings, messages)
    least = np.inf
    for owners in itertools.product(range(table.attributes), repeat=table.length):
        parts = [[table.positions[j] for j in range(table.length) if owners[j] == a] for a in range(table.attributes)]
        left = [_residual(f, part, normalised) for f, part in zip(table.factors, parts, strict=True)]
        least = min(least, float(np.mean(left)))
    return least


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(0, 5), st.booleans())
def test_the_exhaustive_search_finds_the_least(seed: int, attributes: int, length: int, normalised: bool) -> None:
    random = np.random.default_rng(seed)
    meanings, messages = random.integers(3, size=(12, attributes)), random.integers(3, size=(12, length))
    found = residual_entropy(meanings, messages, normalised=normalised)
    assert found.value == pytest.approx(by_hand(meanings, messages, normalised), abs=1e-8)
    assert sorted(j for group in found.details["positions"] for j in group) == list(range(length))


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 5))
def test_relations_between_searches(seed: int, attributes: int, length: int) -> None:
    random = np.random.default_rng(seed)
    meanings, messages = random.integers(3, size=(20, attributes)), random.integers(3, size=(20, length + 1))
    least, greedy = residual_entropy(meanings, messages), residual_entropy(meanings, messages, search="greedy")
    human = hce(meanings, messages).value
    assert human == 1 - greedy.value
    assert greedy.value >= least.value - 1e-8
    assert 0 <= least.value <= 1
    # One more position never hurts.
    assert residual_entropy(meanings, messages[:, :-1]).value >= least.value - 1e-8
    assert hce(meanings, messages[:, :-1]).value <= human + 1e-9


def test_ties_go_to_the_first_attribute() -> None:
    """In 2x2 a token that is a xor b tells nothing of either attribute alone."""
    meanings = list(itertools.product(range(2), repeat=2))
    score = hce(meanings, [(a ^ b, b) for a, b in meanings])
    assert score.details["positions"] == [[0], [1]]
    assert score.value == 0.5


def test_a_constant_attribute_counts_as_known() -> None:
    meanings = [(0, b) for b in range(3)]
    assert hce(meanings, [[7], [7], [7]]).value == 0.5
    assert residual_entropy(meanings, [[7], [7], [7]]).value == 0.5


def test_empty_messages_tell_nothing() -> None:
    for search in ("exhaustive", "greedy", "resnick"):
        assert residual_entropy([[0], [1]], ["", ""], search=search).value == 1


def authors_languages(attributes: int, values: int, vocabulary: int, word: int, seed: int) -> Languages:
    """The languages of the authors' generator that depend on the seed alone (icy-facts 1)."""

    def digits(index: np.ndarray, length: int) -> np.ndarray:
        return np.stack([index // vocabulary**j % vocabulary for j in range(length)], -1)

    grid, length = np.array(list(itertools.product(range(values), repeat=attributes))), attributes * word
    drawn = np.random.RandomState(seed).choice(vocabulary**word, attributes * values, replace=False)
    comp = digits(drawn, word).reshape(attributes, values, word)[np.arange(attributes), grid].reshape(len(grid), -1)
    many = vocabulary**length / len(grid) >= 1000
    whole = np.random.RandomState(seed).choice(vocabulary**length, len(grid), replace=many)
    return {"comp": comp, "perm": comp[:, ::-1], "rot": comp.cumsum(1) % vocabulary, "hol": digits(whole, length)}


TABLE_9 = {  # greedy, resnick, exhaustive: in bits
    "comp": (0, 0, 0), "perm": (0, 0, 0), "rot": (0.5510, 0.5510, 0), "hol": (0.5728, 0.5616, 0.2672)
}  # fmt: skip
TABLE_10 = {  # exhaustive, greedy: normalised
    "comp": (0, 0), "perm": (0, 0), "rot": (0.0814, 0.3867), "hol": (0.4954, 0.6183)
}  # fmt: skip


@pytest.mark.slow
def test_published_table_9() -> None:
    """Icy22 appendix, table 9, where the generator depends on the seed alone, and its defective column mended."""
    meanings = list(itertools.product(range(5), repeat=2))
    found: dict[str, list[Any]] = {name: [] for name in TABLE_9}
    for seed in range(123, 128):
        for name, messages in authors_languages(2, 5, 2, 5, seed).items():
            searches = ("greedy", "resnick", "exhaustive")
            scores = [residual_entropy(meanings, messages, search=s, normalised=False).value for s in searches]
            found[name].append(scores)
    for name, expected in TABLE_9.items():
        assert np.mean(found[name], 0) == pytest.approx(expected, abs=5.1e-5), name


def test_published_table_10() -> None:
    """Icy22 appendix, table 10; and the other metrics of the same run (metrics-facts 12)."""
    from icy.metrics import bosdis, posdis, topsim

    meanings = list(itertools.product(range(4), repeat=3))
    others = {"comp": (0.859, 1, 0.184), "rot": (0.306, 0.428, 0.072), "hol": (0.041, 0.025, 0.034)}
    found: dict[str, list[Any]] = {name: [] for name in TABLE_10}
    for seed in range(123, 128):
        for name, messages in authors_languages(3, 4, 4, 2, seed).items():
            table = Table.of(meanings, messages, vocab_size=4)
            found[name].append(
                [
                    residual_entropy(table).value,
                    1 - hce(table).value,
                    topsim(table, message="hamming", pairs="ordered").value,
                    posdis(table, constant="zero").value,
                    bosdis(table, constant="zero").value,
                ]
            )
    for name, expected in TABLE_10.items():
        assert np.mean(found[name], 0)[:2] == pytest.approx(expected, abs=5.1e-5), name
    for name, rest in others.items():
        assert np.mean(found[name], 0)[2:] == pytest.approx(rest, abs=5.1e-4), name
