"""Files of text: tables with a header line of any separator and encoding; JSON and JSON lines."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.files import MISSING_WORDS, is_index, separated
from icy.languages.rule import Values
from icy.languages.texts import whole_text
from icy.languages.values import NUMBER

from .files import File, Found
from .tables import meanings_by_name, messages_by_name, require_distinct

# -- tables of text with a header line ---------------------------------------------------------------------------------


SCAN = re.compile(r"^IN: (.+) OUT: (.+)$", re.MULTILINE)
NAMELESS = r"(Unnamed: \d+)?"  # pandas names a column without a name when it reads it
NUMBERED = "no header line: columns have numbers, from 1"
log = logging.getLogger(__name__)


def read_delimited(file: File) -> Found | None:
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


# -- JSON and JSON lines -----------------------------------------------------------------------------------------------


SUFFIXES = (".json", ".jsonl", ".ndjson")
LINES = (".jsonl", ".ndjson")
BEFORE = b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"  # marks of encodings and spaces
WRAPPERS = ("observations", "data", "rows", "records", "pairs")
CBM_PART = re.compile(r"[^\s.]+(\.[^\s.]+)*")  # words or concepts between points
END = "0"  # end of a message of CBM24
FORMS = (
    'rows are objects, as in {"meaning": [0, 1], "message": [3, 4]}, pairs, as in [[3, 4], ["red", "ball"]], or '
    "messages alone, as in [3, 4]"
)


def read_json(file: File) -> Found | None:
    """Read objects, an object of columns, pairs of a message and a meaning, or messages without meanings.

    Raises:
        InvalidSettingError: rows differ in kind, or have another form.
        StoreError: the file is damaged.
    """
    start, suffix = file.head.lstrip(BEFORE)[:1], file.path.suffix.lower()
    if not file.lines or (start not in (b"{", b"[") and not (start == b'"' and suffix in SUFFIXES)):
        return None
    parsed = _parsed(file, suffix)
    if parsed is None:
        return None
    rows, lines = parsed
    wrapper = ""
    if isinstance(rows, dict):
        wrapper = next((name for name in WRAPPERS if _holds_rows(rows, name)), "")
        if wrapper and "schema" in rows:  # orient="table" of pandas: an index without a name holds row numbers
            rows = [{key: value for key, value in row.items() if key != "index"} for row in rows[wrapper]]
        else:
            rows = rows[wrapper] if wrapper else list(rows.values()) if _is_numbered(rows) else rows
    if isinstance(rows, dict):
        return Found(_columns_of_json(rows), "an object of columns")
    if not rows:
        raise InvalidSettingError("The file has no rows.")
    found = _of_rows(rows, [f"Line {n}" for n in lines] or [f"Entry {n + 1}" for n in range(len(rows))])
    if wrapper == "observations":  # csar separates tokens by spaces
        found = replace(found, what="observations of csar", tokens="spaces", phrases=True)
    return replace(found, places=lines, place="line") if lines else found


def _parsed(file: File, suffix: str) -> tuple[Values | dict[str, Any], Sequence[int]] | None:
    """Return the value of a JSON file, or the values of its lines and their numbers; None if the file is not JSON."""
    by_line = suffix in LINES or (len(file.lines) > 1 and _is_row_of_json(file.lines[0][1]))
    rows = []
    for number, text in file.lines if by_line else [(1, file.text)]:
        try:
            rows.append(_row(text) if by_line else _loads(text))
        except (ValueError, RecursionError) as error:
            if not by_line and suffix not in SUFFIXES:
                return None
            line = number + getattr(error, "lineno", 1) - 1
            raise StoreError(f"Line {line} is not JSON: {getattr(error, 'msg', error)}.") from error
    if not by_line:
        return (rows[0] if isinstance(rows[0], (list, dict)) else rows), []
    if len(rows) == 1 and isinstance(rows[0], list) and rows[0] and _kind(rows[0]) == "a list of lists":
        return rows[0], []  # all rows in one line
    return rows, [number for number, _ in file.lines]


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=lambda name: None if name == "NaN" else float(name))


def _row(line: str) -> Any:
    """Parse a line; two lists without brackets around them, as on csar's page, are a pair."""
    row = _loads(f"[{line}]")
    return row[0] if len(row) == 1 else row


def _is_row_of_json(line: str) -> bool:
    try:
        return isinstance(_row(line), (list, dict))
    except (ValueError, RecursionError):
        return False


# -- objects and columns -----------------------------------------------------------------------------------------------


def _holds_rows(held: dict[str, object], name: str) -> bool:
    """Return whether an object has rows in its field `name`, as in csar, and no field of messages."""
    rows = held.get(name)
    if not isinstance(rows, list) or not rows or "columns" in held or messages_by_name(list(held)):
        return False
    return isinstance(rows[0], dict) or _is_pair(rows[0])


def _columns_of_json(held: dict[str, Any]) -> dict[str, Any]:
    """Return columns as lists; also convert the formats of pandas: objects by row number, and rows under "data"."""
    if isinstance(held.get("columns"), list) and isinstance(held.get("data"), list):
        return dict(zip(map(str, held["columns"]), map(list, zip(*held["data"], strict=True)), strict=True))
    if len({frozenset(entries) for entries in held.values() if _is_numbered(entries)}) > 1:
        raise InvalidSettingError("The columns have different numbers of rows.")
    return {
        name: [entries[key] for key in sorted(entries, key=int)] if _is_numbered(entries) else entries
        for name, entries in held.items()
    }


def _is_numbered(held: object) -> bool:
    return isinstance(held, dict) and bool(held) and all(key.isdecimal() for key in held)


# -- rows --------------------------------------------------------------------------------------------------------------


def _of_rows(rows: Values, where: Sequence[str]) -> Found:
    """Return the columns of objects, pairs or messages alone."""
    kinds = [_kind(row) for row in rows]
    if set(kinds) == {"an object"}:
        names = dict.fromkeys(name for row in rows for name in row)
        return Found({name: [row.get(name) for row in rows] for name in names}, "objects of JSON")
    if kinds == ["a list of numbers", "a list of texts"] * (len(rows) // 2):
        rows = list(map(list, zip(rows[::2], rows[1::2], strict=True)))  # as on the page of csar
    if all(map(_is_pair, rows)):
        return _of_pairs(rows, where)
    if any(set(kinds) <= {kind, "an empty list"} for kind in ("a text", "a list of numbers", "a list of texts")):
        what = "texts" if kinds[0] == "a text" else "lists of tokens"
        return Found({"message": rows}, what, (), ("message",), remarks=["messages without meanings"])
    other = next((row for row, kind in enumerate(kinds) if kind != kinds[0]), 0)
    first = f", but {where[0].lower()} holds {kinds[0]}" if other else ""
    raise InvalidSettingError(f"{where[other]} holds {kinds[other]}{first}; {FORMS}.")


def _kind(row: object) -> str:
    if not isinstance(row, list):
        return "an object" if isinstance(row, dict) else "a text" if isinstance(row, str) else json.dumps(row)
    if any(isinstance(entry, (list, dict)) for entry in row):
        return "a pair" if _is_pair(row) else "a list of lists"
    kinds = {"texts" if isinstance(entry, str) else "numbers" for entry in row}
    return f"a list of {' and '.join(sorted(kinds, reverse=True))}" if row else "an empty list"


def _is_pair(row: object) -> bool:
    return isinstance(row, list) and len(row) == 2 and all(isinstance(part, (list, str)) for part in row)


def _of_pairs(rows: Values, where: Sequence[str]) -> Found:
    """Return the columns of pairs of a message and a meaning."""
    messages, meanings = map(list, zip(*rows, strict=True))
    if all(isinstance(text, str) for text in messages + meanings):
        if any("." in text for text in messages + meanings):
            return _of_lines_of_cbm(messages, meanings, where)
        if len(rows) > 1 and all(re.fullmatch(r"\w+", text) for text in messages + meanings):
            raise InvalidSettingError(
                f"{where[0]} holds two words, which may be a message and its meaning, or two tokens; "
                'write objects, as in {"message": "ab", "meaning": "red"} or {"message": ["ab", "cd"]}.'
            )
    phrases = all(isinstance(m, list) for m in meanings) and any(isinstance(c, str) for m in meanings for c in m)
    columns = {"message": messages, "meaning": meanings}
    return Found(columns, "pairs of a message and a meaning", ("meaning",), ("message",), phrases=phrases)


def _of_lines_of_cbm(messages: list[str], phrases: list[str], where: Sequence[str]) -> Found:
    for place, *pair in zip(where, messages, phrases, strict=True):
        if not all(CBM_PART.fullmatch(part) for part in pair):
            raise InvalidSettingError(f'{place} does not have the form ["w.w.0", "c.c"], a message and a phrase.')
    words, concepts = ([text.split(".") for text in column] for column in (messages, phrases))
    ended = all(row[-1] == END and len(row) > 1 for row in words)
    alone = ended and not any(END in row[:-1] for row in words)
    padded = ended and not alone and not any(END in row[: row.index(END)] for row in words)
    remarks = [f"{END} ends messages, and is left out"] if alone else []
    remarks += [f"{END} ends and pads messages, and counts as a token unless it is given as eos"] if padded else []
    columns, what = {"message": words, "phrase": concepts}, "messages and phrases of CBM24"
    return Found(columns, what, ("phrase",), ("message",), phrases=True, eos=END if alone else None, remarks=remarks)
