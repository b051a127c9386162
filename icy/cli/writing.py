"""Files that commands write: whether they can be written, and rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from icy.errors import InvalidSettingError, StoreError, listed

from .printing import note

if TYPE_CHECKING:
    import pandas as pd


def checked_file(given: str, suffixes: Iterable[str], what: str) -> Path:
    """A file to write; said now if it cannot be, and not after hours of work.

    Args:
        given: where.
        suffixes: those that it may have.
        what: is written, as in "A plot is".

    Raises:
        InvalidSettingError: another suffix, or no such folder.
    """
    path, known = Path(given), list(suffixes)
    if path.suffix.lower() not in known:
        raise InvalidSettingError(f"{what} written as {listed(known, 'or')}; not as '{path.name}'.")
    if not path.absolute().parent.is_dir():
        raise InvalidSettingError(f"The folder {path.absolute().parent} does not exist.")
    return path


def checked_rows_file(given: str) -> Path:
    """The file to write rows to."""
    return checked_file(given, (".csv", ".parquet"), "Rows are")


def joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Several tables of the same columns, one after another."""
    import pandas as pd

    rows = pd.concat([part.set_axis(part.columns, axis=1) for part in parts], ignore_index=True)
    rows.attrs = {}  # what no file holds
    return rows


def write_rows(rows: pd.DataFrame, path: Path, quiet: bool) -> None:
    """Write rows, and say so."""
    try:
        rows.to_csv(path, index=False) if path.suffix.lower() == ".csv" else rows.to_parquet(path, index=False)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror or error}.") from error
    if not quiet:
        note(f"Written: {path}.")
