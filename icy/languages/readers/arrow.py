"""Columns of parquet, feather and streams of Arrow; their entries may be lists, structs and maps."""

from __future__ import annotations

import re
from pathlib import Path

from icy.core.errors import InvalidSettingError
from icy.core.text import listed, natural
from icy.languages.containers import Container, Values

from .columns import require_distinct
from .files import File, Found

INDEX = re.compile(r"__index_level_\d+__")  # written by pandas
MAGIC = {b"PAR1": "parquet", b"ARRO": "feather", b"FEA1": "feather", b"\xff\xff\xff\xff": "stream"}


def read(file: File) -> Found | None:
    """Read a parquet or feather file, a stream of Arrow, or a folder with parts; None for other files and folders.

    A folder may be a partitioned table of parquet, or written by `save_to_disk` of Hugging Face's datasets.

    Raises:
        StoreError: the file is damaged.
        InvalidSettingError: no rows, a name shared by several columns, or a folder of several data sets.
    """
    parts = [file.path]
    kind = MAGIC.get(file.head[:4], "parquet" if file.path.suffix.lower() == ".parquet" else "")
    if file.path.is_dir():
        streams = sorted(file.path.rglob("data*.arrow"), key=lambda path: natural(path.name))
        suffixes = {path.suffix for path in file.path.rglob("[!._]*") if path.is_file()}
        kind = "stream" if streams else "parquet" if suffixes == {".parquet"} else ""
        parts = streams or parts
    if not kind:
        return None
    if len(folders := sorted({f"'{part.parent}'" for part in parts})) > 1:
        raise InvalidSettingError(f"'{file.path}' holds {len(folders)} data sets; choose one: {listed(folders, 'or')}.")
    table = _table(kind, parts)
    require_distinct(table.column_names, "in its schema")
    names = [name for name in table.column_names if not INDEX.fullmatch(name)]
    if kind == "parquet" and file.path.is_file():  # pandas writes its index after the columns
        index = (table.schema.pandas_metadata or {}).get("index_columns", ())
        names.sort(key=lambda name: name not in index)
    return Found({name: _entries(table[name]) for name in names})


def _table(kind: str, parts: list[Path]) -> Container:
    import pyarrow.feather
    import pyarrow.parquet

    if kind == "parquet":
        return pyarrow.parquet.read_table(*parts)
    tables = [
        pyarrow.ipc.open_stream(part.read_bytes()).read_all()
        if MAGIC.get(File(part).head[:4]) == "stream"
        else pyarrow.feather.read_table(part)
        for part in parts
    ]
    return pyarrow.concat_tables(tables)


def _entries(column: Container) -> Values:
    entries = column.to_pylist()
    if str(column.type).startswith("map<"):
        return [None if pairs is None else dict(pairs) for pairs in entries]
    return [entry.strip() or None if isinstance(entry, str) else entry for entry in entries]
