"""Files: whole or not at all, and csv files of any encoding."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pandas as pd
import pytest

import icy
from icy.analysis import bias_table
from icy.core.errors import StoreError
from icy.core.files import csv_text, free_name, is_inside, require_room, separated, write_atomically
from icy.core.text import csv_table
from icy.grammars import make_language
from icy.records.load import read_long
from icy.records.long_table import write_tables
from icy.records.store import Store
from icy.study.rows import COLUMNS, read_rows
from tests.helpers import long, mark_others

# -- writing files atomically ------------------------------------------------------------------------------------------


def test_a_failed_write_keeps_the_old_file_and_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(StoreError, match="The disk is full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_gives_an_error(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk or quota still has room for an empty file, so an empty file is not a test."""
    require_room(tmp_path)
    assert not list(tmp_path.iterdir())

    def sync(handle: int) -> None:
        if os.fstat(handle).st_size:
            raise OSError(number, "No space left on device")

    monkeypatch.setattr(os, "fsync", sync)
    write_atomically(tmp_path / "empty", b"")
    with pytest.raises(StoreError, match="The disk is full"):
        require_room(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize(
    "place", ["/etc/passwd", "../a", "a/../../b", "C:\\a", "\\\\host\\a", "a\\..\\b", "C:a", "a\0", ""]
)
def test_paths_outside_a_folder(place: str) -> None:
    assert not is_inside(place)
    assert is_inside("models/a..b.safetensors")


def test_free_names_have_numbers(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        path = free_name(tmp_path / "a.json", "odd")
        path.touch()
        names.append(path.name)
    assert names == ["a.json.odd", "a.json.odd1", "a.json.odd2"]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no umask")
@pytest.mark.parametrize(
    ("mask", "file", "folder"), [(0o022, 0o644, 0o755), (0o002, 0o664, 0o775), (0o077, 0o600, 0o700)]
)
def test_files_and_folders_honor_the_umask(tmp_path: Path, mask: int, file: int, folder: int) -> None:
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "a" / "b" / "open", b"")
        write_atomically(tmp_path / "a" / "private", b"", private=True)
        written = write_tables(Store(tmp_path / "store"))
        assert make_language("rot", "3x4").save(tmp_path / "rot.csv").stat().st_mode & 0o777 == file
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "a" / "b" / "open", *written)} == {file}
    assert (tmp_path / "a" / "private").stat().st_mode & 0o777 == 0o600
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "store")} == {folder}


# -- reading csv files -------------------------------------------------------------------------------------------------


# Text that pandas reads as missing values, numbers, truth values or infinity, and formulas of spreadsheets.
NAMES = [
    *("null", "NULL", "NA", "N/A", "n/a", "None", "none", "nan", "NaN", "-nan", "<NA>", "#N/A", "1.#IND", "-"),
    *("True", "false", "yes", "inf", "-inf", "Infinity", "1e5", "007", "1_000", "0x10", "1.50", "2024-01-01", "=1+1"),
    *("'tis", "a,b", "a;b", 'a"b', "ü", "名"),
]


@pytest.mark.parametrize("name", mark_others("slow", NAMES, lambda name: name in ("null", "1e5", "007", "a;b", "ü")))
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_names_of_models_and_grammars_are_text(tmp_path: Path, name: str, suffix: str) -> None:
    table = long({name: {"concat": 1.0, name: [0.5, 0.75]}}, options=name, key="12345e67")
    path = tmp_path / f"results{suffix}"
    if suffix == ".csv":
        csv_table(table).to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    found = read_long(path)
    assert list(found["grammar"]) == ["concat", name, name]
    assert set(found["model"]) == {f"sender/{name}"}
    assert set(found["options"]) == {name}
    assert set(found["key"]) == {"12345e67"}
    assert found["value"].tolist() == [1.0, 0.5, 0.75]
    cells = bias_table(path).rows[0][1]
    assert cells[name].mean == 0.625


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
@pytest.mark.parametrize("end", mark_others("slow", ["\n", "\r\n"], lambda end: end == "\r\n"))
def test_results_of_any_separator_and_encoding(tmp_path: Path, separator: str, encoding: str, end: str) -> None:
    lines = ["model,grammar,seed,value,measure", "sender/Müller,null,123,1.5,ratio", '"sender/A;B|C",rot,124,2,ratio']
    lines[2] = lines[2] if separator in ";|" else lines[2].replace('"', "")
    path = tmp_path / "results.csv"
    path.write_bytes((end.join(line.replace(",", separator) for line in lines) + end).encode(encoding))
    found = read_long(path)
    assert list(found["model"]) == ["sender/Müller", "sender/A;B|C"]
    assert list(found["grammar"]) == ["null", "rot"]
    assert found["value"].tolist() == [1.5, 2.0]


def test_decimal_commas_and_the_first_line_of_excel(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("sep=;\nmodel;grammar;seed;value;measure\nsender/A;rot;123;1,5;ratio\nsender/A;rot;124;2;ratio\n")
    assert read_long(path)["value"].tolist() == [1.5, 2.0]


def test_missing_numbers_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("model,grammar,seed,value,measure,own\nsender/A,rot,123,NA,ratio,NaN\nsender/A,NA,124,2,ratio,3\n")
    found = read_long(path)
    assert found["value"].isna().tolist() == found["own"].isna().tolist() == [True, False]
    assert list(found["grammar"]) == ["rot", "NA"]


def test_other_encodings_give_a_warning_and_binary_files_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes("größe\n".encode("latin-1"))
    assert csv_text(path) == "größe\n"
    assert "was read as Windows-1252" in caplog.text
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    with pytest.raises(icy.core.errors.StoreError, match="bytes that are not text"):
        read_long(path)


def test_separators_within_quotes_do_not_count() -> None:
    assert separated('"a;b;c",d\n1,2\n')[0] == ","
    assert separated("a\n1\n", "\t")[0] == "\t"


def test_rows_of_the_study_are_restored(tmp_path: Path) -> None:
    rows = pd.DataFrame([dict.fromkeys(COLUMNS, "007") | {"agent": name, "value": 0.5} for name in NAMES])
    csv_table(rows).to_csv(tmp_path / "rows.csv", index=False)
    found = read_rows(tmp_path / "rows.csv")
    assert list(found["agent"]) == NAMES
    assert set(found["person"]) == {"007"}
    assert set(found["value"]) == {0.5}
