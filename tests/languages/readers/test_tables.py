"""Tables from files: languages of icy, tables of one's own, interactions of EGG's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import icy
from icy.core.entry import Entry
from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.core.registry import registry
from icy.languages.readers import File, Found
from icy.languages.tokens import PAD
from icy.metrics import Table, cbm, read_table
from tests.languages.helpers import GRID, Save


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_a_language_of_icy(tmp_path: Path, suffix: str) -> None:
    language = icy.make_language("rot", "2x3", 4, 2, 1)
    table = read_table(language.save(tmp_path / f"mine.{suffix}"))
    assert (table.messages == language.messages).all()
    assert (table.meanings == language.space.all()).all()
    assert (table.name, table.vocab_size) == ("rot", 4)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_table_with_gaps_repeats_and_messages_of_any_length(tmp_path: Path) -> None:
    file = write(tmp_path / "emerged.csv", "shape,size,message\nball,1,ab\nball,2,a\ncube,1,ab\nball,1,abc\n")
    table = read_table(file)
    assert table.meanings.tolist() == [[0, 1], [0, 2], [1, 1], [0, 1]]
    assert table.messages.tolist() == [[0, 1, PAD], [0, PAD, PAD], [0, 1, PAD], [0, 1, 2]]
    assert table.value_name(0, 1) == "cube"
    assert table.token_name(2) == "c"
    assert table.name == "emerged"


def test_relaxed_symbols_one_hot_inputs_and_lengths(save: Save) -> None:
    one_hot = torch.nn.functional.one_hot(torch.tensor(GRID), 3).flatten(1).float()
    symbols = torch.tensor([[1 + a, 4 + b, 0, 5] for a, b in GRID])
    file = save(
        sender_input=one_hot,
        message=torch.nn.functional.one_hot(symbols, 8).float(),
        message_length=torch.full((9,), 3),
        aux_input={"attributes": torch.tensor(GRID)},
    )
    table = read_table(file, one_hot=3)
    assert table.meanings.tolist() == GRID
    assert table.messages.tolist() == symbols[:, :3].tolist()
    assert read_table(file, meaning_columns="aux_input.attributes").meanings.tolist() == GRID
    with pytest.raises(InvalidSettingError, match="are not one-hot vectors of 4 values"):
        read_table(file, one_hot=4)
    with pytest.raises(InvalidSettingError, match="'labels' is not one of them"):
        read_table(file, meaning_columns="labels")


def test_a_pickle_is_never_run(tmp_path: Path) -> None:
    import pickle

    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "touched",))

    (tmp_path / "interaction").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(StoreError, match="holds more than tensors, arrays and plain values, which icy never runs"):
        read_table(tmp_path / "interaction")
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,message\n", "has no rows"),
        ("a,b\n1,2\n", "choose columns of meanings and columns of messages"),
        ("", "cannot be read"),
    ],
)
def test_files_that_are_not_tables(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(IcyError, match=sentence):
        read_table(write(tmp_path / "t.csv", text))


# -- tables of one's own are not guessed at ----------------------------------------------------------------------------

ONE_EACH = "id,colour,shape,message\n1,red,ball,ab\n2,red,cube,ad\n3,blue,ball,cb\n4,blue,cube,cd\n"


def test_a_column_with_a_value_of_its_own_in_every_row_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(tmp_path / "t.csv", ONE_EACH)
    assert read_table(file).attributes == 3
    assert "The column 'id' has a different value in every row" in caplog.text
    assert "--meaning-columns colour,shape" in caplog.text
    caplog.clear()
    assert read_table(file, meaning_columns=["id", "colour"]).attributes == 2  # as was asked for
    read_table(write(tmp_path / "x.csv", "x,y,message\n0.1,0.4,a\n0.2,0.3,b\n0.35,0.9,a\n"))  # real numbers
    assert not caplog.text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b,message\n1,x,ab\n,y,ad\n", "There is no value in line 3, column 'a'"),
        ("a,b,message\n\n1, ,ab\n", "There is no value in line 3, column 'b'"),
        ("a,b,message\n1,x,\n", "There is no message in line 2, column 'message'"),
        ("a,b,a,message\n1,x,2,ab\n", "Columns 1 and 3 are both called 'a' in line 1"),
        (",b,message\nu,x,ab\nv,y,ba\n", "Column 1 has no name in the header"),
        ("a,message\n1,ab,c\n", "Line 2 has 3 entries, but the header 2 columns"),
        ("a,b,message\n1,ab\n", "Line 2 has 2 entries, but the header 3 columns"),
    ],
)
def test_empty_or_repeated_rows_are_refused_with_their_place(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InvalidSettingError, match=sentence):
        read_table(write(tmp_path / "t.csv", text))


def test_parquet_with_gaps(tmp_path: Path) -> None:
    pd.DataFrame({"m0": [0, None], "message": ["ab", "ba"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidSettingError, match="no value in row 2, column 'm0'"):
        read_table(tmp_path / "t.parquet")
    pd.DataFrame({"m0": [0, 1], "message": [None, "ba"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidSettingError, match="no message in row 1, column 'message'"):
        read_table(tmp_path / "t.parquet")


def test_distinct_texts_are_distinct_values_and_tokens(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.csv", "shape,size,message\n00,1,01 1\n0,2,1 1\n"))
    assert table.meanings.tolist() == [[1, 1], [0, 2]]
    assert table.value_name(0, 1) == "00"
    assert table.messages.tolist() == [[0, 1], [1, 1]]
    columns = read_table(write(tmp_path / "u.csv", "m0,t0,t1\n0,1,a\n1,2,1\n"))
    assert columns.messages.tolist() == [[0, 2], [1, 0]]  # the 1 of both rows is one token
    real = read_table(write(tmp_path / "v.csv", "m0,message\n0.5,a\n0.50,b\n"))
    assert real.meanings.tolist() == [[0.5], [0.5]]


def test_an_attribute_of_a_single_value_is_remarked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read_table(write(tmp_path / "t.csv", "shape,size,message\nball,1,ab\nball,2,ac\n"))
    assert "The attribute 'shape' has the same value, ball, in every row." in caplog.text
    assert "'size'" not in caplog.text


def test_messages_spelt_in_two_ways_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InvalidSettingError, match=r"message '1 2' in line 3 has spaces.*'xz' in line 2 has none"):
        read_table(write(tmp_path / "t.csv", "m0,message\n0,xz\n1,1 2\n2,yy\n"))
    words = read_table(write(tmp_path / "u.csv", "m0,message\n0,red ball\n1,cube\n"))
    assert words.lengths.tolist() == [2, 1]
    assert not caplog.text
    assert read_table(write(tmp_path / "v.csv", "m0,message\n0,1 2\n1,12\n")).lengths.tolist() == [2, 1]
    assert "'12' in line 3 has none: it was read as a single token, the number 12." in caplog.text


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_separator_and_encoding_are_recognized(tmp_path: Path, name: str, separator: str, encoding: str) -> None:
    text = "größe,colour,message\n0,rouge,ab\n0,né,ad\n1,né,cb\n".replace(",", separator)
    (tmp_path / name).write_bytes(text.encode(encoding))
    table = read_table(tmp_path / name)
    assert table.read_as.startswith("attributes größe (2 values) and colour (2 values); message in message")
    assert [table.value_name(1, value) for value in (0, 1)] == ["né", "rouge"]


# -- files that are damaged, and numbers that are large ----------------------------------------------------------------


def test_numbers_that_no_float_holds_are_classes(tmp_path: Path) -> None:
    for digits in (17, 20, 400, 5000):
        large = "1" * digits
        table = read_table(write(tmp_path / "t.csv", f"m0,m1,message\n{large},0,ab\n{large[:-1]}2,1,ad\n"))
        assert not table.continuous
        assert table.meanings[0, 0] != table.meanings[1, 0]
        tokens = read_table(write(tmp_path / "u.csv", f"m0,t0,t1\n0,{large},3\n1,3,{large[:-1]}2\n"))
        assert len({tokens.messages[0, 0], tokens.messages[0, 1], tokens.messages[1, 1]}) == 3
        assert tokens.messages[0, 1] == tokens.messages[1, 0]
    with pytest.raises(InvalidSettingError, match="infinite"):
        read_table(write(tmp_path / "t.csv", "m0,message\ninf,ab\n1,ad\n"))
    pd.DataFrame({"m0": [float("inf"), 1.0], "message": ["ab", "ba"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidSettingError, match="infinite"):
        read_table(tmp_path / "t.parquet")


def test_files_that_are_empty_or_damaged(tmp_path: Path) -> None:
    np.savez_compressed(
        tmp_path / "whole.npz", meanings=np.arange(200).reshape(100, 2), messages=np.ones((100, 3), int)
    )
    whole = (tmp_path / "whole.npz").read_bytes()
    for place, content in enumerate(
        (b"", whole[:-30], whole[:120] + bytes(20) + whole[140:], b"PK\x03\x04", b"\x93NUMPY")
    ):
        (tmp_path / f"{place}.npz").write_bytes(content)
        with pytest.raises(StoreError, match=rf"{place}\.npz' cannot be read: "):
            read_table(tmp_path / f"{place}.npz")
    np.save(tmp_path / "array", np.arange(3))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    assert read_table(tmp_path / "array.npz").messages.tolist() == [[0], [1], [2]]  # the content tells the format


def test_a_pickle_that_holds_more_than_tensors_is_refused_without_torchs_advice(tmp_path: Path, save: Save) -> None:
    import pickle

    for content in (b"", b"\x80\x02", pickle.dumps(Path("x")), pickle.dumps([1]), b"no pickle"):
        (tmp_path / "t.pt").write_bytes(content)
        with pytest.raises(IcyError, match=r"cannot be read|has no rows") as told:
            read_table(tmp_path / "t.pt")
        assert "weights_only" not in str(told.value)
        assert "\n" not in str(told.value)
    one, none = torch.tensor([[1]]), torch.zeros(0, 2)
    for held in (
        {"message": torch.tensor(3), "sender_input": one},
        {"message": none, "sender_input": none},
        {"message": torch.ones(2, 2), "sender_input": torch.ones(2, 1), "message_length": torch.ones(5)},
    ):
        with pytest.raises(IcyError):
            read_table(save(**held))


# -- lines of messages and phrases -------------------------------------------------------------------------------------


def lines(folder: Path, *pairs: object) -> Path:
    file = folder / "said.jsonl"
    file.write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    return file


def test_lines_of_messages_and_phrases_are_read(tmp_path: Path) -> None:
    table = read_table(lines(tmp_path, ["3.1.0", "red.square"], ["1.0", "square.blue"]))
    assert table.phrases
    assert [row[row >= 0].tolist() for row in table.messages] == [[3, 1], [1]]
    assert table.value_name(0, table.meanings[1, 0]) == "square"
    # "square" is one concept at either place, and in topsim the two phrases differ in two of three.
    assert cbm(table, concepts="items").details["unique_concepts"] == 3
    assert [column.tolist() for column in table.compared] == [[0, 1], [1, 0], [1, 1]]


def test_a_last_token_that_is_a_word_elsewhere_is_kept(tmp_path: Path) -> None:
    assert read_table(lines(tmp_path, ["0.0", "a"], ["2.0", "b"])).messages.tolist() == [[0, 0], [2, 0]]
    assert read_table(lines(tmp_path, ["5", "a"], ["2.0", "b"])).messages.tolist() == [[5, -1], [2, 0]]
    assert read_table(lines(tmp_path, ["x.y", "a"], ["x.z", "b"])).token_names == ("x", "y", "z")


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([["1.0", "a"], {"a": 1}], "Line 2 holds an object, but line 1 holds a list of texts"),
        ([["1", 2]], "Line 1 holds a list of texts and numbers"),
        ([["1.0", "a"], ["1.", "a.b"]], "Line 2 does not have the form"),
    ],
)
def test_other_lines_are_refused(tmp_path: Path, pairs: list[object], why: str) -> None:
    with pytest.raises(InvalidSettingError, match=why):
        read_table(lines(tmp_path, *pairs))


def test_phrases_of_any_length(tmp_path: Path) -> None:
    table = read_table(lines(tmp_path, ["1.0", "a"], ["2.1.0", "b.a"]))
    assert [[table.value_name(0, a), table.value_name(1, b)] for a, b in table.meanings] == [["a", None], ["b", "a"]]
    assert cbm(table, concepts="items").value == 1
    assert [column.tolist() for column in table.compared] == [[1, 1], [0, 1]]
    with pytest.raises(InvalidSettingError, match="phrases of several lengths"):
        icy.metrics.posdis(table)


def test_the_reader_of_a_plug_in(tmp_path: Path) -> None:
    def read(file: File) -> Found | None:
        if file.path.suffix != ".pairs":
            return None
        rows = [line.split("\t") for line in file.text.splitlines()]
        columns = {"meaning": [meaning.split() for meaning, _ in rows], "message": [said for _, said in rows]}
        return Found(columns, "pairs", meanings=["meaning"], messages=["message"], place="line")

    file = write(tmp_path / "mine.pairs", "red ball\tab\nblue ball\tcb\n")
    with registry.holding(Entry("reader", "pairs", read, "Pairs.", "a test")):
        table = read_table(file)
    assert (table.attributes, table.length) == (2, 2)
    assert table.read_as.startswith("pairs: meaning as 2 attributes")


@pytest.mark.parametrize(("name", "content"), [("a.avro", b"Obj\x01\x04"), ("a.gz", gzip.compress(b"a", mtime=0))])
def test_a_plug_in_may_read_formats_that_icy_unpacks_or_does_not_read(
    tmp_path: Path, name: str, content: bytes
) -> None:
    def read(file: File) -> Found | None:
        return Found({"meaning": [0, 1], "message": ["a", "b"]}) if file.path.name == name else None

    (tmp_path / name).write_bytes(content)
    with registry.holding(Entry("reader", "mine", read, "Mine.", "a test")):
        assert len(read_table(tmp_path / name)) == 2


@pytest.mark.parametrize(
    ("rows", "dropped"),
    [
        ([1, 2, None, 4], "1 of 4 rows dropped (line 4)"),
        ([*[None] * 10, 1, 2], "10 of 12 rows dropped (lines 2, 3, 4, 5, 6, 7, 8, 9 and 2 more)"),
    ],
)
def test_dropped_rows_are_named(tmp_path: Path, rows: list[int | None], dropped: str) -> None:
    pd.DataFrame({"a": rows, "message": ["ab"] * len(rows)}).to_csv(tmp_path / "t.csv", index=False)
    assert dropped in read_table(tmp_path / "t.csv", missing="drop").read_as
    table = Table.of([[0, 1], [None, 1], [1, 0], [1, pd.NA]], ["ab", "cd", "ad", "cb"], missing="drop")
    assert table.read_as == "a letter each; 2 of 4 rows dropped (rows 1 and 3, counted from 0)"
