"""Grammars on spaces whose attributes have different numbers of values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError
from icy.grammars import make_language
from icy.grammars.grammar import ABSENT, base_words
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

SPACES = st.lists(st.integers(1, 5), min_size=2, max_size=4).map(lambda sizes: MeaningSpace.of_sizes(*sizes))
SEEDS = st.integers(0, 30)
WORD_LENGTH = 3
KEEP_THE_MEANING = ["perm", "rot", "pairsum", "shuf", "shufdet", "hol", "rot+perm", "shufdet+pairsum"]


def words_of(language: Language) -> np.ndarray:
    return language.messages.reshape(language.space.size, language.space.attributes, WORD_LENGTH)


def made(grammar: str, space: MeaningSpace, seed: int) -> Language:
    return make_language(grammar, space, 4, WORD_LENGTH, seed)


@given(SPACES, SEEDS)
def test_concat_has_a_word_for_each_value_that_exists(space: MeaningSpace, seed: int) -> None:
    words = base_words(space, 4, WORD_LENGTH, seed)
    assert (words[~space.existing] == ABSENT).all()
    used = words[space.existing]
    assert len(np.unique(used, axis=0)) == len(used) == sum(space.size_of_each)
    of_meanings = words[np.arange(space.attributes), space.all()]
    np.testing.assert_array_equal(words_of(made("concat", space, seed)), of_meanings)


@given(SPACES, SEEDS, st.sampled_from(KEEP_THE_MEANING))
def test_grammars_that_keep_the_meaning_have_a_message_for_each(space: MeaningSpace, seed: int, grammar: str) -> None:
    assert made(grammar, space, seed).distinct_messages == space.size


@given(SPACES, SEEDS)
def test_shufdet_orders_words_by_the_value_of_the_last_attribute(space: MeaningSpace, seed: int) -> None:
    plain, shuffled = words_of(made("concat", space, seed)), words_of(made("shufdet", space, seed))
    last = space.all()[:, -1]
    for value in range(space.size_of_each[-1]):
        (rows,) = np.nonzero(last == value)
        order = [int((shuffled[rows[0], slot] == plain[rows[0]]).all(-1).argmax()) for slot in range(space.attributes)]
        np.testing.assert_array_equal(shuffled[rows], plain[rows][:, order])


@pytest.mark.parametrize("grammar", ["proj", "shuf", "hol"])
def test_other_grammars_have_a_message_of_the_right_length(grammar: str) -> None:
    language = made(grammar, MeaningSpace.parse("10,4,2"), 5)
    assert language.messages.shape == (80, 9)
    assert (language.distinct_messages == 80) is (grammar != "proj")


def test_the_vocabulary_needs_a_word_for_each_value_only() -> None:
    assert make_language("concat", "10,4,2", 4, 2).distinct_messages == 80  # 16 words for 16 values
    with pytest.raises(InvalidSettingError, match="10,4,3 needs 17 different words"):
        make_language("concat", "10,4,3", 4, 2)


def test_words_of_the_user_may_have_anything_at_missing_values() -> None:
    words = np.array([[[0], [1], [2]], [[3], [4], [9]]])
    language = make_language("concat", "3,2", 5, 1, words=words)
    assert language.messages.tolist() == [[0, 3], [0, 4], [1, 3], [1, 4], [2, 3], [2, 4]]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_files_keep_the_sizes(suffix: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    language = made("rot", MeaningSpace.parse("4,2,3"), 1)
    assert Language.load(language.save(tmp_path / f"own{suffix}")) == language
    assert Language.from_table(language.space.all(), language.messages, vocab_size=4).space == language.space
