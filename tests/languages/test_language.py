"""Languages: what they refuse, what they say of themselves, and making them of tables."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError, StoreError
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


# -- languages on file: saved without loss, and read from a user's own tables ------------------------------------------


FORMATS = (".parquet", ".csv", ".npz")

# -- files -------------------------------------------------------------------------------------------------------------


def test_csv_is_readable_by_people(tmp_path: Path) -> None:
    small().save(tmp_path / "small.csv")
    head, *rows = (tmp_path / "small.csv").read_text().splitlines()
    assert head.startswith("# icy language {")
    assert '"tokens": "letters, a is 0"' in head
    assert rows == ["m0,m1,message", "0,0,aa", "0,1,ab", "1,0,ba", "1,1,bc"]
    dataclasses.replace(small(), vocab_size=27).save(tmp_path / "wide.csv")
    head, *rows = (tmp_path / "wide.csv").read_text().splitlines()
    assert '"tokens": "numbers, separated by spaces"' in head
    assert rows[-1] == "1,1,1 2"


@pytest.mark.parametrize("word", ["nan", "null", "NA", "true", "inf"])
def test_csv_messages_that_look_like_something_else(word: str, tmp_path: Path) -> None:
    tokens = [[ord(c) - ord("a") for c in word.lower()]]
    language = Language(MeaningSpace(1, 1), np.array(tokens), 26)
    assert Language.load(language.save(tmp_path / "x.csv")) == language


def test_csv_sorted_by_hand_still_loads(tmp_path: Path) -> None:
    path = small().save(tmp_path / "small.csv")
    head, columns, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, columns, *reversed(rows)]))
    assert Language.load(path) == small()
    path.write_text("\n".join([head, columns, *rows[:-1]]))
    with pytest.raises(StoreError, match="exactly once"):
        Language.load(path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_damaged_or_foreign_files(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    with pytest.raises(StoreError, match="does not exist"):
        Language.load(path)
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(StoreError, match="not an icy language"):
        Language.load(path)
    small().save(path)
    assert Language.load(path) == small()


def test_wrong_token_in_file(tmp_path: Path) -> None:
    path = small().save(tmp_path / "small.csv")
    path.write_text(path.read_text().replace("bc", "bz"))
    with pytest.raises(StoreError, match=r"damaged.*found 0 to 25"):
        Language.load(path)


def test_suffix_and_folder_errors(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"\.parquet, \.csv, \.npz; 'x\.json' has another suffix"):
        small().save(tmp_path / "x.json")
    assert small().save(tmp_path / "new" / "x.csv").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Cannot write"):
        small().save(tmp_path / "file" / "x.npz")


def test_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small().save(tmp_path / "x.npz")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match="The disk is full"):
        dataclasses.replace(small(), seed=6).save(path)
    assert Language.load(path) == small()
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]


# -- a user's own table ------------------------------------------------------------------------------------------------


def read(tmp_path: Path, text: str, *args: object, suffix: str = ".csv", **options: object) -> Language:
    path = tmp_path / f"own{suffix}"
    path.write_text(text)
    return Language.from_csv(path, *args, **options)  # type: ignore[arg-type]


def test_own_table_of_words_and_letters(tmp_path: Path) -> None:
    language = read(tmp_path, "colour,shape,message\nred,square,ab\nblue,square,dd\nred,disc,aa\nblue,disc,ba\n")
    assert language.value_names == (("blue", "red"), ("disc", "square"))
    assert language.messages.tolist() == [[1, 0], [3, 3], [0, 0], [0, 1]]
    assert (language.vocab_size, language.name) == (4, "own")


def test_own_table_of_numbers_in_columns(tmp_path: Path) -> None:
    text = "m0;t0;t1\n0;12;7\n1;0;3\n".replace(";", "\t")
    language = read(tmp_path, text, suffix=".tsv", vocab_size=40)
    assert language.value_names is None
    assert language.messages.tolist() == [[12, 7], [0, 3]]
    assert language.vocab_size == 40


def test_own_table_keeps_leading_zeros_and_single_columns(tmp_path: Path) -> None:
    assert read(tmp_path, "m0,message\n0,0123\n1,3210\n").messages.tolist() == [[0, 1, 2, 3], [3, 2, 1, 0]]
    assert read(tmp_path, "m0,word\n0,ab\n1,ba\n").messages.tolist() == [[0, 1], [1, 0]]
    assert read(tmp_path, "a,b\n0,ab\n1,ba\n", meaning_columns=["a"]).messages.tolist() == [[0, 1], [1, 0]]


def test_messages_of_several_lengths_have_an_end_token(tmp_path: Path) -> None:
    language = read(tmp_path, "m0,message\n0,ab\n1,a\n2,bcb\n")
    assert language.messages.tolist() == [[0, 1, 3], [0, 3, 3], [1, 2, 1]]
    assert (language.eos, language.vocab_size) == (3, 4)
    named = read(tmp_path, "m0,message\n0,red blue\n1,red\n", vocab_size=5)
    assert (named.messages.tolist(), named.eos) == ([[1, 0], [1, 5]], 5)


def test_own_file_comes_back_whole(tmp_path: Path) -> None:
    assert Language.from_csv(small().save(tmp_path / "x.csv")) == small()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("m0,m1,message\n0,0,a\n0,1,b\n1,2,a\n", "3 meanings are missing"),
        ("m0,message\n0,ab\n0,ab\n1,bb\n", "0 meanings are missing and 1 row repeats"),
    ],
)
def test_own_table_refusals(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match=sentence):
        read(tmp_path, text)
