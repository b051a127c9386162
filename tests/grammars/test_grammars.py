"""All built-in grammars: frozen digests, seeds, and the settings they take."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import registry
from icy.grammars import make_language
from icy.grammars.grammar import ABSENT, base_words
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from tests.grammars.helpers import BUILT_IN, CORRUPTIONS, Sizes, apply, sizes

INJECTIVE = [name for name in BUILT_IN if name not in ("proj", "shuf", "hol", "shufdet")]

# -- exact values (reference facts, section 1: the message 12 | 30 | 21) -----------------------------------------------


def test_frozen_digests() -> None:
    """Languages of a seed must never change without a new version of their grammar: papers cite them."""
    digests = {name: make_language(name, "3x4", 4, 2, seed=123).digest() for name in [*BUILT_IN, "rot+perm"]}
    assert digests == FROZEN


@pytest.mark.slow
@pytest.mark.parametrize("sizes", ["5x10 4 4", "4x5 7 2", "2x40 300 2"])
def test_frozen_digests_at_other_sizes(sizes: str) -> None:
    """At the papers' sizes, with chains and with a large vocabulary: what is made block by block, in many blocks."""
    space, vocab_size, word_length = sizes.split()
    made = {
        name: " ".join(make_language(name, space, int(vocab_size), int(word_length), seed).digest() for seed in (0, 7))
        for name in [*BUILT_IN, *CHAINS]
    }
    assert made == FROZEN_AT[sizes]


# -- laws --------------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(sizes(), st.sampled_from(INJECTIVE))
def test_injective_grammars_keep_messages_distinct(at: Sizes, name: str) -> None:
    assert make_language(name, *at).distinct_messages == at[0].size


# -- seeds -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILT_IN)
def test_same_seed_same_language_other_seed_another(name: str) -> None:
    one, again, other = (make_language(name, "3x5", seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one.digest() != other.digest()
    assert one.name == name


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_all_grammars_of_a_seed_share_their_words(name: str) -> None:
    space = MeaningSpace.parse("3x5")
    base = make_language("concat", space, seed=9).messages.astype(np.int64)
    np.testing.assert_array_equal(make_language(name, space, seed=9).messages, apply(name, base, (space, 4, 4, 9)))


def test_global_random_state_does_not_matter() -> None:
    np.random.seed(0)
    one = make_language("proj+shuf", "3x5", seed=1)
    np.random.seed(1)
    assert make_language("proj+shuf", "3x5", seed=1) == one


# -- names, chains and sides -------------------------------------------------------------------------------------------


def test_every_card_is_filled_in() -> None:
    for name in BUILT_IN:
        entry = registry.get(name, "grammar")
        assert entry.description
        assert "Icy22" in entry.source


# -- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILT_IN)
def test_main_setting_is_fast(name: str) -> None:
    started = time.process_time()
    language = make_language(name, "5x10", seed=123)
    assert time.process_time() - started < 4  # well under one second on an idle machine
    assert language.messages.shape == (100_000, 20)
    assert language.messages.nbytes == 2_000_000


@pytest.mark.parametrize("name", BUILT_IN)
def test_too_large_is_refused_at_once(name: str) -> None:
    with pytest.raises(InvalidSettingError, match="is available; take fewer"):
        make_language(name, "12x10", 10, 4)


def test_one_attribute() -> None:
    with pytest.raises(IncompatibleError, match="'pairsum' needs at least 2 attributes; 1x4 has 1"):
        make_language("pairsum", "1x4")
    for name in ("concat", "perm", "proj", "rot", "shuf", "shufdet", "hol"):
        assert make_language(name, "1x4").messages.shape == (4, 4)


def test_words_beyond_64_bits() -> None:
    language = make_language("rot", "2x3", vocab_size=np.int64(1000), word_length=np.int64(30))  # type: ignore[arg-type]
    assert language.messages.shape == (9, 60)
    assert language.distinct_messages == 9
    assert make_language("hol", "2x3", vocab_size=1000, word_length=30).distinct_messages == 9


# -- plug-ins ----------------------------------------------------------------------------------------------------------

FROZEN = {
    "concat": "f3130498556505ce",
    "hol": "3b7b6c84b9879c60",
    "pairsum": "2af402addcc282fe",
    "perm": "2ef7eefd2c37088e",
    "proj": "fffe0ed161567ca2",
    "rot": "d906b259c3199e1b",
    "shuf": "4e5468262f7e529e",
    "shufdet": "02e4159eb1ce71f0",
    "rot+perm": "0d5648a66a1fc173",
}
CHAINS = ["rot+perm", "perm+proj", "proj+proj", "shuf+proj"]
FROZEN_AT = {  # of seeds 0 and 7
    "5x10 4 4": {
        "concat": "42d65a95c80bd4fd e840e7739334682e",
        "hol": "6c85e22e99f3ba42 6677988fd4cb1c7e",
        "pairsum": "5ab70e735b3998a7 734508f672e271a6",
        "perm": "f11569ad746029c1 d5b259983e4956b8",
        "proj": "815a4a1ca42b24fd baad77d577ef1c4f",
        "rot": "84c157c926389c90 cd1ebb58c8ebd229",
        "shuf": "96f202dd7498c1fc aa8ce51d4a17e0c9",
        "shufdet": "900a7d887056b270 cdb503001502a593",
        "rot+perm": "7f1af67abdb7730d 9af99d536402c387",
        "perm+proj": "0bc4eac99cccc086 30b28a691a8dde37",
        "proj+proj": "b28d63b986c2fa81 14479fd8efbde38c",
        "shuf+proj": "caf6fdaed09f4491 d0aa83791d1ba033",
    },
    "4x5 7 2": {
        "concat": "fdfb995d6b2ed536 a55c46f17eea215d",
        "hol": "39607a74f464555f 9c7de62709e34600",
        "pairsum": "b56a4d09fd25f627 a73bb2444349c65a",
        "perm": "cf6c5fce8efb39fc 2666e4cd84da1499",
        "proj": "0c22f59e50628bd1 680e7316b1b6d8c2",
        "rot": "b25534056336a9b0 b63a924a5c3c9437",
        "shuf": "d9b4ee1bbad8486f 9376e6fe3a5c5d03",
        "shufdet": "5b1cefb604446806 0cbc36588fbdeca3",
        "rot+perm": "c80df52e733f1866 9b7d36841918983e",
        "perm+proj": "359d9117d435925a 22c68b590d03d8c5",
        "proj+proj": "102814c1da5086a1 bbcbc5ed1a8440b7",
        "shuf+proj": "3be3484a8eb98d30 4e986949243ed756",
    },
    "2x40 300 2": {
        "concat": "2604102b12bbcdf7 8847385ea8af8f6d",
        "hol": "ccc1ab1910dc7b1e 10bb2e1547f58307",
        "pairsum": "86d4968eb950c541 6f254afe6060a95a",
        "perm": "2604102b12bbcdf7 50d182385d5cc622",
        "proj": "d55386e863cd1dc2 eaf9a14d42a75ee9",
        "rot": "b0c5960a73910b39 d8bea3562c3d778f",
        "shuf": "b0f0061195ca7cba 8ec1e335313cd814",
        "shufdet": "8e9f2a7bddbe2ec4 4a962c64ef430390",
        "rot+perm": "b0c5960a73910b39 f3a3e92e073eeea8",
        "perm+proj": "d55386e863cd1dc2 8e7fd4269d1781b8",
        "proj+proj": "ab58eeab73eeadfd 0983d2d9a2b72394",
        "shuf+proj": "0a04b4b1ad6744f9 6c1cc35ef46e7e72",
    },
}


# -- grammars on spaces whose attributes have different numbers of values ----------------------------------------------


SPACES = st.lists(st.integers(1, 5), min_size=2, max_size=4).map(lambda sizes: MeaningSpace.of_sizes(*sizes))
SEEDS = st.integers(0, 30)
WORD_LENGTH = 3
KEEP_THE_MEANING = ["perm", "rot", "pairsum", "shuf", "shufdet", "hol", "rot+perm", "shufdet+pairsum"]


def words_of_one(language: Language) -> np.ndarray:
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
    np.testing.assert_array_equal(words_of_one(made("concat", space, seed)), of_meanings)


@given(SPACES, SEEDS, st.sampled_from(KEEP_THE_MEANING))
def test_grammars_that_keep_the_meaning_have_a_message_for_each(space: MeaningSpace, seed: int, grammar: str) -> None:
    assert made(grammar, space, seed).distinct_messages == space.size


@given(SPACES, SEEDS)
def test_shufdet_orders_words_by_the_value_of_the_last_attribute(space: MeaningSpace, seed: int) -> None:
    plain, shuffled = words_of_one(made("concat", space, seed)), words_of_one(made("shufdet", space, seed))
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
