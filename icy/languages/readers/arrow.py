"""Columns of parquet and feather files; their entries may be lists."""

from __future__ import annotations

import re

from icy.core.errors import InvalidSettingError
from icy.languages.containers import Container, Values
from icy.languages.storage import reading

from .columns import require_distinct
from .found import File, Found

INDEX = re.compile(r"__index_level_\d+__")  # written by pandas
MAGIC = {b"PAR1": "parquet", b"ARRO": "feather", b"FEA1": "feather"}


def read(file: File) -> Found | None:
    """Read a parquet or feather file; None if the file is neither.

    Raises:
        StoreError: the file is damaged.
        InvalidSettingError: no rows, or a name shared by several columns.
    """
    kind = MAGIC.get(file.head[:4], "parquet" if file.path.suffix.lower() == ".parquet" else "")
    if not kind:
        return None
    with reading(f"The table '{file.path}' cannot be read"):
        table = _table(file, kind)
        require_distinct(table.column_names, "in its schema")
        columns = {name: _entries(column) for name, column in zip(table.column_names, table.columns, strict=True)}
    columns = {name: entries for name, entries in columns.items() if not INDEX.fullmatch(name)}
    if not table.num_rows:
        raise InvalidSettingError("The table has no rows.")
    return Found(columns)


def _table(file: File, kind: str) -> Container:
    import pyarrow.feather
    import pyarrow.parquet

    return pyarrow.parquet.read_table(file.path) if kind == "parquet" else pyarrow.feather.read_table(file.path)


def _entries(column: Container) -> Values:
    return [entry.strip() or None if isinstance(entry, str) else entry for entry in column.to_pylist()]
