"""Words of different lengths: exact small languages, and properties on random spaces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import Entry, registry
from icy.grammars import Corruption, make_language
from icy.grammars.grammar import ABSENT, base_messages
from icy.grammars.word_lengths import joined, spread, words_of_lengths
from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

ONE_TO_ONE = ("concat", "perm", "rot", "shuf", "shufdet", "rot+perm", "perm+shufdet")
ALL = (*ONE_TO_ONE, "proj", "pairsum", "hol", "shuf+perm+pairsum")


@st.composite
def sizes(draw: st.DrawFn) -> tuple[MeaningSpace, int, str, int]:
    """Draw a space, a vocabulary, bounds of word lengths that are large enough, and a seed."""
    space = MeaningSpace.of_sizes(draw(st.lists(st.integers(1, 5), min_size=2, max_size=4)))
    vocab_size = draw(st.integers(2, 6))
    least = draw(st.integers(1, 3))
    enough = next(n for n in range(1, 9) if vocab_size**n >= sum(space.size_of_each))
    most = max(enough, least + 1) + draw(st.integers(0, 1))
    return space, vocab_size, f"{least}-{most}", draw(st.integers(0, 99))


def tokens_of(language: Language, row: int) -> list[int]:
    """Return the tokens of a message before its end."""
    return language.messages[row, : language.lengths[row]].tolist()


def test_a_small_language_in_every_grammar() -> None:
    shown = {
        name: " ".join(make_language(name, "2x2", 3, "1-3", seed=5).examples()["message"])
        for name in ("concat", "perm", "rot", "pairsum", "proj", "shufdet", "hol")
    }
    assert shown == {
        "concat": "bac babbb ac",
        "perm": "acb babbb ca",
        "rot": "bba bbcab ac",
        "pairsum": "aac cbacb cb",
        "proj": "ccc ccbab aa",
        "shufdet": "cba babbb ca",
        "hol": "baa acaca aa",
    }


def test_rot_and_pairsum_by_hand() -> None:
    words = words_of_lengths(MeaningSpace(2, 2), 3, "1-3", seed=5)
    language = make_language("rot", "2x2", 3, "1-3", seed=5)
    summed = make_language("pairsum", "2x2", 3, "1-3", seed=5)
    for row, meaning in enumerate(language.space.all().tolist()):
        first, second = ([t for t in words[a, v].tolist() if t != ABSENT] for a, v in enumerate(meaning))
        assert tokens_of(language, row) == (np.cumsum(first + second) % 3).tolist()
        new_first = [(t + (second[i] if i < len(second) else 0)) % 3 for i, t in enumerate(first)]
        new_second = [(t + (new_first[i] if i < len(new_first) else 0)) % 3 for i, t in enumerate(second)]
        assert tokens_of(summed, row) == new_first + new_second


def test_perm_leaves_out_positions_of_the_same_permutation() -> None:
    base = make_language("concat", "3x3", 4, "1-3", seed=7)
    fixed = make_language("perm", "3x3", 4, 3, seed=7), make_language("concat", "3x3", 4, 3, seed=7)
    order = next(
        p for p in [np.array(perm_of(fixed[0], fixed[1]))] if (fixed[1].messages[:, p] == fixed[0].messages).all()
    )
    permuted = make_language("perm", "3x3", 4, "1-3", seed=7)
    for row in range(base.space.size):
        own = tokens_of(base, row)
        assert tokens_of(permuted, row) == [own[p] for p in order if p < len(own)]


def perm_of(permuted: Language, base: Language) -> list[int]:
    """Return the position of concat for each position of perm; the columns of this language are all different."""
    columns = [tuple(column) for column in base.messages.T.tolist()]
    assert len(set(columns)) == len(columns)
    return [columns.index(tuple(column)) for column in permuted.messages.T.tolist()]


@settings(max_examples=25, deadline=None)
@given(sizes())
def test_words_are_a_prefix_code_within_the_bounds(drawn: tuple[MeaningSpace, int, str, int]) -> None:
    space, vocab_size, bounds, seed = drawn
    words = words_of_lengths(space, vocab_size, bounds, seed)[space.existing]
    least, most = map(int, bounds.split("-"))
    texts = ["".join(chr(97 + t) for t in word if t != ABSENT) for word in words.tolist()]
    assert all(least <= len(text) <= most for text in texts)
    assert not any(i != j and b.startswith(a) for i, a in enumerate(texts) for j, b in enumerate(texts))
    assert words.max() < vocab_size
    assert (np.diff((words == ABSENT).astype(int), axis=1) >= 0).all()  # absent tokens are at the end


@settings(max_examples=12, deadline=None)
@given(sizes(), st.sampled_from(ALL))
def test_grammars_keep_lengths_and_one_to_one_grammars_their_meanings(
    drawn: tuple[MeaningSpace, int, str, int], grammar: str
) -> None:
    concat, language = make_language("concat", *drawn), make_language(grammar, *drawn)
    assert language.lengths.tolist() == concat.lengths.tolist()
    assert language.eos == drawn[1] == language.token_count
    if grammar in ONE_TO_ONE:
        assert language.distinct_messages == drawn[0].size
    if grammar == "hol" and all(drawn[1] ** n < 1000 for n in np.unique(concat.lengths)):
        assert language.distinct_messages == drawn[0].size


@settings(max_examples=20, deadline=None)
@given(sizes())
def test_spread_is_the_inverse_of_joined(drawn: tuple[MeaningSpace, int, str, int]) -> None:
    space, vocab_size, bounds, seed = drawn
    messages = base_messages(space, vocab_size, int(bounds.split("-")[1]), seed, words_of_lengths(*drawn))
    assert np.array_equal(spread(joined(messages), messages != ABSENT), messages)


def test_equal_bounds_are_a_single_length() -> None:
    assert make_language("rot", "2x3", 4, "2-2", seed=3) == make_language("rot", "2x3", 4, 2, seed=3)


def test_lengths_vary_if_there_is_room() -> None:
    lengths = np.concatenate([(words_of_lengths(MeaningSpace(2, 3), 9, "1-3", s) != ABSENT).sum(2) for s in range(40)])
    counts = np.bincount(lengths.ravel(), minlength=4)
    assert counts[0] == 0
    assert (counts[1:] > 50).all()  # of 240, uniform over three lengths


def test_frequent_values_have_short_words() -> None:
    space, law = MeaningSpace(3, 4), Frequencies("zipf:1")
    lengths = (words_of_lengths(space, 4, "1-4", 2, law) != ABSENT).sum(2)
    numbers, weights = law.of_seed(space, 2)
    shares = [np.bincount(space.meanings(numbers)[:, a], weights=weights, minlength=4) for a in range(3)]
    ordered = lengths.ravel()[np.argsort(-np.concatenate(shares))]
    assert (np.diff(ordered) >= 0).all()
    assert sorted(ordered) == sorted((words_of_lengths(space, 4, "1-4", 2) != ABSENT).sum(2).ravel())


def test_a_grammar_that_does_not_take_shorter_words_says_so() -> None:
    class Fixed(Corruption):
        def apply(self, messages, table):  # type: ignore[no-untyped-def]
            return messages

    entry = Entry("grammar", "fixed-words", Fixed, description="", source="a test")
    with registry.holding(entry):
        with pytest.raises(IncompatibleError, match="'fixed-words' does not accept words of different lengths"):
            make_language("fixed-words", "2x3", 4, "1-3")
        with pytest.raises(IncompatibleError, match="fixed-words"):
            make_language("perm+fixed-words", "2x3", 4, "1-3")


@pytest.mark.parametrize(
    ("word_length", "text"),
    [
        ("3-1", "write 1-3"),
        ("0-2", "at least 1"),
        ("many", "two with a hyphen"),
        ("1-2", "needs 18 different words"),
        ("1-40", "more"),
    ],
)
def test_bad_bounds_are_refused(word_length: str, text: str) -> None:
    with pytest.raises(InvalidSettingError, match=text):
        make_language("concat", "3x6", 4, word_length)


def test_given_words_have_one_length() -> None:
    with pytest.raises(InvalidSettingError, match="leave the words out"):
        make_language("concat", "1x2", 4, "1-2", words=[[[0, 1], [1, 0]]])
