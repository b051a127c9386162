"""Languages that icy saved."""

from __future__ import annotations

from icy.languages.language import Language
from icy.languages.storage import CSV_HEAD, PARQUET_KEY

from .files import File


def read(file: File) -> Language | None:
    """Read a language that icy saved; None for other files.

    Raises:
        StoreError: the file is damaged.
    """
    suffix = file.path.suffix.lower()
    if suffix == ".csv":
        own = bool(file.lines) and file.text.startswith(CSV_HEAD)
    elif suffix == ".parquet":
        own = file.head.startswith(b"PAR1") and _has_card(file)
    else:
        own = suffix == ".npz" and "card.npy" in file.members
    return Language.load(file.path) if own else None


def _has_card(file: File) -> bool:
    import pyarrow.parquet

    try:
        return PARQUET_KEY in (pyarrow.parquet.read_schema(file.path).metadata or {})
    except (OSError, ValueError):  # a damaged file; the reader of tables reports it
        return False
