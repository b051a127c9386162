"""Languages on file: saved without loss, and read from a user's own tables."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icy.core.errors import InvalidSettingError, StoreError
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from tests.languages.helpers import small

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


def test_foreign_parquet_and_npz(tmp_path: Path) -> None:
    pd.DataFrame({"m0": [0]}).to_parquet(tmp_path / "x.parquet")
    np.savez(tmp_path / "x.npz", messages=np.zeros((4, 2)))
    for name in ("x.parquet", "x.npz"):
        with pytest.raises(StoreError, match=r"not an icy language.*Language.read"):
            Language.load(tmp_path / name)


def test_wrong_token_in_file(tmp_path: Path) -> None:
    path = small().save(tmp_path / "small.csv")
    path.write_text(path.read_text().replace("bc", "bz"))
    with pytest.raises(StoreError, match=r"damaged.*found 0 to 25"):
        Language.load(path)


def test_suffix_and_folder_errors(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"\.parquet, \.csv, \.npz; 'x\.json' has another suffix"):
        small().save(tmp_path / "x.json")
    with pytest.raises(StoreError, match="cannot be written"):
        small().save(tmp_path / "no" / "x.csv")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        small().save(tmp_path / "file" / "x.npz")


def test_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small().save(tmp_path / "x.npz")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match="No space left"):
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


def test_own_table_of_spaced_tokens_and_chosen_columns(tmp_path: Path) -> None:
    text = "id,size,said\nx,10,12 7\ny,9,0 3\n"
    language = read(tmp_path, text, ["size"], "said")
    assert language.value_names == (("9", "10"),)
    assert language.messages.tolist() == [[0, 3], [12, 7]]


def test_own_table_of_other_symbols(tmp_path: Path) -> None:
    language = read(tmp_path, "m0,message\n0,WU\n1,UU\n")
    assert language.messages.tolist() == [[1, 0], [0, 0]]


def test_own_table_keeps_leading_zeros_and_single_columns(tmp_path: Path) -> None:
    assert read(tmp_path, "m0,message\n0,0123\n1,3210\n").messages.tolist() == [[0, 1, 2, 3], [3, 2, 1, 0]]
    assert read(tmp_path, "m0,word\n0,ab\n1,ba\n").messages.tolist() == [[0, 1], [1, 0]]
    assert read(tmp_path, "a,b\n0,ab\n1,ba\n", meaning_columns=["a"]).messages.tolist() == [[0, 1], [1, 0]]


def test_own_table_keeps_distinct_texts_apart(tmp_path: Path) -> None:
    language = read(tmp_path, "shape,Message\n00,01 1\n0,1 1\n")
    assert language.value_names == (("0", "00"),)
    assert language.messages.tolist() == [[1, 1], [0, 1]]


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
        ("m0,message\n", "no rows"),
        ("a,b\n0,ab\n", "choose columns of meanings"),
        ("m0,message\n0,xz\n1,1 2\n", "'1 2' in line 3 has spaces"),
        ("m0,message\n0,\n1,\n", "no message in line 2"),
    ],
)
def test_own_table_refusals(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match=sentence):
        read(tmp_path, text)


def test_own_table_unknown_column_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="has the columns m0, message; 'colour' is not one of them"):
        read(tmp_path, "m0,message\n0,a\n", ["colour"])
    with pytest.raises(StoreError, match="cannot be read"):
        Language.from_csv(tmp_path / "none.csv")
    with pytest.raises(StoreError, match="cannot be read"):
        read(tmp_path, "")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b,message\n0,0,ab\n,1,ad\n", "no value in line 3, column 'a'"),
        ("a,a,message\n0,0,ab\n", "Columns 1 and 2 are both called 'a'"),
    ],
)
def test_empty_or_repeated_rows_of_own_tables_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InvalidSettingError, match=sentence):
        Language.from_csv(tmp_path / "t.csv")
