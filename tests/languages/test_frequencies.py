"""Frequencies of meanings: laws, files, and their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.languages.frequencies import Frequencies, read_meanings
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.languages.readers import read_table

SPACE = MeaningSpace.parse("3,2")


def test_zipf_gives_each_seed_its_own_order() -> None:
    numbers, weights = Frequencies("zipf:1").of_seed(SPACE, 1)
    assert numbers.tolist() == list(range(6))
    np.testing.assert_allclose(sorted(weights, reverse=True), 1 / np.arange(1, 7) / (1 / np.arange(1, 7)).sum())
    assert weights.tolist() == Frequencies("zipf:1").of_seed(SPACE, 1)[1].tolist()
    assert weights.tolist() != Frequencies("zipf:1").of_seed(SPACE, 2)[1].tolist()


@pytest.mark.parametrize(
    ("given", "law"), [("Zipf:1.0", "zipf:1"), ("zipf", "zipf:1"), ("zipf:0.5", "zipf:0.5"), ("equal", "equal")]
)
def test_laws_have_one_spelling(given: str, law: str) -> None:
    assert Frequencies(given).law == law
    assert Frequencies(given) == Frequencies(law)
    assert hash(Frequencies(given)) == hash(Frequencies(law))


@pytest.mark.parametrize("law", ["zip", "zipf:0", "zipf:-1", "zipf:x", "zipf:1e3", "uniform"])
def test_other_laws_are_refused(law: str) -> None:
    with pytest.raises(InvalidSettingError, match="is not a law of frequencies; write 'equal', or 'zipf:'"):
        Frequencies(law)


def write(folder: Path, text: str, name: str = "pets.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_gives_space_meanings_and_weights(tmp_path: Path) -> None:
    text = "kind,legs,Weight\ndog,10,1\ncat,2,2.5\ndog,2,0.5\ndog,10,1\n"
    space, found = read_meanings(write(tmp_path, text))
    assert str(space) == "2x2"
    assert found.value_names == (("cat", "dog"), ("2", "10"))  # numbers in the order of their size
    numbers, weights = found.of_seed(space, 7)
    assert space.meanings(numbers).tolist() == [[0, 0], [1, 0], [1, 1]]
    assert weights.tolist() == [0.5, 0.1, 0.4]
    equal = found.with_law("equal")
    assert equal.of_seed(space, 7)[1].tolist() == [1 / 3] * 3
    assert equal.config == {"existing": found.file, "frequencies": "equal"}


def test_rows_without_weights_are_counted_and_the_file_is_named_by_its_content(tmp_path: Path) -> None:
    space, counted = read_meanings(write(tmp_path, "a;b\nx;1\nx;1\ny;2\nz;2\n"))
    assert str(space) == "3,2"
    assert counted.weights is not None
    assert counted.weights.tolist() == [2, 1, 1]
    assert read_meanings(write(tmp_path, "a;b\ny;2\nx;1\nz;2\nx;1\n"))[1] == counted
    assert read_meanings(write(tmp_path, "a;b\ny;2\nx;1\nz;2\n"))[1] != counted
    same = write(tmp_path, counted.to_csv(space).decode(), "kept.csv")
    assert read_meanings(same)[1].file.partition("@")[2] == counted.file.partition("@")[2]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n", "has no rows"),
        ("weight\n1\n", "a column per attribute"),
        ("a,weight\nx,0\n", "positive numbers; row 1 has '0'"),
        ("a,weight\nx,1\ny,many\n", "row 2 has 'many'"),
        ("a,b\nx,1\n,2\n", "no value of 'a' in row 2"),
        ("b,a,a\n1,2,3\n", "pets.csv': Columns 2 and 3 are both called 'a' in line 1"),
        ("a,weight,Weight\nx,1,9\ny,2,1\n", "several columns of weights, weight and Weight"),
        ("a,weight\nx,1e308\ny,1e308\n", "too large for their sum"),
        (",a\n10,x\n12,y\n", "Column 1 has no name"),
    ],
)
def test_files_that_are_refused(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(IcyError, match=sentence):
        read_meanings(write(tmp_path, text))


@pytest.mark.parametrize("text", [",a,b\n0,x,1\n1,y,2\n", ";a;b\n1;x;1\n2;y;2\n", "a,b,,\nx,1,,\ny,2,,\n"])
def test_row_numbers_and_empty_columns_without_a_name_are_not_attributes(text: str, tmp_path: Path) -> None:
    _, found = read_meanings(write(tmp_path, text))
    assert found.value_names == (("x", "y"), ("1", "2"))


@pytest.mark.parametrize("index", [["a"], ["b", "a"]])
def test_an_index_with_a_name_is_an_attribute_of_a_parquet_file(index: list[str], tmp_path: Path) -> None:
    table = pd.DataFrame({"a": ["x", "y", "y"], "b": [1, 2, 1]}, index=[5, 7, 9])
    table.to_parquet(tmp_path / "plain.parquet")
    table.set_index(index).to_parquet(tmp_path / "index.parquet")
    assert read_meanings(tmp_path / "plain.parquet")[0].attributes == 2
    assert sorted(read_meanings(tmp_path / "index.parquet")[1].value_names or ()) == [("1", "2"), ("x", "y")]


@pytest.mark.parametrize("rows", ["x\nNAN\n1\n", "1\nNAN\nx\n"])
def test_names_that_look_like_nan_have_one_order(tmp_path: Path, rows: str) -> None:
    _, found = read_meanings(write(tmp_path, f"a\n{rows}".replace("x", "2")))
    assert found.value_names == (("1", "2", "NAN"),)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist; a space is attributes x values"):
        read_meanings(tmp_path / "none.csv")


@pytest.mark.parametrize("rows", ["1\n1.0\n01\n", "01\n1.0\n1\n", "1.0\n01\n1\n"])
def test_equal_numbers_in_several_spellings_have_one_order(tmp_path: Path, rows: str) -> None:
    """The order of a set of texts differs between processes, and the numbers of meanings must not."""
    _, found = read_meanings(write(tmp_path, f"a\n{rows}2\n"))
    assert found.value_names == (("01", "1", "2"),)


def test_a_file_is_read_again_only_if_it_changes(tmp_path: Path) -> None:
    file = write(tmp_path, "a;b\nx;1\ny;2\n")
    first = read_meanings(file)
    assert read_meanings(file) is first
    assert read_meanings(write(tmp_path, "a;b\nx;1\ny;3\nz;3\n"))[0].size_of_each == (3, 2)


# -- which columns are attributes: as for files of languages -----------------------------------------------------------

PAIRS = {"color": list("rrbb"), "size": [1, 2, 1, 2]}
MORE: dict[str, list[Any]] = {  # columns that are not attributes, and the warning
    "message": ["ab", "ac", "cb", "cc"],
    "Utterance": ["a b", "a c", "c b", "c c"],
    "tokens": ["0 1", "0 2", "2 1", "2 2"],
    "t0": [3, 4, 5, 6],
    "message_length": [2, 2, 1, 2],
    "receiver_output": [0.5, 0.25, 0.125, 0.75],
}
DOUBTFUL: dict[str, list[Any]] = {  # columns that are attributes, with a warning
    "id": [1, 2, 3, 4],
    "sample": ["s1", "s2", "s3", "s4"],
    "score": [0.5, 0.25, 0.125, 0.75],
    "count": [1, 1, 7, 1],
    "Frequency": [0.1, 0.1, 0.4, 0.4],
    "weights": [1, 1, 2, 2],
    "n": [5, 5, 5, 6],
}


def table(folder: Path, suffix: str, columns: dict[str, list[Any]]) -> Path:
    frame, path = pd.DataFrame(columns), folder / f"table{suffix}"
    if suffix == ".json":
        frame.to_json(path, orient="table")
    elif suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".feather":
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep=";" if suffix == ".txt" else ",")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".csv.gz", ".parquet", ".feather", ".json", ".jsonl"])
@pytest.mark.parametrize("name", list(MORE))
def test_columns_that_are_no_attributes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, suffix: str, name: str
) -> None:
    file = table(tmp_path, suffix, {**PAIRS, name: MORE[name], "weight": [1, 2, 3, 4]})
    space, found = read_meanings(file)
    assert (str(space), found.weights is not None and found.weights.tolist()) == ("2x2", [3, 4, 1, 2])
    assert f"color and size are attributes; not used: {name}" in caplog.text
    if "message_length" != name != "receiver_output":  # the rule of `icy metrics`
        scored = read_table(file, weights="weight")
        assert scored.attribute_names == ("color", "size")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("name", list(DOUBTFUL))
def test_doubtful_columns_are_warned_of_as_by_the_metrics(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, suffix: str, name: str
) -> None:
    sizes = read_meanings(table(tmp_path, suffix, {**PAIRS, name: DOUBTFUL[name]}))[0].size_of_each
    assert sizes == (2, 2, len(set(DOUBTFUL[name])))
    assert f"The column '{name}'" in caplog.text
    alone = {"message": MORE["message"]}
    caplog.clear()
    read_table(table(tmp_path, suffix, {**PAIRS, name: DOUBTFUL[name], **alone}))
    assert name == "score" or f"The column '{name}'" in caplog.text


def test_columns_with_known_names_of_meanings_next_to_messages(tmp_path: Path) -> None:
    file = table(tmp_path, ".csv", {"m0": [0, 1, 1], "m1": [2, 3, 2], "seed": [1, 2, 3], "message": ["a", "b", "c"]})
    assert str(read_meanings(file)[0]) == "2x2"
    lists = table(tmp_path, ".jsonl", {"meaning": [[0, 5], [1, 5], [1, 6]], "message": ["a", "b", "c"]})
    assert str(read_meanings(lists)[0]) == "2x2"
    plain = table(tmp_path, ".parquet", {"concept": ["x", "y", "x"], "hue": [1, 2, 2]})
    assert read_meanings(plain)[1].value_names == (("x", "y"), ("1", "2"))  # no messages: all columns


def test_a_language_and_a_folder(tmp_path: Path) -> None:
    language = Language("2,3", [[0], [1], [2], [3], [4], [5]], vocab_size=6)
    with pytest.raises(InvalidSettingError, match="a language with all meanings of 2,3; give these sizes instead"):
        read_meanings(language.save(tmp_path / "mine.csv"))
    pd.DataFrame({**PAIRS}).to_parquet(tmp_path / "parts", partition_cols=["color"])
    assert str(read_meanings(tmp_path / "parts")[0]) == "2x2"


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        ("red,big\nred,small\nblue,big\nblue,small\n", "2x2"),
        ("0,0\n0,1\n1,0\n2,2\n", "2x3"),
        ("red\tbig\tx\nred\tsmall\ty\nblue\tbig\tx\n", "2x2"),
        ("red;1\nblue;1\nred;2\n", "2x2"),
    ],
)
def test_a_table_without_a_header_loses_no_meaning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rows: str, sizes: str
) -> None:
    _, found = read_meanings(write(tmp_path, rows))
    assert found.weights is not None
    assert found.weights.sum() == rows.count("\n")
    assert "was read without a header line" in caplog.text


@pytest.mark.parametrize("rows", ["red,1\nblue,2\ngreen,3\npink,4\n", "1.5,x\n2.5,y\n1.5,z\n", "a,x\na,y\nb,z\nc,y\n"])
def test_a_first_line_that_may_be_a_meaning_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rows: str
) -> None:
    _, found = read_meanings(write(tmp_path, rows))
    assert found.weights is not None
    assert found.weights.sum() == rows.count("\n") - 1
    assert "line 1 was read as names of columns; if it is a meaning, add a line with names above" in caplog.text or (
        "line 1 holds the names of columns" in caplog.text
    )
    _, whole = read_meanings(write(tmp_path, f"A,B\n{rows}", "named.csv"))
    assert whole.weights is not None
    assert whole.weights.sum() == rows.count("\n")


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_weights_may_have_decimal_commas(tmp_path: Path, separator: str) -> None:
    text = "a;weight\nx;0,5\ny;1,25\nx;2\n".replace(";", separator)
    assert read_meanings(write(tmp_path, text))[1].of_seed(MeaningSpace(1, 2), 0)[1].tolist() == [
        2.5 / 3.75,
        1.25 / 3.75,
    ]


@pytest.mark.parametrize("code", ["01", ("-1", "1"), ("no", "yes"), ("False", "True")])
def test_one_hot_columns_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture, code: Sequence[str]) -> None:
    bits = ["00101", "01010", "10001"]
    text = "a,b,c,d,e\n" + "".join(",".join(code[int(bit)] for bit in row) + "\n" for row in bits)
    assert str(read_meanings(write(tmp_path, text))[0]) == "5x2"
    assert "columns look like one-hot vectors of 3 and 2 values, and are read as attributes of two" in caplog.text
