"""Files of languages: messages and a card (all other attributes), which `icy.languages.language` converts."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import IcyError, StoreError
from icy.core.files import csv_text, parse_csv

from .meanings import MeaningSpace

IntegerArray = NDArray[np.integer[Any]]
Card = dict[str, Any]  # all attributes of a language except its messages

CSV_HEAD = "# icy language "
PARQUET_KEY = b"icy language"
FIRST_LETTER = ord("a")
log = logging.getLogger(__name__)
F = TypeVar("F")  # a reader or writer
MOST_LETTERS = 26


def to_bytes(path: Path, space: MeaningSpace, messages: IntegerArray, card: Card) -> bytes:
    """Return the content of a file with messages [N, L] and their card, in the format of the suffix of `path`.

    Raises:
        StoreError: the suffix is unknown.
    """
    file = io.BytesIO()
    _of_suffix(path, WRITERS)(file, space, messages, card)
    return file.getvalue()


def from_bytes(content: bytes) -> tuple[IntegerArray, Card]:
    """Return messages and card from the content of an .npz file.

    Raises:
        StoreError: it is not such a file.
    """
    try:
        return _read_npz(io.BytesIO(content))
    except Exception as error:  # NumPy has several errors for damaged files
        raise StoreError(f"These bytes are not an icy language in the format npz, or are damaged ({error}).") from error


def read(path: Path) -> tuple[IntegerArray, Card]:
    """Read messages [N, L], in the order of meanings, and their card.

    Raises:
        StoreError: the suffix is unknown, the file cannot be read, or it does not hold a language.
    """
    reader = _of_suffix(path, READERS)
    if not path.is_file():
        raise StoreError(f"The file '{path}' does not exist.")
    try:
        messages, card = reader(path)
        return messages, card
    except Exception as error:  # each library has its own errors for a damaged file
        raise StoreError(
            f"'{path}' is not an icy language, or is damaged ({error}). Your own table is read by Language.read."
        ) from error


@contextmanager
def reading(sentence: str) -> Iterator[None]:
    """Convert a library's error into a StoreError with the text `sentence` and the first line of the error.

    Each library has its own errors, so all are converted, except errors that are sentences already.
    """
    try:
        yield
    except IcyError:
        raise
    except Exception as error:
        why = getattr(error, "strerror", None) or str(error)  # an OSError begins with its number
        first = why.strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise StoreError(f"{sentence}: {first}.") from error


def _of_suffix(path: Path, known: dict[str, F]) -> F:
    if path.suffix.lower() not in known:
        raise StoreError(f"A language is stored as {', '.join(known)}; '{path.name}' has another suffix.")
    return known[path.suffix.lower()]


# -- parquet -------------------------------------------------------------------------------------------------------


def _write_parquet(file: IO[bytes], space: MeaningSpace, messages: IntegerArray, card: Card) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    meanings = space.all().astype(np.min_scalar_type(space.values - 1))
    columns = {f"m{a}": meanings[:, a] for a in range(space.attributes)}
    columns |= {f"t{t}": np.ascontiguousarray(messages[:, t]) for t in range(messages.shape[1])}
    table = pa.table(columns).replace_schema_metadata({PARQUET_KEY: json.dumps(card).encode()})
    pq.write_table(table, file)


def _read_parquet(path: Path) -> tuple[IntegerArray, Card]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    card: Card = json.loads((table.schema.metadata or {})[PARQUET_KEY])
    space, names = _space_and_columns(card, table.column_names)
    meanings = np.stack([table[name].to_numpy() for name in names], axis=1)
    tokens = [name for name in table.column_names if re.fullmatch(r"t\d+", name)]
    messages = np.stack([table[name].to_numpy() for name in tokens], axis=1)
    return _in_order(space, meanings, messages), card


# -- csv -----------------------------------------------------------------------------------------------------------


def _write_csv(file: IO[bytes], space: MeaningSpace, messages: IntegerArray, card: Card) -> None:
    import pandas as pd

    letters = card["vocab_size"] <= MOST_LETTERS
    head = {**card, "tokens": "letters, a is 0" if letters else "numbers, separated by spaces"}
    frame = pd.DataFrame(space.all(), columns=[f"m{a}" for a in range(space.attributes)])
    rows = (messages.astype(np.int64) + FIRST_LETTER * letters).tolist()
    frame["message"] = ["".join(map(chr, row)) if letters else " ".join(map(str, row)) for row in rows]
    file.write(f"{CSV_HEAD}{json.dumps(head)}\n".encode())
    file.write(frame.to_csv(index=False, lineterminator="\n").encode())


def _read_csv(path: Path) -> tuple[IntegerArray, Card]:
    head, _, body = csv_text(path).partition("\n")
    if not head.startswith(CSV_HEAD):
        raise ValueError(f"its first line does not begin with '{CSV_HEAD}'")
    card: Card = json.loads(head.removeprefix(CSV_HEAD))
    letters = card.pop("tokens").startswith("letters")
    frame = parse_csv(body, texts=None)
    space, names = _space_and_columns(card, frame.columns)
    meanings = frame[names].to_numpy(dtype=np.int64)
    texts = frame["message"].tolist()
    if letters and len(set(map(len, texts))) != 1:
        raise ValueError("its messages differ in length")
    tokens = [[ord(letter) - FIRST_LETTER for letter in text] if letters else text.split() for text in texts]
    return _in_order(space, meanings, np.array(tokens, dtype=object).astype(np.int64)), card


# -- npz -----------------------------------------------------------------------------------------------------------


def _write_npz(file: IO[bytes], space: MeaningSpace, messages: IntegerArray, card: Card) -> None:
    np.savez_compressed(file, messages=messages, card=np.array(json.dumps(card)))


def _read_npz(path: Path | IO[bytes]) -> tuple[IntegerArray, Card]:
    with np.load(path, allow_pickle=False) as fields:
        return fields["messages"], json.loads(str(fields["card"]))


def _space_and_columns(card: Card, columns: Collection[str]) -> tuple[MeaningSpace, list[str]]:
    """Return the space that a card names, and the names of the attributes' columns."""
    space = MeaningSpace.parse(card["space"])
    if space.attributes > len(columns):  # before creating that many names
        raise ValueError(f"it has fewer columns than {space} has attributes")
    return space, [f"m{a}" for a in range(space.attributes)]


def _in_order(space: MeaningSpace, meanings: IntegerArray, messages: IntegerArray) -> IntegerArray:
    """Sort rows by meaning, so that a file with reordered rows still loads."""
    index = space.index(meanings)
    order = np.argsort(index, kind="stable")
    if len(index) != space.size or not np.array_equal(index[order], np.arange(space.size)):
        raise ValueError(f"it does not give each of the {space.size} meanings of {space} exactly once")
    return messages[order]


WRITERS: dict[str, Callable[[IO[bytes], MeaningSpace, IntegerArray, Card], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".npz": _write_npz,
}
READERS: dict[str, Callable[[Path], tuple[IntegerArray, Card]]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".npz": _read_npz,
}
