"""Languages: what they refuse, what they say of themselves, and making them of tables."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError
from icy.languages.language import Language, to_letters
from icy.languages.meanings import MeaningSpace
from icy.languages.table import Table
from tests.languages.helpers import MESSAGES, small
from tests.properties.helpers import languages

# -- making one --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("vocab_size", "dtype"), [(3, "uint8"), (256, "uint8"), (257, "uint16"), (70_000, "uint32")])
def test_messages_are_stored_small_and_read_only(vocab_size: int, dtype: str) -> None:
    given_messages = np.array(MESSAGES)
    language = Language("2x2", given_messages, vocab_size)  # type: ignore[arg-type]
    assert language.messages.dtype == dtype
    given_messages[0, 0] = 2
    assert language.messages[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        language.messages[0, 0] = 1


@pytest.mark.parametrize(
    ("space", "messages", "vocab_size", "sentence"),
    [
        ("2x2", MESSAGES[:3], 3, "has 4 messages, one per meaning; 3 rows are given"),
        ("2x2", MESSAGES, 2, "run from 0 to 1; found 0 to 2"),
        ("2x2", [[-1, 0]] * 4, 3, "found -1 to 0"),
        ("2x2", [0, 1, 2, 0], 3, "must be a table"),
        ("2x2", [[], [], [], []], 3, "must be a table"),
        ("2x2", [[0.0], [1.0], [1.0], [1.0]], 3, "must be whole numbers"),
        ("2x2", MESSAGES, 0, "vocabulary size must be a whole number"),
        ("2x2", MESSAGES, 2.5, "vocabulary size must be a whole number"),
        ("2-2", MESSAGES, 3, "not a meaning space"),
    ],
)
def test_refusals(space: str, messages: object, vocab_size: int, sentence: str) -> None:
    with pytest.raises(InvalidSettingError, match=sentence):
        Language(space, messages, vocab_size)  # type: ignore[arg-type]


def test_value_names_must_fit() -> None:
    with pytest.raises(InvalidSettingError, match="a list of names for each attribute, with 2 names"):
        dataclasses.replace(small(), value_names=(("a", "b"),))


def test_equality_and_digest() -> None:
    assert small() == small()
    assert hash(small()) == hash(small())
    renamed = dataclasses.replace(small(), name="other", seed=6)
    assert renamed != small()
    assert renamed.digest() == small().digest()
    assert len(small().digest()) == 16
    wider = dataclasses.replace(small(), vocab_size=300)
    changed = dataclasses.replace(small(), messages=np.array(MESSAGES)[::-1])
    assert len({small().digest(), wider.digest(), changed.digest()}) == 3
    assert small() != "small"


def test_facts_and_properties() -> None:
    language = Language(MeaningSpace(2, 2), np.array([[0, 0, 1]] * 2 + [[1, 1, 1], [1, 0, 0]]), 2, name="n", seed=1)
    assert language.word_length is None
    assert small().word_length == 1
    assert language.facts() == {
        "name": "n",
        "space": "2x2",
        "meanings": 4,
        "message_length": 3,
        "vocab_size": 2,
        "distinct_messages": 3,
        "fraction_distinct": 0.75,
        "seed": 1,
    }
    assert repr(language) == "Language('n', 2x2, 4 messages of 3 tokens, vocabulary 2, seed 1)"


def test_very_many_words_are_numbered_again() -> None:
    words = np.array([[2**40, -1], [5, 5], [-1, 2**40], [5, -1]])
    language = Language.spoken(MeaningSpace(2, 2), words, 2**64, name="n", seed=1)
    assert language.messages.tolist() == [[2, 0], [1, 1], [0, 2], [1, 0]]
    assert language.vocab_size == 3
    start = Language.spoken(MeaningSpace(2, 2), np.array([[4, 1]] * 4), 4, name="n", seed=1)
    assert (start.vocab_size, start.messages[0].tolist()) == (5, [4, 1])


# -- tables ------------------------------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(languages(), st.randoms(use_true_random=False))
def test_from_table_takes_rows_in_any_order(language: Language, random: object) -> None:
    order = np.random.default_rng(random.getrandbits(32)).permutation(language.space.size)  # type: ignore[attr-defined]
    again = Language.from_table(
        language.space.all()[order],
        language.messages[order],
        space=language.space,
        vocab_size=language.vocab_size,
        name=language.name,
        seed=language.seed,
        value_names=language.value_names,
    )
    assert again == language


def test_from_table_infers_sizes() -> None:
    language = Language.from_table([[1, 1], [0, 0], [0, 1], [1, 0]], [[3], [0], [1], [2]])
    assert (str(language.space), language.vocab_size) == ("2x2", 4)
    assert language.messages.ravel().tolist() == [0, 1, 2, 3]


def test_from_table_counts_what_is_wrong() -> None:
    with pytest.raises(InvalidSettingError, match=r"4 meanings of 2x2 exactly once; 1 meaning is missing and 2 rows"):
        Language.from_table([[0, 0], [0, 1], [0, 1], [1, 1], [1, 1]], [[0]] * 5)
    with pytest.raises(InvalidSettingError, match="2 meanings and 3 messages"):
        Language.from_table([[0], [1]], [[0]] * 3)
    with pytest.raises(InvalidSettingError, match="whole numbers"):
        Language.from_table([["red"], ["blue"]], [[0]] * 2)


def test_examples() -> None:
    language = Language(MeaningSpace(3, 3), np.arange(27)[:, None] // np.ones(6, dtype=int) % 4, 4)
    shown = language.examples()
    assert shown["meaning"].tolist() == ["(0, 0, 0)", "(0, 0, 1)", "(0, 1, 0)", "(1, 0, 0)"]
    assert shown["message"].tolist() == ["aa aa aa", "bb bb bb", "dd dd dd", "bb bb bb"]
    named = dataclasses.replace(language, value_names=(("red", "blue", "green"),) * 3)
    assert named.examples([0, 1, 2])["meaning"].tolist() == ["(red, blue, green)"]
    assert len(Language(MeaningSpace(2, 1), [[0, 0]], 1).examples()) == 1  # type: ignore[arg-type]
    with pytest.raises(InvalidSettingError):
        language.examples([[0, 0, 3]])


def test_to_letters() -> None:
    assert to_letters([0, 25, 1], 26) == "azb"
    assert to_letters(np.array([0, 25, 1, 2]), 26, word_length=2) == "az bc"
    assert to_letters([0, 25, 1, 26], 27, word_length=2) == "0.25 1.26"


# -- messages that end early -------------------------------------------------------------------------------------------

ENDED = Language("1x3", [[0, 2, 2], [2, 2, 2], [1, 1, 0]], vocab_size=3, eos=2)


def test_a_language_with_an_end_token() -> None:
    assert ENDED.lengths.tolist() == [1, 0, 3]
    assert (ENDED.token_count, ENDED.word_length) == (2, None)
    assert ENDED.examples()["message"].tolist() == ["a", ""]
    assert ENDED.digest() != dataclasses.replace(ENDED, eos=None).digest()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_files_keep_the_end_token(suffix: str, tmp_path: Path) -> None:
    assert Language.load(ENDED.save(tmp_path / f"language.{suffix}")) == ENDED


def test_metrics_do_not_read_the_end() -> None:
    table = Table.of(ENDED)
    assert table.messages.tolist() == [[0, -1, -1], [-1, -1, -1], [1, 1, 0]]
    assert (table.vocab_size, table.removed) == (2, (2,))


def test_an_end_token_that_no_message_has() -> None:
    whole = Table.of(Language("1x2", [[0], [1]], vocab_size=3, eos=2))
    assert whole.lengths.tolist() == [1, 1]
    assert whole.vocab_size == 2


@pytest.mark.parametrize(("eos", "sentence"), [(3, "end token"), (0, "may have only this token")])
def test_wrong_end_tokens_are_refused(eos: int, sentence: str) -> None:
    with pytest.raises(InvalidSettingError, match=sentence):
        dataclasses.replace(ENDED, eos=eos)


def test_what_a_sender_says_after_the_end_is_left_out() -> None:
    said = Language.spoken(MeaningSpace(1, 2), np.array([[0, 2, 1], [1, 1, 1]]), 2, name="", seed=1, ends=True)
    assert said.messages.tolist() == [[0, 2, 2], [1, 1, 1]]
    assert (said.eos, said.vocab_size) == (2, 3)


def test_ending_moves_the_end_token_and_pads() -> None:
    moved = ENDED.ending(4, 4)
    assert moved.messages.tolist() == [[0, 4, 4, 4], [4, 4, 4, 4], [1, 1, 0, 4]]
    with pytest.raises(InvalidSettingError, match="no end token"):
        small().ending(4, 4)


@pytest.mark.parametrize("space", ["2x3", "3,2,4", "1x5"])
def test_meanings_are_the_rows_of_the_messages(space: str) -> None:
    parsed = MeaningSpace.parse(space)
    language = Language(parsed, np.arange(parsed.size)[:, None], parsed.size)
    assert language.meanings.shape == (parsed.size, parsed.attributes)
    assert parsed.index(language.meanings).tolist() == language.messages[:, 0].tolist()
