"""Files: write them atomically, and read csv files of any encoding and separator."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import logging
import os
import re
import secrets
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, BinaryIO

from .errors import StoreError
from .text import from_csv_table

if TYPE_CHECKING:
    import pandas as pd


# -- write files atomically: readers never see an incomplete file, even after a crash ----------------------------------


FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}  # the disk is full, or the user's quota
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)  # only on Windows
ROOM = 1 << 18  # free bytes that a folder must have: more than a record needs


@contextlib.contextmanager
def whole_file(path: Path, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing under a temporary name; rename the complete file to `path`.

    Args:
        path: path of the file.
        private: whether only its owner may read it; otherwise the umask of the process applies.

    Raises:
        OSError: the folder cannot be written, or the disk is full. An earlier file at `path` is kept.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    handle = os.open(temporary, CREATE, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # otherwise a power failure could leave an empty file at `path`
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def write_atomically(path: Path, content: bytes | memoryview, option: str = "--out", *, private: bool = False) -> None:
    """Write a file under a temporary name, then rename it; make its folder if it does not exist.

    Args:
        path: path of the file.
        content: content of the file.
        option: option that chooses another path, for the error.
        private: whether only its owner may read it; otherwise the umask of the process applies.

    Raises:
        StoreError: the folder cannot be written, or the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, private) as file:
            file.write(content)
    except OSError as error:
        if error.errno in FULL:
            sentence = f"The disk is full, so {path} was not written; finished results are kept."
            raise StoreError(f"{sentence} Free some space and run the same command again.") from error
        reason = error.strerror or error
        raise StoreError(f"Cannot write {path}: {reason}. Choose another place with {option}.") from error


def require_room(folder: Path) -> None:
    """Check that a folder is writable and the disk is not full: write, sync and remove a test file.

    Raises:
        StoreError: as for `write_atomically`.
    """
    probe = folder / ".writable"
    write_atomically(probe, os.urandom(ROOM))  # random bytes, which no file system can compress
    probe.unlink(missing_ok=True)


def is_inside(place: str) -> bool:
    """Return whether a relative path stays inside its folder, on every system.

    Example:
        >>> is_inside("models/a.safetensors"), is_inside("models/../../a"), is_inside("/a")
        (True, False, False)
    """
    paths = PurePosixPath(place), PureWindowsPath(place)
    return bool(place) and "\0" not in place and not any(p.anchor or ".." in p.parts for p in paths)


def free_name(path: Path, mark: str) -> Path:
    """Return an unused path in the same folder: the name with a suffix, and with a number if this name is used.

    Example:
        >>> free_name(Path("nowhere/a.json"), "odd").name
        'a.json.odd'
    """
    names = (path.with_name(f"{path.name}.{mark}{number or ''}") for number in range(10_000))
    return next(name for name in names if not name.exists())


# -- read csv files ----------------------------------------------------------------------------------------------------


log = logging.getLogger(__name__)
SEPARATORS = (",", ";", "\t", "|")
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None")  # in columns of numbers
MISSING_WORDS = (*MISSING[1:], "#N/A", "<NA>")  # words for a missing value, in tables of meanings and languages
MARKS = (  # byte order marks at the beginning of a file; UTF-32 first, because its mark begins with the mark of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
FIRST_LINE = re.compile(r"sep=([,;\t|])\r?\n")  # first line in which Excel names the separator
DECIMAL_COMMA = r"\s*[+-]?\d+(,\d+)?([eE][+-]?\d+)?\s*"


def csv_text(path: Path) -> str:
    """Return the text of a csv file in UTF-8, UTF-16 or UTF-32; other files are read as Windows-1252, with a warning.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not text.
    """
    content = path.read_bytes()
    encoding = next((name for mark, name in MARKS if content.startswith(mark)), "")
    if not encoding and content[1:2] == b"\0":  # UTF-16 without a mark, if the text begins with a Latin letter
        encoding = "utf-16-le"
    elif not encoding and content[:1] == b"\0":
        encoding = "utf-16-be"
    try:
        text = content.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        if encoding:
            raise
        text, encoding = content.decode("cp1252", errors="replace"), "cp1252"
    if "\0" in text:
        raise ValueError("it has bytes that are not text")
    if encoding == "cp1252":
        log.warning("'%s' is not in UTF-8 and was read as Windows-1252; save it as UTF-8 if letters are wrong.", path)
    return text


def separated(text: str, usual: str = ",") -> tuple[str, str]:
    r"""Return the separator of a csv text, found in its header, and the text without a first line such as "sep=;".

    Args:
        text: text of a file.
        usual: separator to return if no other separator is more frequent in the header; a tab if there is one.

    Example:
        >>> separated("model;seed\nnull;1\n")[0], separated("message\nabba\n")[0]
        (';', ',')
    """
    if first_line := FIRST_LINE.match(text):
        return first_line[1], text[first_line.end() :]
    first = re.search(r"^(?!#).*\S.*$", text, re.MULTILINE)  # not a comment
    header = re.sub(r'"[^"]*"', "", first[0] if first else text.lstrip("\r\n").partition("\n")[0])
    if usual == "\t" and usual in header:
        return usual, text
    return max((usual, *SEPARATORS), key=header.count), text


def read_csv_table(path: Path, texts: Collection[str] | None, missing: Sequence[str] = MISSING) -> pd.DataFrame:
    """Read a csv file with a header line. Names such as "null", "NA", "1e5" or "007" are not changed.

    Args:
        path: path of the file.
        texts: columns of text, in which only an empty entry is missing; None to read all columns as text.
        missing: entries that mean a missing value in other columns. Pandas determines the type of these columns.

    Returns:
        The table, with the escapes of `icy.core.text.csv_table` removed.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a table.
    """
    return parse_csv(csv_text(path), texts, missing)


def parse_csv(text: str, texts: Collection[str] | None, missing: Sequence[str] = MISSING) -> pd.DataFrame:
    """Return the table of a csv text; see `read_csv_table`."""
    import pandas as pd

    separator, text = separated(text)
    options: dict[str, Any] = {"sep": separator, "index_col": False, "keep_default_na": False}
    header = pd.read_csv(io.StringIO(text), nrows=1, header=None, dtype=str, **options)  # pandas renames in the table
    names = [name or f"Unnamed: {place}" for place, name in enumerate(header.iloc[0])]
    if same := of_one_name(names):
        raise ValueError(same)
    of_text = {name for name in names if texts is None or name in texts}
    table = pd.read_csv(
        io.StringIO(text),
        dtype=dict.fromkeys(of_text, str),
        na_values={} if texts is None else {n: [""] if n in of_text else list(missing) for n in names},
        low_memory=False,
        **options,
    )
    if separator != ",":
        for name in set(names) - of_text:
            known = table[name].dropna()
            texts_only = len(known) and known.map(lambda entry: isinstance(entry, str)).all()
            if texts_only and known.str.fullmatch(DECIMAL_COMMA).all():
                table[name] = table[name].str.replace(",", ".").astype(float)
    return from_csv_table(table)


def of_one_name(header: Sequence[object]) -> str:
    """Say which columns are the first two of one name; an empty text if all names are different."""
    first: dict[object, int] = {}
    for place, name in enumerate(header):
        if first.setdefault(name, place) < place:
            return f"columns {first[name] + 1} and {place + 1} are both called '{name}'"
    return ""


def is_index(entries: Sequence[str], place: int) -> bool:
    """Return whether a column without a name can be left out: it is empty, or the first column with row numbers.

    Args:
        entries: the entry of each row; an empty text is a missing entry.
        place: number of the column, from 0.
    """
    if not any(entries):
        return True
    return place == 0 and any(list(entries) == [str(n) for n in range(f, f + len(entries))] for f in (0, 1))
