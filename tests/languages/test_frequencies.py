"""Frequencies of meanings: laws, files, and their probabilities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.languages.frequencies import Frequencies, read_meanings
from icy.languages.meanings import MeaningSpace

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
        ("a,b\n", "must have a row per meaning"),
        ("weight\n1\n", "a column per attribute"),
        ("a,weight\nx,0\n", "positive numbers; row 1 has '0'"),
        ("a,weight\nx,1\ny,many\n", "row 2 has 'many'"),
        ("a,b\nx,1\n,2\n", "no value of 'a' in row 2"),
        ("a,b\nx,1,3\ny,2,4\n", "has a row with more entries than its header"),
        ("b,a,a\n1,2,3\n", "cannot be read as a table of meanings: columns 2 and 3 are both called 'a'"),
        ("", "is empty"),
        ("a,weight,Weight\nx,1,9\ny,2,1\n", "several columns of weights, weight and Weight"),
        ("a,b\n1,x\nNA,y\n", "no value of 'a' in row 2, but 'NA'"),
        ("a,weight\nx,1e308\ny,1e308\n", "too large for their sum"),
        (",a\n10,x\n12,y\n", "Column 1 of .* has no name"),
        ("a,\nx,1\ny,1\n", "Column 2 of .* has no name"),
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
    assert found.value_names == (("01", "1", "1.0", "2"),)


def test_a_file_is_read_again_only_if_it_changes(tmp_path: Path) -> None:
    file = write(tmp_path, "a;b\nx;1\ny;2\n")
    first = read_meanings(file)
    assert read_meanings(file) is first
    assert read_meanings(write(tmp_path, "a;b\nx;1\ny;3\nz;3\n"))[0].size_of_each == (3, 2)
