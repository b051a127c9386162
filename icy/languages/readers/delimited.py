"""Tables of text with a header line: csv, tsv, and the like, of any usual separator and encoding."""

from __future__ import annotations

import csv
import io
import logging
import re
from collections import Counter
from typing import Literal

from icy.core.errors import InvalidSettingError
from icy.core.files import MISSING_WORDS, is_index, separated
from icy.languages.texts import whole_text
from icy.languages.values import NUMBER

from .files import File, Found
from .tables import meanings_by_name, messages_by_name, require_distinct

SCAN = re.compile(r"^IN: (.+) OUT: (.+)$", re.MULTILINE)
NAMELESS = r"(Unnamed: \d+)?"  # pandas names a column without a name when it reads it
NUMBERED = "no header line: columns have numbers, from 1"
log = logging.getLogger(__name__)


def read(file: File) -> Found | None:
    """Read a table; an empty entry is missing, and among numbers also a word such as "NA".

    Raises:
        ValueError: the file is not text, or empty.
        InvalidSettingError: a name shared by several columns, or a row with more or fewer entries than the
            header.
    """
    if file.path.is_dir():
        return None
    file.require_read()
    if len(pairs := SCAN.findall(file.text)) == len(file.lines) > 0:
        columns = {name: [pair[at].split() for pair in pairs] for at, name in enumerate(("IN", "OUT"))}
        return Found(columns, "commands and actions of SCAN", ["OUT"], ["IN"], place="line", phrases=True)
    separator, text = separated(file.text, "\t" if file.path.suffix.lower() == ".tsv" else ",")
    rows = _rows(text, separator)
    if any("\n" in entry for _, row in rows for entry in row):  # maybe a quote is only a letter
        plain = _rows(text, separator, csv.QUOTE_NONE)
        if len({len(row) for _, row in plain}) == 1:
            rows = plain
    rows = _without_comments([(line, row) for line, row in rows if any(row)])  # spreadsheets leave empty rows
    if not rows:
        raise ValueError("it is empty")
    (line, header), *body = rows
    for line_of_row, row in body:
        if len(row) != len(header):
            raise InvalidSettingError(
                f"Line {line_of_row} has {len(row)} entries, but the header {len(header)} columns; an entry "
                "that holds the separator needs quotes, and R's row names need a column name (as write.csv writes)."
            )
    remarks = [f"names of columns from line {line}"] if not _is_known(header) else []
    if _is_row(header, [row for _, row in body], file):
        header, body, named = [str(place + 1) for place in range(len(header))], rows, NUMBERED
        remarks = [NUMBERED]
    else:
        header = [header[0].lstrip("# ") or header[0], *header[1:]]  # numpy.savetxt writes "# " before it
        named = f"names from line {line}; if that is a row, choose by number: --message-columns 1" if remarks else ""
    entries = [tuple(row[place] for _, row in body) for place in range(len(header))]
    used = [
        place
        for place, name in enumerate(header)
        if not re.fullmatch(NAMELESS, name) or not is_index(entries[place], place)
    ]
    require_distinct([header[place] for place in used], f"in line {line}" + f" ({named})" * bool(named))
    columns = {header[place]: _with_gaps(entries[place]) for place in used}
    remarks += ["row numbers and empty columns left out"] if len(used) < len(header) else []
    decimal = "." if separator == "," else ","
    return Found(
        columns, places=[line for line, _ in body], place="line", remarks=remarks, decimal=decimal, header=named
    )


def _without_comments(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Leave out comments: lines with # that have another number of entries or come before known names of columns."""
    (usual, _), *_ = [*Counter(len(row) for _, row in rows).most_common(1), (0, 0)]
    rows = [(line, row) for line, row in rows if not row[0].startswith("#") or len(row) == usual]
    while len(rows) > 1 and rows[0][1][0].startswith("#") and _is_known(rows[1][1]) and not _is_known(rows[0][1]):
        rows = rows[1:]
    return rows


def _is_known(names: list[str]) -> bool:
    """Return whether icy knows some names of columns."""
    return bool(messages_by_name(names) or meanings_by_name(names))


def _is_row(first: list[str], body: list[list[str]], file: File) -> bool:
    """Return whether a table has no header: columns are chosen by number, or most entries of line 1 occur again below.

    Names of columns that pandas writes by default, 0, 1, 2 and so on, are a header.
    """
    if _is_known(first) or any(first == [str(n) for n in range(f, f + len(first))] for f in (0, 1)):
        return False
    chosen = [*file.meaning_columns, *file.message_columns, *([file.weights] if file.weights else [])]
    if chosen and all(map(str.isdecimal, chosen)) and not set(chosen) <= set(first):
        return True
    again = [any(row[place] == entry for row in body) for place, entry in enumerate(first) if entry]
    return 2 * sum(again) > len(again)


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
