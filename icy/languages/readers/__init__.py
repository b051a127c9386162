"""Readers of files of meanings and messages, a function per format.

A reader is a function of a `File`. It returns the columns of the file, or None if the file has another format. The rule
in `icy.languages.tokens`, the same for all formats, then converts the columns to a table.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from icy.core.errors import IcyError, StoreError
from icy.core.register import register_reader
from icy.core.registry import READER, registry
from icy.languages.language import Language
from icy.languages.storage import reading
from icy.languages.table import Table

from . import binary
from .egg import with_fields
from .files import File, Found, plain_file
from .tables import table_of, with_columns

READERS = {  # their functions and descriptions, in the order of trial
    "own": ("binary:read_own", "Languages that icy saved: csv, parquet, npz."),
    "torch_files": (
        "binary:read_torch",
        "Interactions of EGG: a file, or a folder with a file per GPU; other tensors of PyTorch.",
    ),
    "arrays": ("binary:read_arrays", "Arrays of NumPy: npz, npy."),
    "arrow": ("binary:read_arrow", "Columns of parquet, feather and Arrow, also in folders."),
    "egg": ("egg:read", "Text logs of EGG: messages of its games, callbacks and evaluations."),
    "json_files": (
        "text_files:read_json",
        "JSON and JSON lines: objects, columns, pairs, csar, CBM24, corpora without meanings.",
    ),
    "delimited": ("text_files:read_delimited", "Tables of text: csv, tsv, of any usual separator and encoding; SCAN."),
}
SOURCES = {"torch_files": "Kharitonov et al. 2019", "egg": "Kharitonov et al. 2019", "json_files": "CBM24, csar, ELCC"}
for _name, (_function, _description) in READERS.items():
    register_reader(_name, f"{__name__}.{_function}", description=_description, source=SOURCES.get(_name, "icy"))
log = logging.getLogger(__name__)
Columns = str | Sequence[str] | None

__all__ = ["READERS", "File", "Found", "find", "read_language", "read_table"]


def read_table(
    path: str | Path,
    *,
    meaning_columns: Columns = None,
    message_columns: Columns = None,
    weights: str | None = None,
    **reading: Any,
) -> Table:
    """Read a table of meanings and messages from a file, or from a folder of EGG's interactions.

    Unlike a Language, a table may lack meanings, or have the same meaning in several rows. The page "Your languages"
    (docs/your-languages.md) lists the formats and the rule.

    Args:
        path: the file or folder. Its content determines the format.
        meaning_columns: the columns, fields or keys that hold meanings. By default: the format's own; otherwise m0, m1,
            ..., or `meaning` and similar names; otherwise all that do not hold messages.
        message_columns: the columns, fields or keys that hold messages. By default: `message` and similar names, or t0,
            t1, ...; otherwise all that do not hold meanings. Each of several columns holds one token.
        weights: the column with the number of times each row counts, such as a count; see `Table.of`.
        **reading: `eos`, `start`, `pad`, `tokens`, `one_hot`, `argmax`, `missing`: options of the rule for reading
            entries; see `icy.languages.rule.Rule`.

    Returns:
        The table, named after the language or the file. Its `read_as` describes how the file was read. A warning is
        logged if a column is read as an attribute by default, but has a different value in every row, like an id.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: the file does not hold meanings and messages, a value or a message is missing, the data can
            be read in two ways, two columns have one name, or a row has more or fewer entries than the header.
        UnknownNameError: an unknown option.
    """
    place = Path(path)
    if not os.path.exists(place):  # accepts any name, unlike Path.exists
        raise StoreError(f"'{path}' cannot be read: the file does not exist.")
    try:
        with plain_file(place) as plain:
            file = File(plain, _listed(meaning_columns), _listed(message_columns), weights)
            return table_of(find(file, place), file, reading)
    except IcyError as error:
        raise type(error)(f"{error}" if str(path) in str(error) else f"'{path}': {error}") from error


def read_language(path: Path, vocab_size: int | None, name: str | None, options: Mapping[str, Any]) -> Language:
    """Read a language; see `Language.read` for arguments and errors."""
    if path.is_file() and all(option is None for option in options.values()):
        with plain_file(path) as plain:
            if (language := binary.read_own(File(plain))) is not None:
                return language
    table = read_table(path, **options)
    log.info("%s: %s.", path.name, table.read_as)
    return table.language(vocab_size=vocab_size, name=name)


def find(file: File, original: Path | None = None) -> Found | Language:
    """Read the columns of a file, or the Language that it holds, with the first reader that knows the format.

    Args:
        file: the file without compression.
        original: the file as it is, for readers of plug-ins; by default the same.

    Raises:
        StoreError: the file cannot be read.
    """
    order = list(READERS)
    for entry in sorted(registry.entries(READER), key=lambda e: order.index(e.name) if e.name in order else -1):
        binary = file if entry.name in READERS else replace(file, path=original or file.path)
        with reading(f"'{file.path}' cannot be read"):
            found: Found | Language | None = entry.load()(binary)
            if isinstance(found, Found):
                return with_fields(with_columns(found, file), file)
        if found is not None:
            return found
    raise StoreError(f"'{file.path}' has a format that icy does not know.")


def _listed(columns: Columns) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns or ())
