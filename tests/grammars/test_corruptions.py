"""Each grammar, by its definition."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError
from icy.core.streams import stream
from icy.grammars import WordTable, make_language, proj
from icy.grammars.grammar import base_messages, base_words, digits, distinct_digits
from icy.languages.meanings import MeaningSpace
from tests.grammars.helpers import TOY, Sizes, apply, orders, sizes, words_of

# -- words and messages that all grammars start from -------------------------------------------------------------------


def test_digits_least_significant_first() -> None:
    assert digits(np.array([27, 6]), 4, 4).tolist() == [[3, 2, 1, 0], [2, 1, 0, 0]]
    assert digits(np.array([6]), 10, 3).tolist() == [[6, 0, 0]]


def test_base_words_are_the_digits_of_one_draw() -> None:
    drawn = stream(7, "words").choice(4**4, size=50, replace=False)
    by_hand = [[(n // 4**j) % 4 for j in range(4)] for n in drawn.tolist()]
    assert base_words(MeaningSpace(5, 10), 4, 4, 7).reshape(50, 4).tolist() == by_hand


@given(st.integers(0, 99))
def test_distinct_digits_can_exhaust_the_numbers(seed: int) -> None:
    rows = distinct_digits(np.random.default_rng(seed), 27, 3, 3)
    assert sorted(map(tuple, rows.tolist())) == sorted(itertools.product(range(3), repeat=3))


# -- the grammar hol ---------------------------------------------------------------------------------------------------


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


# -- the grammar pairsum -----------------------------------------------------------------------------------------------


def test_toy_pairsum() -> None:
    assert apply("pairsum", TOY, (MeaningSpace(3, 1), 4, 2, 0)).tolist() == [[0, 2, 1, 1, 2, 3]]


@given(sizes())
def test_pairsum_is_inverted_by_back_substitution(at: Sizes) -> None:
    space, vocab_size, word_length, _ = at
    base = base_messages(*at)
    given_base = base.copy()
    words = apply("pairsum", base, at).reshape(space.size, space.attributes, word_length).copy()
    words[:, -1] -= words[:, 0]
    for a in reversed(range(space.attributes - 1)):
        words[:, a] -= words[:, a + 1]
    np.testing.assert_array_equal(words.reshape(base.shape) % vocab_size, base)
    np.testing.assert_array_equal(base, given_base)  # not changed in place


# -- the grammar perm --------------------------------------------------------------------------------------------------


@given(sizes())
def test_perm_is_one_permutation_of_positions(at: Sizes) -> None:
    space, _, word_length, _ = at
    marked = np.arange(space.attributes * word_length)[None, :].repeat(space.size, axis=0)
    permuted = apply("perm", marked, at)
    assert sorted(permuted[0].tolist()) == marked[0].tolist()
    assert (permuted == permuted[0]).all()
    np.testing.assert_array_equal(apply("perm", base_messages(*at), at), base_messages(*at)[:, permuted[0]])


# -- the grammar proj --------------------------------------------------------------------------------------------------


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


@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(2, 4),
    st.sampled_from([1, 7, 100, 10_000]),
)
def test_proj_is_the_same_in_blocks_of_any_size(
    seed: int, rows: int, length: int, vocab_size: int, scores_at_once: int
) -> None:
    """On any table, its rows in any order, with scores that are equal now and then."""
    rng = np.random.default_rng(seed)
    space = MeaningSpace(1, rows)
    messages = rng.integers(vocab_size, size=(rows, length))
    matrix = rng.integers(3, size=(length * vocab_size,) * 2) / 3
    table = WordTable(space, vocab_size, length, cast(Any, SimpleNamespace(random=lambda shape: matrix)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proj, "SCORES_AT_ONCE", scores_at_once)
        found = proj.Proj().apply(messages, table)
    total = matrix[messages[:, 0]]
    for position in range(1, length):
        total = total + matrix[position * vocab_size + messages[:, position]]
    assert found.tolist() == total.reshape(rows, length, vocab_size).argmax(axis=2).tolist()


@pytest.mark.slow
def test_proj_distinct_messages_at_main_setting() -> None:
    """Reference facts, section 6: 91.6 +- 1.6 % over seeds 123-127."""
    rates = [make_language("proj", "5x10", seed=seed).facts()["fraction_distinct"] for seed in range(123, 128)]
    assert abs(np.mean(rates) - 0.916) < 3 * 0.016


def test_proj_matrix_too_large() -> None:
    with pytest.raises(InvalidSettingError, match="matrix of proj needs about"):
        make_language("proj", "2x3", vocab_size=10**6, word_length=2)


# -- the grammar rot ---------------------------------------------------------------------------------------------------


def test_toy_rot() -> None:
    assert apply("rot", TOY, (MeaningSpace(3, 1), 4, 2, 0)).tolist() == [[1, 3, 2, 2, 0, 1]]


@given(sizes())
def test_rot_is_inverted_by_differences(at: Sizes) -> None:
    base = base_messages(*at)
    rotated = apply("rot", base, at)
    np.testing.assert_array_equal(np.diff(rotated, axis=1, prepend=0) % at[1], base)


# -- the grammars shuf and shufdet: words in another order -------------------------------------------------------------


@given(sizes(), st.sampled_from(["shuf", "shufdet"]))
def test_shuffles_keep_the_words(at: Sizes, name: str) -> None:
    before, after = words_of(make_language("concat", *at)), words_of(make_language(name, *at))
    weights = at[1] ** np.arange(at[2])
    np.testing.assert_array_equal(np.sort(before @ weights, axis=1), np.sort(after @ weights, axis=1))


@pytest.mark.parametrize("name", ["shuf", "shufdet"])
def test_shuffles_draw_every_order_equally_often(name: str) -> None:
    at = (MeaningSpace(3, 18), 18, 2, 0) if name == "shuf" else (MeaningSpace(3, 60), 60, 2, 0)
    found = orders(name, at)
    drawn = found if name == "shuf" else found[: at[0].values]
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 6
    expected = len(drawn) / 6
    assert ((counts - expected) ** 2 / expected).sum() < 20.5  # chi-square, 5 degrees of freedom, p = 0.001


# -- the grammar shufdet -----------------------------------------------------------------------------------------------


def test_shufdet_equals_a_plain_loop() -> None:
    at = (MeaningSpace(3, 4), 4, 2, 11)
    words = base_words(*at)
    draws = stream(11, "shufdet").permuted(np.tile(np.arange(3), (4, 1)), axis=1)
    by_hand = []
    for meaning in itertools.product(range(4), repeat=3):
        order = draws[meaning[2]]
        by_hand.append([t for p in range(3) for t in words[order[p], meaning[order[p]]].tolist()])
    assert make_language("shufdet", *at).messages.tolist() == by_hand
