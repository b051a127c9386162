"""Languages that icy saved."""

from __future__ import annotations

import zipfile

from icy.languages.language import Language
from icy.languages.storage import CSV_HEAD, PARQUET_KEY

from .found import File


def read(file: File) -> Language | None:
    """Read a language that icy saved; None if the file is anything else.

    Raises:
        StoreError: the file is damaged.
    """
    suffix = file.path.suffix.lower()
    if suffix == ".csv":
        own = bool(file.lines) and file.text.startswith(CSV_HEAD)
    elif suffix == ".parquet":
        own = file.head.startswith(b"PAR1") and _has_card(file)
    else:
        own = suffix == ".npz" and zipfile.is_zipfile(file.path) and "card.npy" in zipfile.ZipFile(file.path).namelist()
    return Language.load(file.path) if own else None


def _has_card(file: File) -> bool:
    import pyarrow.parquet

    try:
        return PARQUET_KEY in (pyarrow.parquet.read_schema(file.path).metadata or {})
    except (OSError, ValueError):  # damaged, which the reader of tables says
        return False
