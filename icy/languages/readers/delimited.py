"""Tables of text with a header line: csv, tsv, and the like, of any usual separator and encoding."""

from __future__ import annotations

import csv
import io
from typing import Any

from icy.core.csv_files import MISSING, separated
from icy.core.errors import InvalidSettingError, StoreError
from icy.languages.values import NUMBER

from .columns import require_distinct
from .found import File, Found


def read(file: File) -> Found | None:
    """Read a table; an empty entry is missing, and "nan" and "null" are texts like any other.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: no rows, a name that several columns have, or a row of more or fewer entries than the
            header.
    """
    if file.path.is_dir():
        return None
    try:
        separator, text = separated(file.text, "\t" if file.path.suffix.lower() == ".tsv" else ",")
        rows = _rows(text, separator)
        if any("\n" in entry for _, row in rows for entry in row):  # is a quote only a letter?
            plain = _rows(text, separator, csv.QUOTE_NONE)
            if len({len(row) for _, row in plain}) == 1:
                rows = plain
    except (OSError, ValueError, csv.Error) as error:
        raise StoreError(f"The table '{file.path}' cannot be read: {str(error).strip()}.") from error
    if not rows:
        raise StoreError(f"The table '{file.path}' cannot be read: it is empty.")
    (line, header), *body = rows
    require_distinct(header, f"in line {line}")
    if not body:
        raise InvalidSettingError(f"The table '{file.path}' has no rows.")
    for line, row in body:
        if len(row) != len(header):
            raise InvalidSettingError(f"Line {line} has {len(row)} entries, and the header {len(header)} columns.")
    columns = map(_with_gaps, zip(*(row for _, row in body), strict=True))
    return Found(dict(zip(header, columns, strict=True)), places=[line for line, _ in body], place="line")


def _with_gaps(column: tuple[str, ...]) -> list[str | None]:
    """Return entries, None where one is empty or, among numbers, a word for a missing value."""
    numeric = all(NUMBER.fullmatch(entry) or entry in MISSING for entry in column)
    return [None if not entry or (numeric and entry in MISSING) else entry for entry in column]


def _rows(text: str, separator: str, quoting: Any = csv.QUOTE_MINIMAL) -> list[tuple[int, list[str]]]:
    """Return the entries of every row that is not blank, without spaces around them, and the line where it ends."""
    usual = csv.field_size_limit(max(len(text), 1))  # an entry may be as long as the file
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, quoting=quoting)
        return [(reader.line_num, [entry.strip() for entry in row]) for row in reader if row]
    finally:
        csv.field_size_limit(usual)
