"""The argument of a reader (`File`), and its result (`Found`): columns as in the file, before they become a table."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from icy.core.csv_files import csv_text
from icy.languages.containers import Entries

HEAD = 1 << 16  # bytes of a file that readers use to recognize its format


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


@dataclass(frozen=True)
class Found:
    """The columns of a file. An entry is a plain value, a text, or a list or array of values.

    Attributes:
        columns: the entries of each column, [N] each, or an array with an entry per row.
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

    columns: Mapping[str, Entries]
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
