"""Tables of text with a header line: csv, tsv, and the like, of any usual separator and encoding."""

from __future__ import annotations

import csv
import io
import logging
from typing import Literal

from icy.core.csv_files import MISSING_WORDS, is_index, separated
from icy.core.errors import InvalidSettingError, StoreError
from icy.languages.texts import whole_text
from icy.languages.values import NUMBER

from .columns import require_distinct
from .found import File, Found

log = logging.getLogger(__name__)


def read(file: File) -> Found | None:
    """Read a table; an empty entry is missing, and among numbers also a word such as "NA".

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: no rows, a name shared by several columns, or a row with more or fewer entries than the
            header.
    """
    if file.path.is_dir():
        return None
    try:
        separator, text = separated(file.text, "\t" if file.path.suffix.lower() == ".tsv" else ",")
        rows = _rows(text, separator)
        if any("\n" in entry for _, row in rows for entry in row):  # maybe a quote is only a letter
            plain = _rows(text, separator, csv.QUOTE_NONE)
            if len({len(row) for _, row in plain}) == 1:
                rows = plain
    except (OSError, ValueError, csv.Error) as error:
        raise StoreError(f"The table '{file.path}' cannot be read: {str(error).strip()}.") from error
    rows = [(line, row) for line, row in rows if any(row)]  # spreadsheets leave empty rows
    if not rows:
        raise StoreError(f"The table '{file.path}' cannot be read: it is empty.")
    (line, header), *body = rows
    if not body:
        raise InvalidSettingError(f"The table '{file.path}' has no rows.")
    for line_of_row, row in body:
        if len(row) != len(header):
            raise InvalidSettingError(
                f"Line {line_of_row} has {len(row)} entries, but the header {len(header)} columns; an entry "
                "that holds the separator needs quotes, and R's row names need a column name (as write.csv writes)."
            )
    entries = list(zip(*(row for _, row in body), strict=True))
    used = [place for place, name in enumerate(header) if name or not is_index(entries[place], place)]
    require_distinct([header[place] for place in used], f"in line {line}")
    columns = {header[place]: _with_gaps(entries[place]) for place in used}
    remarks = ["row numbers and empty columns left out"] if len(used) < len(header) else []
    decimal = "." if separator == "," else ","
    return Found(columns, places=[line for line, _ in body], place="line", remarks=remarks, decimal=decimal)


def _with_gaps(column: tuple[str, ...]) -> list[str | None]:
    """Replace empty entries and, among numbers, words like "NA" by None; write 6.0 as 6 if all numbers are whole.

    Pandas writes whole numbers with a point if some are missing.
    """
    words = [entry for entry in column if entry in MISSING_WORDS]
    numbers = [entry for entry in column if entry and entry not in MISSING_WORDS]
    if not all(map(NUMBER.fullmatch, numbers)):
        if words:
            log.warning("The entry '%s' was read as a name; leave it empty if it means a missing value.", words[0])
        return [entry or None for entry in column]
    whole = [whole_text(entry) for entry in numbers]
    if all(entry.lstrip("-").isdecimal() for entry in whole) and any("." in entry for entry in numbers):
        column = tuple(whole_text(entry) for entry in column)
    return [None if not entry or entry in MISSING_WORDS else entry for entry in column]


def _rows(text: str, separator: str, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL) -> list[tuple[int, list[str]]]:
    """Return the last line number and the stripped entries of each row that is not blank."""
    usual = csv.field_size_limit(max(len(text), 1))  # an entry may be as long as the file
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, quoting=quoting)
        return [(reader.line_num, [entry.strip() for entry in row]) for row in reader if row]
    finally:
        csv.field_size_limit(usual)
