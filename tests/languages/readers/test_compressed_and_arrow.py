"""Compressed files, columns of Arrow in files and folders, and formats that icy does not read."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import icy
from icy.core.errors import InvalidSettingError, StoreError
from icy.languages.language import Language
from icy.languages.readers import read_table

FRAME = pd.DataFrame({"color": list("rrbb"), "size": [1, 2, 1, 2], "message": ["ab", "ac", "cb", "cc"]})
TABLE = pa.Table.from_pandas(FRAME)


def zipped(content: bytes, name: str) -> bytes:
    path = Path(name)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("table.csv", content)
    return path.read_bytes()


def zstandard(content: bytes) -> bytes:
    target = pa.BufferOutputStream()
    with pa.CompressedOutputStream(target, "zstd") as stream:
        stream.write(content)
    return bytes(target.getvalue().to_pybytes())


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard,
    "": gzip.compress,
}


def contents(folder: Path) -> dict[str, bytes]:
    FRAME.to_parquet(folder / "x.parquet")
    np.savez(folder / "x.npz", meanings=[[0, 1], [0, 2], [1, 1], [1, 2]], messages=[[0, 1], [0, 2], [2, 1], [2, 2]])
    return {
        "x.csv": FRAME.to_csv(index=False).encode(),
        "x.tsv": FRAME.to_csv(index=False, sep="\t").encode("utf-16"),
        "x.jsonl": FRAME.to_json(orient="records", lines=True).encode(),
        "x.json": FRAME.to_json(orient="split").encode(),
        "x.parquet": (folder / "x.parquet").read_bytes(),
        "x.npz": (folder / "x.npz").read_bytes(),
    }


@pytest.mark.parametrize("suffix", list(COMPRESSED))
def test_compressed_files(tmp_path: Path, suffix: str) -> None:
    for name, content in contents(tmp_path).items():
        path = tmp_path / f"{name}{suffix}"
        path.write_bytes(COMPRESSED[suffix](content))
        table = read_table(path)
        assert (len(table), table.attributes, table.length, table.name) == (4, 2, 2, "x")


def test_archives_and_languages_and_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv.zip").write_bytes(zipped(FRAME.to_csv(index=False).encode(), "b.zip"))
    assert read_table("a.csv.zip").attribute_names == ("color", "size")
    language = icy.make_language("rot", "2x3", 4, 2, 1)
    (tmp_path / "l.csv.gz").write_bytes(gzip.compress(language.save("l.csv").read_bytes()))
    assert Language.read("l.csv.gz") == language
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"a,message\n1,2,3\n", mtime=0))
    with pytest.raises(InvalidSettingError, match=r"'d.csv.gz': Line 2 has 3 entries"):
        read_table("d.csv.gz")
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(b"a,message\n1,2\n" * 99, mtime=0)[:30])
    with pytest.raises(StoreError, match=r"'e.csv.gz' cannot be read: Compressed file ended"):
        read_table("e.csv.gz")


def save_to_disk(folder: Path, frame: pd.DataFrame) -> None:
    """Write streams of Arrow like Dataset.save_to_disk of Hugging Face."""
    folder.mkdir(parents=True)
    for n, part in enumerate((frame[:1], frame[1:])):
        table = pa.Table.from_pandas(part, preserve_index=False)
        with pa.ipc.new_stream(str(folder / f"data-0000{n}-of-00002.arrow"), table.schema) as stream:
            stream.write_table(table)
    (folder / "state.json").write_text("{}")
    (folder / "dataset_info.json").write_text(json.dumps({"features": {}}))


def test_streams_and_folders_of_arrow(tmp_path: Path) -> None:
    save_to_disk(tmp_path / "set", FRAME)
    assert read_table(tmp_path / "set").messages.tolist() == [[0, 1], [0, 2], [2, 1], [2, 2]]
    assert len(read_table(tmp_path / "set" / "data-00001-of-00002.arrow")) == 3
    for split in ("train", "test"):
        save_to_disk(tmp_path / "dict" / split, FRAME)
    with pytest.raises(InvalidSettingError, match=r"holds 2 data sets; choose one: '.*test' or '.*train'"):
        read_table(tmp_path / "dict")
    assert len(read_table(tmp_path / "dict" / "train")) == 4
    (tmp_path / "old").mkdir()
    for n, part in enumerate((TABLE[:3], TABLE[3:])):
        pyarrow.feather.write_feather(part, str(tmp_path / "old" / f"dataset{n}.arrow"))
    assert len(read_table(tmp_path / "old")) == 4
    pyarrow.feather.write_feather(TABLE, str(tmp_path / "f.arrow"))
    assert len(read_table(tmp_path / "f.arrow")) == 4


@pytest.mark.parametrize("columns", [["color"], ["color", "size"]])
def test_folders_of_parquet(tmp_path: Path, columns: list[str]) -> None:
    pyarrow.parquet.write_to_dataset(TABLE, str(tmp_path / "parts"), partition_cols=columns)
    (tmp_path / "parts" / "_SUCCESS").write_text("")
    table = read_table(tmp_path / "parts")
    assert sorted(table.attribute_names) == ["color", "size"]
    assert sorted(table.meanings.tolist()) == [[0, 1], [0, 2], [1, 1], [1, 2]] or table.attribute_names[0] == "size"
    assert len(table) == 4


@pytest.mark.parametrize("kind", ["struct", "map", "null"])
@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.jsonl", "a.json"])
def test_structs_and_maps_are_attributes(tmp_path: Path, kind: str, name: str) -> None:
    rows: list[dict[str, object] | None] = [{"color": "r", "size": 1}, {"color": "b", "size": 2}, None]
    rows = rows if kind == "null" else [*rows[:2], {"color": "b", "size": 1}]
    held = [None if row is None else {k: str(v) for k, v in row.items()} for row in rows]
    column = pa.array(held)
    if kind == "map":
        column = pa.array([list(row.items()) for row in held if row], type=pa.map_(pa.string(), pa.string()))
    messages = ["ab", "cd", "cb"]
    if name.endswith("parquet"):
        pyarrow.parquet.write_table(pa.table({"meaning": column, "message": messages}), tmp_path / name)
    elif name.endswith("feather"):
        pyarrow.feather.write_feather(pa.table({"meaning": column, "message": messages}), str(tmp_path / name))
    elif name.endswith("jsonl"):
        lines = [json.dumps({"meaning": m, "message": s}) for m, s in zip(rows, messages, strict=True)]
        (tmp_path / name).write_text("\n".join(lines))
    else:
        (tmp_path / name).write_text(json.dumps({"meaning": rows, "message": messages}))
    table = read_table(tmp_path / name, missing="drop")
    assert table.attribute_names == ("meaning.color", "meaning.size")
    assert table.meanings.tolist() == [[1, 1], [0, 2], [0, 1]][: 2 if kind == "null" else 3]


def test_the_row_number_of_pandas_is_no_attribute(tmp_path: Path) -> None:
    FRAME.to_json(tmp_path / "a.json", orient="table")
    assert read_table(tmp_path / "a.json").attribute_names == ("color", "size")
    FRAME.set_index("color").to_json(tmp_path / "b.json", orient="table")
    assert read_table(tmp_path / "b.json").attribute_names == ("color", "size")
    FRAME.to_csv(tmp_path / "c.csv")
    pd.read_csv(tmp_path / "c.csv").to_csv(tmp_path / "d.csv", index=False)  # a column "Unnamed: 0"
    assert read_table(tmp_path / "d.csv").attribute_names == ("color", "size")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"Obj\x01\x04\x14avro", "an Avro file"),
        (b"\x89HDF\r\n\x1a\n", "a file of HDF5 or NetCDF"),
        (gzip.compress(b"RDX3\nX\n", mtime=0), "a file of R"),
        (b"name" + bytes(253) + b"ustar", "an archive of tar"),
    ],
)
def test_other_formats_are_named(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "a.dat").write_bytes(content)
    with pytest.raises(
        StoreError, match=f"'.*a.dat' is {kind}, which icy does not read; save the table as csv, parquet"
    ):
        read_table(tmp_path / "a.dat")


def test_a_file_of_excel_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "")
        archive.writestr("other.xml", "")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", "a,message")
        archive.writestr("b.csv", "a,message")
    with pytest.raises(StoreError, match="is an archive, which icy does not read; save"):
        read_table(tmp_path / "a.zip")
    with pytest.raises(StoreError, match="is a file of Excel, which icy does not read; save"):
        read_table(tmp_path / "a.xlsx")
