"""Making languages: names, chains, sides, mistakes and plug-ins."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import icy
from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.register import list_grammars, register_grammar
from icy.core.registry import registry
from icy.core.streams import stream
from icy.grammars import (
    Corruption,
    WordTable,
    cached_language,
    canonical_name,
    check_side,
    expand_grammars,
    grammar_sides,
    grammar_version,
    languages,
    make_language,
)
from icy.grammars.grammar import base_messages, base_words
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from tests.grammars.helpers import apply

# -- names, chains and sides -------------------------------------------------------------------------------------------


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
    assert expand_grammars("shuf,rot+shuf", "sender") == ["shuf", "rot+shuf"]
    with pytest.raises(IncompatibleError, match="not for a sender"):
        expand_grammars(["shu[f]"], "sender")
    with pytest.raises(UnknownNameError):
        expand_grammars(["zzz*"], "sender")


def test_versions() -> None:
    assert grammar_version("rot") == "1"
    assert grammar_version("rot+perm") == "1+1"


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_too_few_words() -> None:
    with pytest.raises(InvalidSettingError, match="needs 50 different words, but a length of 2 gives only 16 over a"):
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


# -- plug-ins ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def plug_ins(forgetting: None) -> None:
    """Four grammars of a stranger, gone after the test."""

    @register_grammar("mirror", description="Reads backwards.")
    class Mirror(Corruption):
        sides: ClassVar[tuple[str, ...]] = ("sender",)

        def apply(self, messages: NDArray[np.int64], table: WordTable) -> NDArray[np.int64]:
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


@pytest.mark.usefixtures("plug_ins")
def test_plug_ins() -> None:
    concat = make_language("concat", "2x3", seed=3)
    np.testing.assert_array_equal(make_language("mirror+mirror", "2x3", seed=3).messages, concat.messages)
    assert make_language("plain", "2x3", seed=3).messages.tolist() == [[3] * 8] * 9
    assert make_language("plain", "2x3", seed=3).name == "plain"
    assert registry.get("plain", "grammar").description == "Says one token again and again."
    with pytest.raises(IncompatibleError, match="for senders only"):
        check_side("mirror", "receiver")
    with pytest.raises(IncompatibleError, match="cannot be learned by any side"):
        check_side("mirror+shuf", "receiver")
    with pytest.raises(InvalidSettingError, match=r"'short' should return 2x3.* of 8 tokens; it returned 2x3, 4 and 1"):
        make_language("short", "2x3")
    with pytest.raises(InvalidSettingError, match="'wild' returned something other than a language"):
        make_language("wild", "2x3")


# -- given words -------------------------------------------------------------------------------------------------------

WORDS = [[[0, 1], [2, 3]], [[1, 1], [3, 0]]]


def test_languages_of_given_words() -> None:
    language = make_language("concat", "2x2", 4, 2, words=WORDS)
    assert language.messages.tolist() == [[0, 1, 1, 1], [0, 1, 3, 0], [2, 3, 1, 1], [2, 3, 3, 0]]
    assert language == make_language("concat", "2x2", 4, 2, words=np.array(WORDS))
    assert make_language("rot", "2x2", 4, 2, words=WORDS).messages[1].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("name", ["perm", "proj", "shufdet", "rot+perm"])
def test_corruptions_of_given_words_draw_as_they_do_of_others(name: str) -> None:
    own = base_words(MeaningSpace(2, 3), 4, 2, seed=5)
    assert make_language(name, "2x3", 4, 2, 5, words=own) == make_language(name, "2x3", 4, 2, 5)


def test_holistic_languages_do_not_depend_on_words() -> None:
    assert make_language("hol", "2x2", 4, 2, words=WORDS) == make_language("hol", "2x2", 4, 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([[[0, 1], [2, 3]]], r"shape \(2, 2, 2\).*shape \(1, 2, 2\)"),
        ([[[0, 1], [2, 3]], [[1, 1], [3]]], "whole numbers of shape"),
        ([[[0, 1], [2, 3]], [[1, 1], [4, 0]]], "run from 0 to 3; found 0 to 4"),
        ([[[0, 1], [2, 3]], [[0, 1], [3, 0]]], "Two attribute values have the same word"),
        ([[[0.5, 1], [2, 3]], [[1, 1], [3, 0]]], "whole numbers"),
    ],
)
def test_words_that_cannot_be(words: Any, said: str) -> None:
    with pytest.raises(InvalidSettingError, match=said):
        make_language("concat", "2x2", 4, 2, words=words)


def test_a_function_that_takes_no_words_says_so(forgetting: None) -> None:
    def own(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
        return np.zeros((space.size, space.attributes * word_length), dtype=np.int64)

    register_grammar("own")(own)
    with pytest.raises(IncompatibleError, match=r"'own' makes its own words.*`words=None`"):
        make_language("own", "2x2", 4, 2, words=WORDS)


# -- languages that are made once --------------------------------------------------------------------------------------


SPACE = MeaningSpace(3, 4)


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is made, in order; nothing was before."""
    monkeypatch.setattr(languages, "_cache", {})
    calls: list[Any] = []

    def make(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return make_language(*arguments, **options)

    monkeypatch.setattr(languages, "make_language", make)
    return calls


def test_a_language_is_made_once(made: list[Any]) -> None:
    one = cached_language("rot+perm", SPACE, 4, 2, 1)
    assert one == make_language("rot+perm", SPACE, 4, 2, 1)
    assert cached_language("rot + perm", SPACE, 4, 2, 1) is one
    assert len(made) == 1
    for other in (("rot", SPACE, 4, 2, 1), ("rot+perm", SPACE, 5, 2, 1), ("rot+perm", SPACE, 4, 3, 1),
                  ("rot+perm", MeaningSpace(3, 5), 4, 2, 1), ("rot+perm", SPACE, 4, 2, 2)):  # fmt: skip
        assert cached_language(*other) == make_language(*other)
    assert len(made) == 6


def test_what_cannot_be_made_is_an_error_each_time() -> None:
    for _ in range(2):
        with pytest.raises(InvalidSettingError, match="raise the vocabulary"):
            cached_language("concat", SPACE, 2, 2, 1)


def test_the_least_recently_used_is_removed(monkeypatch: pytest.MonkeyPatch, made: list[Any]) -> None:
    size = make_language("rot", SPACE, 4, 2, 1).messages.nbytes + languages.BYTES_OF_ONE
    monkeypatch.setattr(languages, "CACHE_BYTES", 2 * size)
    for seed in (1, 2, 1, 3):  # 3 takes the place of 2
        cached_language("rot", SPACE, 4, 2, seed)
    assert [seed for *_, seed in made] == [1, 2, 3]
    assert [seed for *_, seed in languages._cache] == [1, 3]
    cached_language("rot", SPACE, 4, 2, 2)
    assert [seed for *_, seed in made] == [1, 2, 3, 2]
    monkeypatch.setattr(languages, "CACHE_BYTES", size - 1)  # more than there is room for is made, and not kept
    assert cached_language("rot", SPACE, 4, 2, 5).seed == 5
    assert not languages._cache


@pytest.mark.usefixtures("forgetting")
def test_a_grammar_that_is_registered_anew_is_another(made: list[Any]) -> None:
    def one(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
        return make_language("concat", space, vocab_size, word_length, seed).messages

    def two(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
        return make_language("rot", space, vocab_size, word_length, seed).messages

    register_grammar("mine", source="a test")(one)
    first = cached_language("mine", SPACE, 4, 2, 1)
    register_grammar("mine", source="a test")(two)
    assert registry.get("mine", "grammar").factory is two
    assert cached_language("mine", SPACE, 4, 2, 1).digest() == make_language("rot", SPACE, 4, 2, 1).digest()
    assert first.digest() != make_language("rot", SPACE, 4, 2, 1).digest()


def test_a_run_makes_each_language_once(tmp_path: Any, made: list[Any]) -> None:
    sizes = {"meanings": "2x3", "word_length": 2, "hidden": [4, 8], "seeds": 2, "target": 0.5}
    icy.probe(["sender/FC1L", "receiver/FC1L"], "perm", workers=1, out=str(tmp_path), **sizes)  # type: ignore[arg-type]
    assert len(made) == len(set(made)) == 4
