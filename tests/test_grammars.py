"""Grammars: exact values by hand, the law of each one, shared words, chains, sides and plug-ins."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.registry import list_grammars, register_grammar, registry
from icy.core.streams import stream
from icy.grammars import (
    Corruption,
    Table,
    canonical_name,
    check_side,
    expand_grammars,
    grammar_sides,
    grammar_version,
    make_language,
)
from icy.grammars.base import base_messages, base_words, digits, distinct_digits
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

BUILT_IN = ["concat", "hol", "pairsum", "perm", "proj", "rot", "shuf", "shufdet"]
CORRUPTIONS = [name for name in BUILT_IN if name not in ("concat", "hol")]
INJECTIVE = [name for name in BUILT_IN if name not in ("proj", "shuf", "hol", "shufdet")]
TOY = np.array([[1, 2, 3, 0, 2, 1]])

Sizes = tuple[MeaningSpace, int, int, int]


@st.composite
def sizes(draw: st.DrawFn) -> Sizes:
    """A small space of at least two attributes, a vocabulary and word length with enough words, and a seed."""
    space = MeaningSpace(draw(st.integers(2, 4)), draw(st.integers(1, 4)))
    vocab_size = draw(st.integers(2, 6))
    shortest = math.ceil(math.log(space.attributes * space.values + 0.5, vocab_size))
    return space, vocab_size, draw(st.integers(shortest, shortest + 2)), draw(st.integers(0, 999))


def table(space: MeaningSpace, vocab_size: int, word_length: int, seed: int, name: str) -> Table:
    return Table(space, vocab_size, word_length, stream(seed, name))


def apply(name: str, messages: NDArray[np.int64], at: Sizes) -> NDArray[np.int64]:
    corruption: Corruption = registry.get(name, "grammar").create()
    return corruption.apply(messages, table(*at, name))


def words_of(language: Language) -> NDArray[np.int64]:
    return language.messages.reshape(language.space.size, language.space.attributes, -1).astype(np.int64)


# -- exact values (reference facts, section 1: the message 12 | 30 | 21) -------------------------------------------


def test_toy_rot() -> None:
    assert apply("rot", TOY, (MeaningSpace(3, 1), 4, 2, 0)).tolist() == [[1, 3, 2, 2, 0, 1]]


def test_toy_pairsum() -> None:
    assert apply("pairsum", TOY, (MeaningSpace(3, 1), 4, 2, 0)).tolist() == [[0, 2, 1, 1, 2, 3]]


def test_digits_least_significant_first() -> None:
    assert digits(np.array([27, 6]), 4, 4).tolist() == [[3, 2, 1, 0], [2, 1, 0, 0]]
    assert digits(np.array([6]), 10, 3).tolist() == [[6, 0, 0]]


def test_base_words_are_the_digits_of_one_draw() -> None:
    drawn = stream(7, "words").choice(4**4, size=50, replace=False)
    by_hand = [[(n // 4**j) % 4 for j in range(4)] for n in drawn.tolist()]
    assert base_words(MeaningSpace(5, 10), 4, 4, 7).reshape(50, 4).tolist() == by_hand


def test_frozen_digests() -> None:
    """Languages of a seed must never change without a new version of their grammar: papers cite them."""
    digests = {name: make_language(name, "3x4", 4, 2, seed=123).digest() for name in [*BUILT_IN, "rot+perm"]}
    assert digests == FROZEN


# -- laws ----------------------------------------------------------------------------------------------------------


@given(sizes())
def test_words_are_distinct_and_messages_concatenate_them(at: Sizes) -> None:
    space, _, word_length, _ = at
    words = base_words(*at)
    assert len(np.unique(words.reshape(-1, word_length), axis=0)) == space.attributes * space.values
    messages = base_messages(*at)
    for number, meaning in enumerate(itertools.product(range(space.values), repeat=space.attributes)):
        expected = [token for a, value in enumerate(meaning) for token in words[a, value].tolist()]
        assert messages[number].tolist() == expected


@given(sizes())
def test_rot_is_inverted_by_differences(at: Sizes) -> None:
    base = base_messages(*at)
    rotated = apply("rot", base, at)
    np.testing.assert_array_equal(np.diff(rotated, axis=1, prepend=0) % at[1], base)


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


@given(sizes())
def test_perm_is_one_permutation_of_positions(at: Sizes) -> None:
    space, _, word_length, _ = at
    marked = np.arange(space.attributes * word_length)[None, :].repeat(space.size, axis=0)
    permuted = apply("perm", marked, at)
    assert sorted(permuted[0].tolist()) == marked[0].tolist()
    assert (permuted == permuted[0]).all()
    np.testing.assert_array_equal(apply("perm", base_messages(*at), at), base_messages(*at)[:, permuted[0]])


@given(sizes(), st.sampled_from(["shuf", "shufdet"]))
def test_shuffles_keep_the_words(at: Sizes, name: str) -> None:
    before, after = words_of(make_language("concat", *at)), words_of(make_language(name, *at))
    weights = at[1] ** np.arange(at[2])
    np.testing.assert_array_equal(np.sort(before @ weights, axis=1), np.sort(after @ weights, axis=1))


def orders(name: str, at: Sizes) -> NDArray[np.int64]:
    """The order of words that a shuffle gives every meaning, [N, A]."""
    space, _, word_length, _ = at
    marked = np.arange(space.attributes).repeat(word_length)[None, :].repeat(space.size, axis=0)
    return apply(name, marked, at)[:, ::word_length]


@given(sizes())
def test_shufdet_order_depends_on_the_last_value_alone(at: Sizes) -> None:
    space = at[0]
    found = orders("shufdet", at)
    last = space.all()[:, -1]
    for value in range(space.values):
        assert len(np.unique(found[last == value], axis=0)) == 1


@pytest.mark.parametrize("name", ["shuf", "shufdet"])
def test_shuffles_draw_every_order_equally_often(name: str) -> None:
    at = (MeaningSpace(3, 18), 18, 2, 0) if name == "shuf" else (MeaningSpace(3, 60), 60, 2, 0)
    found = orders(name, at)
    drawn = found if name == "shuf" else found[: at[0].values]
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 6
    expected = len(drawn) / 6
    assert ((counts - expected) ** 2 / expected).sum() < 20.5  # chi-square, 5 degrees of freedom, p = 0.001


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


def test_shufdet_equals_a_plain_loop() -> None:
    at = (MeaningSpace(3, 4), 4, 2, 11)
    words = base_words(*at)
    draws = stream(11, "shufdet").permuted(np.tile(np.arange(3), (4, 1)), axis=1)
    by_hand = []
    for meaning in itertools.product(range(4), repeat=3):
        order = draws[meaning[2]]
        by_hand.append([t for p in range(3) for t in words[order[p], meaning[order[p]]].tolist()])
    assert make_language("shufdet", *at).messages.tolist() == by_hand


def test_proj_distinct_messages_at_main_setting() -> None:
    """Reference facts, section 6: 91.6 +- 1.6 % over seeds 123-127."""
    rates = [make_language("proj", "5x10", seed=seed).facts()["fraction_distinct"] for seed in range(123, 128)]
    assert abs(np.mean(rates) - 0.916) < 3 * 0.016


@settings(max_examples=25)
@given(sizes(), st.sampled_from(INJECTIVE))
def test_injective_grammars_keep_messages_distinct(at: Sizes, name: str) -> None:
    assert make_language(name, *at).distinct_messages == at[0].size


# -- hol -----------------------------------------------------------------------------------------------------------


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
    with pytest.raises(InvalidSettingError, match="100 meanings, and there are only 16 messages"):
        make_language("hol", "2x10", 2, 2)


# -- seeds ---------------------------------------------------------------------------------------------------------


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


# -- names, chains and sides ---------------------------------------------------------------------------------------


def test_chain_equals_composition_by_hand() -> None:
    at = (MeaningSpace(3, 5), 4, 4, 5)
    by_hand = apply("perm", apply("rot", base_messages(*at), at), at)
    chain = make_language("rot+perm", *at)
    np.testing.assert_array_equal(chain.messages, by_hand)
    assert chain.name == "rot+perm"
    assert make_language("perm+rot", *at).digest() != chain.digest()


def test_second_use_in_a_chain_draws_anew() -> None:
    at = (MeaningSpace(3, 5), 4, 4, 5)
    once = apply("perm", base_messages(*at), at)
    twice = make_language("perm+perm", *at).messages
    assert not np.array_equal(twice, apply("perm", once, at))
    np.testing.assert_array_equal(twice, once[:, stream(5, "perm", 2).permutation(12)])


@pytest.mark.parametrize(
    ("given_name", "canonical"),
    [
        ("comp", "concat"),
        ("compositional", "concat"),
        ("holistic", "hol"),
        ("grammar/rot", "rot"),
        ("rot+ perm", "rot+perm"),
    ],
)
def test_canonical_names(given_name: str, canonical: str) -> None:
    assert canonical_name(given_name) == canonical
    assert make_language(given_name, "2x3").name == canonical


def test_near_miss() -> None:
    with pytest.raises(UnknownNameError, match="did you mean shufdet"):
        make_language("shufde", "2x3")
    with pytest.raises(UnknownNameError, match="did you mean perm"):
        canonical_name("rot+perms")


@pytest.mark.parametrize("name", ["hol+rot", "rot+comp", "concat+rot"])
def test_only_corruptions_are_chained(name: str) -> None:
    with pytest.raises(IncompatibleError, match="cannot be part of the chain"):
        make_language(name, "2x3")


@pytest.mark.parametrize("name", ["rot+", "+rot", "rot++perm"])
def test_broken_chains(name: str) -> None:
    with pytest.raises(InvalidSettingError, match="join names by"):
        canonical_name(name)


def test_sides() -> None:
    assert grammar_sides("shuf") == grammar_sides("rot+shuf") == ("receiver",)
    assert grammar_sides("shufdet") == grammar_sides("hol") == ("sender", "receiver")
    check_side("shuf", "receiver")
    with pytest.raises(IncompatibleError, match="'shuf' is for receivers only, not for a sender"):
        check_side("shuf", "sender")
    with pytest.raises(InvalidSettingError, match="'speaker' is not a side"):
        check_side("rot", "speaker")


def test_expand() -> None:
    assert expand_grammars("all", "receiver") == list_grammars()
    assert expand_grammars(["all"], "sender") == [name for name in list_grammars() if "sender" in grammar_sides(name)]
    assert expand_grammars(["rot", "comp", "sh*", "perm+rot", "rot"], "sender") == [
        "rot",
        "concat",
        "shufdet",
        "perm+rot",
    ]
    for explicit in ("shuf", "rot+shuf", "shu[f]"):
        with pytest.raises(IncompatibleError, match="not for a sender"):
            expand_grammars([explicit], "sender")
    with pytest.raises(UnknownNameError):
        expand_grammars(["zzz*"], "sender")


def test_versions() -> None:
    assert grammar_version("rot") == "1"
    assert grammar_version("rot+perm") == "1+1"


def test_every_card_is_filled_in() -> None:
    for name in BUILT_IN:
        entry = registry.get(name, "grammar")
        assert entry.description
        assert "Icy22" in entry.source


# -- sizes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILT_IN)
def test_main_setting_is_fast(name: str) -> None:
    started = time.process_time()
    language = make_language(name, "5x10", seed=123)
    assert time.process_time() - started < 4  # well under one second on an idle machine
    assert language.messages.shape == (100_000, 20)
    assert language.messages.nbytes == 2_000_000


def test_too_few_words() -> None:
    with pytest.raises(InvalidSettingError, match="needs 50 different words, and there are only 16 of length 2 over a"):
        make_language("rot", "5x10", 4, 2)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"word_length": 0}, "word length must be a whole number, at least 1, not 0"),
        ({"word_length": 2.0}, "word length"),
        ({"vocab_size": 1}, "vocabulary size must be a whole number, at least 2, not 1"),
        ({"vocab_size": -4}, "vocabulary size"),
        ({"seed": 0.5}, "seed must be a whole number"),
    ],
)
@pytest.mark.parametrize("name", ["rot", "hol"])
def test_impossible_settings(name: str, options: dict[str, int], sentence: str) -> None:
    with pytest.raises(InvalidSettingError, match=sentence):
        make_language(name, "2x3", **options)


@pytest.mark.parametrize("name", BUILT_IN)
def test_too_large_is_refused_at_once(name: str) -> None:
    with pytest.raises(InvalidSettingError, match="is available; take fewer"):
        make_language(name, "12x10", 10, 4)


def test_proj_matrix_too_large() -> None:
    with pytest.raises(InvalidSettingError, match="matrix of proj needs about"):
        make_language("proj", "2x3", vocab_size=10**6, word_length=2)


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


@given(st.integers(0, 99))
def test_distinct_digits_can_exhaust_the_numbers(seed: int) -> None:
    rows = distinct_digits(np.random.default_rng(seed), 27, 3, 3)
    assert sorted(map(tuple, rows.tolist())) == sorted(itertools.product(range(3), repeat=3))


# -- plug-ins ------------------------------------------------------------------------------------------------------


@pytest.fixture
def plug_ins() -> Iterator[None]:
    """Three grammars of a stranger, gone after the test."""
    registry.load_all()
    before = dict(registry._entries)

    @register_grammar("mirror", description="Reads backwards.")
    class Mirror(Corruption):
        sides: ClassVar[tuple[str, ...]] = ("sender",)

        def apply(self, messages: NDArray[np.int64], table: Table) -> NDArray[np.int64]:
            return messages[:, ::-1]

    @register_grammar("plain")
    def plain(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> NDArray[np.int64]:
        """Says one token again and again."""
        return np.full((space.size, space.attributes * word_length), seed % vocab_size)

    @register_grammar("short")
    def short(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Language:
        return Language(space, np.zeros((space.size, 1), dtype=int), vocab_size)

    @register_grammar("wild")
    def wild(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> NDArray[np.int64]:
        return np.full((space.size, space.attributes * word_length), vocab_size)

    yield
    registry._entries.clear()
    registry._entries.update(before)


@pytest.mark.usefixtures("plug_ins")
def test_plug_ins() -> None:
    concat = make_language("concat", "2x3", seed=3)
    np.testing.assert_array_equal(make_language("mirror+mirror", "2x3", seed=3).messages, concat.messages)
    assert make_language("plain", "2x3", seed=3).messages.tolist() == [[3] * 8] * 9
    assert make_language("plain", "2x3", seed=3).name == "plain"
    assert registry.get("plain", "grammar").description == "Says one token again and again."
    with pytest.raises(IncompatibleError, match="for senders only"):
        check_side("mirror", "receiver")
    with pytest.raises(IncompatibleError, match="no side"):
        check_side("mirror+shuf", "receiver")
    with pytest.raises(InvalidSettingError, match=r"'short' was asked for 2x3.* of 8 tokens; it made 2x3, 4 and 1"):
        make_language("short", "2x3")
    with pytest.raises(InvalidSettingError, match="'wild' returned something that is no language"):
        make_language("wild", "2x3")


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
