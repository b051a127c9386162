"""Readers of files of meanings and messages, a module per format.

A reader is a function of a `File`. It returns the columns that it found, or None if the file is not of its format; the
rule of `icy.languages.tokens` then makes a table of them, the same for all formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.errors import IcyError, StoreError

from .found import File, Found

if TYPE_CHECKING:
    from icy.languages.table import Table

READERS = ("own", "egg", "torch_files", "arrays", "arrow", "egg_logs", "json_files", "delimited")  # in this order
Columns = str | Sequence[str] | None

__all__ = ["READERS", "File", "Found", "read_table"]


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
        meaning_columns: the columns, fields or keys that hold meanings; by default those that the format names, or in a
            table m0, m1, ..., or all that do not hold messages.
        message_columns: likewise of messages; by default `message`, in any case, or t0, t1, ..., or all that do not
            hold meanings. Each of several columns holds one token.
        weights: the column that says how often each row counts, such as a count; see `Table.of`.
        **reading: `eos`, `start`, `pad`, `tokens`, `one_hot`, `argmax`, `missing`: options of the rule by which
            entries are read; see `icy.languages.tokens.Rule`.

    Returns:
        The table, named after the language or the file. Its `read_as` says what was taken for what; a column taken for
        an attribute by default that has another value in every row, like an id, is warned of.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: the file does not hold meanings and messages, a value or a message is missing, the data can
            be read in two ways, two columns have one name, or a row has more or fewer entries than the header.
        UnknownNameError: an unknown option.
    """
    from .tables import table_of  # after `Language`, which imports this package

    place = Path(path)
    if not place.exists():
        raise StoreError(f"'{path}' cannot be read: there is no such file.")
    file = File(place, _listed(meaning_columns), _listed(message_columns), weights)
    try:
        return table_of(find(file), file, reading)
    except IcyError as error:
        raise type(error)(f"{error}" if str(path) in str(error) else f"'{path}': {error}") from error


def find(file: File) -> Any:
    """Return the columns of a file, or the Language that it holds, by the first reader that knows its format.

    Raises:
        StoreError: the file cannot be read.
    """
    for name in READERS:
        try:
            found = import_module(f"{__name__}.{name}").read(file)
        except IcyError:
            raise
        except (OSError, UnicodeError) as error:
            raise StoreError(f"'{file.path}' cannot be read: {error}.") from error
        if found is not None:
            return found
    raise StoreError(f"'{file.path}' is of no format that icy reads.")


def _listed(columns: Columns) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns or ())
