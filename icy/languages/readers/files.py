"""Files that readers read, also compressed (`File`), and the columns that they return (`Found`)."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from icy.core.errors import IcyError, StoreError
from icy.core.files import csv_text
from icy.core.importing import load_object
from icy.core.processes import scratch_folder
from icy.languages.rule import Container, Entries
from icy.languages.storage import reading

HEAD = 1 << 16  # bytes of a file that readers use to recognize its format
ARRAYS = (".npy", "data.pkl", "/version")  # in the zip archives of NumPy and PyTorch
SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip")
OPENERS: dict[bytes, Callable[[Path], Any]] = {
    rb"\x1f\x8b": gzip.GzipFile,
    rb"BZh[1-9]1AY&SY": bz2.BZ2File,
    rb"\xfd7zXZ\x00": lzma.LZMAFile,
    rb"\x28\xb5\x2f\xfd": lambda path: load_object("pyarrow:input_stream")(str(path), compression="zstd"),
}
UNREAD = {  # the first bytes of other formats
    rb"Obj\x01": "an Avro file",
    rb"\x89HDF|CDF[\x01\x02\x05]": "a file of HDF5 or NetCDF",
    rb"\xd0\xcf\x11\xe0": "an old file of Excel or SPSS",
    rb"SQLite format 3": "a database of SQLite",
    rb"ORC": "an ORC file",
    rb"MATLAB 5": "a file of MATLAB",
    rb"\$FL[23]": "a file of SPSS",
    rb"RD[AX][23]\n|X\n\x00\x00": "a file of R",
    rb"<stata_dta>": "a file of Stata",
    rb"(?s).{257}ustar": "an archive of tar",
}


@dataclass(frozen=True)
class File:
    """A file or folder to read, and the options for its columns.

    Attributes:
        path: path of the file.
        meaning_columns: the columns, fields or keys that hold meanings, if given.
        message_columns: the columns, fields or keys that hold messages, if given.
        weights: the column with the number of times each row counts, if given.
    """

    path: Path
    meaning_columns: Sequence[str] = ()
    message_columns: Sequence[str] = ()
    weights: str | None = None

    @cached_property
    def head(self) -> bytes:
        """The first bytes of the file; empty for a folder."""
        if self.path.is_dir():
            return b""
        with self.path.open("rb") as file:
            return file.read(HEAD)

    @cached_property
    def text(self) -> str:
        """The text of the file, decoded from any encoding, without a byte order mark.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is not text.
        """
        return csv_text(self.path)

    @cached_property
    def members(self) -> list[str]:
        """The names of the files in a zip archive; none if it is not a complete archive."""
        if not self.head.startswith(b"PK"):
            return []
        try:
            with zipfile.ZipFile(self.path) as archive:
                return archive.namelist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            return []

    @cached_property
    def lines(self) -> list[tuple[int, str]]:
        """The numbers and texts of lines that are not blank; none for a folder, or a file that is not text.

        Raises:
            OSError: the file cannot be read.
        """
        try:
            text = "" if self.path.is_dir() else self.text
        except ValueError:
            return []
        return [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]

    def require_read(self) -> None:
        """Raise StoreError if the file has a known format that icy does not read."""
        kinds = (what for start, what in UNREAD.items() if re.match(start, self.head))
        archive = "a file of Excel" if "xl/workbook.xml" in self.members else "an archive" if self.members else ""
        if what := next(kinds, archive):
            raise StoreError(
                f"'{self.path}' is {what}, which icy does not read; save the table as csv, parquet or JSON lines."
            )


@dataclass(frozen=True)
class Found:
    """The columns of a file. An entry is a plain value, a text, or a list, dictionary or array of values.

    Attributes:
        columns: the entries of each column, [N] each, or an array with an entry per row. A dictionary becomes a column
            for each of its entries, with names such as "aux.length". Other values without N rows are left out.
        what: the kind of file, in words, as in "interactions of EGG".
        meanings: the columns that hold meanings, if the format defines them; empty if it has no meanings.
        messages: the columns that hold messages, if the format defines them.
        places: line or row number of each entry in the file, [N]; by default counted from 1.
        place: "row" or "line", for errors.
        tokens: how the format separates the tokens of a text; see `icy.languages.rule.Rule`.
        decimal: "," if numbers may have a comma as their decimal point.
        eos: the token that ends messages, if the format defines one.
        header: where the names of columns come from, if this may be wrong, with advice.
        lengths: number of tokens of each message, [N], if the file has it; later tokens are dropped.
        phrases: whether meanings are phrases: a concept means the same at any place.
        remarks: further remarks on how the file was read, each without a final period.
    """

    columns: Mapping[str, Container]
    what: str = ""
    meanings: Sequence[str] | None = None
    messages: Sequence[str] | None = None
    places: Sequence[int] = ()
    place: str = "row"
    tokens: str = "auto"
    decimal: str = "."
    eos: str | int | None = None
    header: str = ""
    lengths: Entries | None = None
    phrases: bool = False
    remarks: Sequence[str] = field(default=())


@contextmanager
def plain_file(path: Path) -> Iterator[Path]:
    """Give the path of a file, or of a temporary copy without compression: gzip, bz2, xz, zstd, or zip of one file.

    Raises:
        StoreError: the file is damaged.
    """
    file = File(path)
    with reading(f"'{path}' cannot be read"):
        opener = next((one for start, one in OPENERS.items() if re.match(start, file.head)), None)
        members = [name for name in file.members if not name.endswith("/")]
    name = path.stem if path.suffix.lower() in SUFFIXES else path.name
    if opener is None and len(members) == 1 and not members[0].endswith(ARRAYS):
        name, opener = Path(members[0]).name, lambda path: zipfile.Path(path, members[0]).open("rb")
    if opener is None:
        yield path
        return
    folder = scratch_folder("table")
    plain = folder / name
    try:
        with reading(f"'{path}' cannot be read"), opener(path) as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target)
        with plain_file(plain) as inner:
            yield inner
    except IcyError as error:
        raise type(error)(str(error).replace(str(plain), str(path))) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
