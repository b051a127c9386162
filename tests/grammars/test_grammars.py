"""All built-in grammars: frozen digests, seeds, and the settings they take."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import registry
from icy.grammars import (
    make_language,
)
from icy.languages.meanings import MeaningSpace
from tests.grammars.helpers import BUILT_IN, CORRUPTIONS, Sizes, apply, sizes

INJECTIVE = [name for name in BUILT_IN if name not in ("proj", "shuf", "hol", "shufdet")]

# -- exact values (reference facts, section 1: the message 12 | 30 | 21) -----------------------------------------------


def test_frozen_digests() -> None:
    """Languages of a seed must never change without a new version of their grammar: papers cite them."""
    digests = {name: make_language(name, "3x4", 4, 2, seed=123).digest() for name in [*BUILT_IN, "rot+perm"]}
    assert digests == FROZEN


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
