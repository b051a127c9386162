"""Files of languages: tables and their cards, which `icy.languages.language` converts to languages."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from icy.core.csv_files import csv_text, parse_csv, separated
from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.core.files import whole_file

from .meanings import MeaningSpace

IntegerArray = NDArray[np.integer[Any]]
Card = dict[str, Any]  # all attributes of a language but its messages

CSV_HEAD = "# icy language "
PARQUET_KEY = b"icy language"
FIRST_LETTER = ord("a")
log = logging.getLogger(__name__)
MOST_LETTERS = 26


def write(path: Path, space: MeaningSpace, messages: IntegerArray, card: Card) -> None:
    """Write messages [N, L] and their card atomically, in the format of the suffix of `path`.

    Raises:
        StoreError: the suffix is unknown, or the file cannot be written.
    """
    writer = _of_suffix(path, WRITERS)
    try:
        with whole_file(path) as file:
            writer(file, space, messages, card)
    except OSError as error:
        raise StoreError(f"The language cannot be written to '{path}': {error.strerror or error}.") from error


def to_bytes(suffix: str, space: MeaningSpace, messages: IntegerArray, card: Card) -> bytes:
    """Return the content of the file that `write` writes.

    Raises:
        StoreError: the suffix is unknown.
    """
    file = io.BytesIO()
    _of_suffix(Path("language").with_suffix(suffix), WRITERS)(file, space, messages, card)
    return file.getvalue()


def read(path: Path) -> tuple[IntegerArray, Card]:
    """Read messages [N, L], in the order of meanings, and their card.

    Raises:
        StoreError: the suffix is unknown, the file cannot be read, or it holds no language.
    """
    reader = _of_suffix(path, READERS)
    if not path.is_file():
        raise StoreError(f"There is no file '{path}'.")
    try:
        messages, card = reader(path)
        return messages, card
    except Exception as error:  # each library has errors of its own for a damaged file
        raise StoreError(
            f"'{path}' is not an icy language, or is damaged ({error}). Your own table is read by Language.from_csv."
        ) from error


@contextmanager
def reading(sentence: str) -> Iterator[None]:
    """Turn what a library raises over a damaged file into a StoreError: `sentence`, and the library's first line.

    Each library has errors of its own for that, so all are taken, but those that say a sentence already.
    """
    try:
        yield
    except IcyError:
        raise
    except Exception as error:
        first = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise StoreError(f"{sentence}: {first}.") from error


def _of_suffix(path: Path, known: dict[str, Any]) -> Callable[..., Any]:
    if path.suffix.lower() not in known:
        raise StoreError(f"A language is stored as {', '.join(known)}; '{path.name}' ends in none of these.")
    found: Callable[..., Any] = known[path.suffix.lower()]
    return found


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
    frame["message"] = _spell(messages) if letters else [" ".join(map(str, row)) for row in messages.tolist()]
    file.write(f"{CSV_HEAD}{json.dumps(head)}\n".encode())
    file.write(frame.to_csv(index=False, lineterminator="\n").encode())


def _spell(messages: IntegerArray) -> list[str]:
    length = messages.shape[1]
    text = (messages.astype(np.uint8) + FIRST_LETTER).astype(np.uint8).tobytes().decode("ascii")
    return [text[i : i + length] for i in range(0, len(text), length)]


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
    rows = _unspell(texts) if letters else np.array([text.split() for text in texts], dtype=object).astype(np.int64)
    return _in_order(space, meanings, rows), card


def _unspell(texts: list[str]) -> IntegerArray:
    if len({len(text) for text in texts}) != 1:
        raise ValueError("its messages differ in length")
    codes = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8).reshape(len(texts), -1)
    return codes.astype(np.int64) - FIRST_LETTER


# -- npz -----------------------------------------------------------------------------------------------------------


def _write_npz(file: IO[bytes], space: MeaningSpace, messages: IntegerArray, card: Card) -> None:
    np.savez_compressed(file, messages=messages, card=np.array(json.dumps(card)))


def _read_npz(path: Path) -> tuple[IntegerArray, Card]:
    with np.load(path, allow_pickle=False) as fields:
        return fields["messages"], json.loads(str(fields["card"]))


def _space_and_columns(card: Card, columns: Collection[str]) -> tuple[MeaningSpace, list[str]]:
    """Return the space that a card names, and the columns of its attributes."""
    space = MeaningSpace.parse(card["space"])
    if space.attributes > len(columns):  # before as many names are made
        raise ValueError(f"it has fewer columns than {space} has attributes")
    return space, [f"m{a}" for a in range(space.attributes)]


def _in_order(space: MeaningSpace, meanings: IntegerArray, messages: IntegerArray) -> IntegerArray:
    """Sort rows by meaning, so that a file whose rows were reordered by hand still loads."""
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


# -- a user's own table --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnTable:
    """Content of a user's own table.

    Attributes:
        meanings: numbers of attribute values, shape [n, A].
        messages: tokens, shape [n, L].
        value_names: the values as written in the file, or None if they are the numbers 0..K-1.
    """

    meanings: IntegerArray
    messages: IntegerArray
    value_names: tuple[tuple[str, ...], ...] | None


def is_own_csv(path: Path) -> bool:
    """Return whether a file begins like a csv that `write` wrote.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        return csv_text(path).startswith(CSV_HEAD)
    except (OSError, ValueError) as error:
        raise StoreError(f"The table '{path}' cannot be read: {error}.") from error


def read_own_table(
    path: Path, meaning_columns: Sequence[str] | None, message_columns: Sequence[str] | str | None
) -> OwnTable:
    """Read a table of the form, and with the errors, that `Language.from_csv` describes."""
    found = read_columns(path)
    message_list = [message_columns] if isinstance(message_columns, str) else message_columns
    attributes, tokens = choose_columns(list(found.columns), meaning_columns, message_list)
    found.require_filled(attributes, tokens)
    found.require_one_spelling(tokens)
    meanings, names = _number_values({c: found.columns[c] for c in attributes})
    messages = _number_tokens([found.columns[c] for c in tokens])
    return OwnTable(meanings, messages, names)


@dataclass(frozen=True)
class Columns:
    """Columns of a user's own table, as they stand in the file.

    Attributes:
        columns: entries by the name of the column: texts without spaces around them, or what parquet holds.
        lines: the place of each row in the file: its line in text, its number from 1 in parquet.
        place: what such a place is called, "line" or "row".
    """

    columns: dict[str, list[Any]]
    lines: Sequence[int]
    place: str = "line"

    def require_filled(self, attributes: Sequence[str], tokens: Sequence[str]) -> None:
        """Raise if a meaning or a message is empty.

        Raises:
            InvalidSettingError: an entry of these columns is empty.
        """
        for name in (*attributes, *tokens):
            for line, entry in zip(self.lines, self.columns[name], strict=True):
                if entry == "" if isinstance(entry, str) else _is_missing(entry):
                    what, instead = (
                        ("message", "a message of no tokens is written as the token that ends it, which eos names")
                        if name in tokens
                        else ("value", "a value that is not known needs a name of its own")
                    )
                    raise InvalidSettingError(
                        f"There is no {what} in {self.place} {line}, column '{name}'; fill it in or leave the row out "
                        f"({instead})."
                    )

    def require_one_spelling(self, tokens: Sequence[str]) -> None:
        """Raise if some messages have spaces between tokens of a letter each, and others none; warn of numbers.

        Raises:
            InvalidSettingError: they do, so that letters would be read as whole tokens.
        """
        if len(tokens) > 1 or not all(isinstance(entry, str) for entry in self.columns[tokens[0]]):
            return
        entries = list(zip(self.lines, self.columns[tokens[0]], strict=True))
        spaced = next(((line, entry) for line, entry in entries if len(entry.split()) > 1), None)
        plain = next(((line, entry) for line, entry in entries if len(entry) > 1 == len(entry.split())), None)
        letters = {token for _, entry in entries if len(parts := entry.split()) > 1 for token in parts}
        if spaced is None or plain is None or any(len(token) > 1 for token in letters):
            return  # tokens of several letters may well be alone in a message
        met = (
            f"The message '{spaced[1]}' in {self.place} {spaced[0]} has spaces between its tokens, and '{plain[1]}' in "
            f"{self.place} {plain[0]} has none"
        )
        if not all(_is_number(token) for token in (*letters, plain[1])):
            raise InvalidSettingError(f"{met}; write all messages in one way.")
        log.warning("%s: it was taken for a single token, the number %s.", met, plain[1])


def _is_missing(entry: Any) -> bool:
    """Return whether parquet holds nothing here: None, or a NaN of any type."""
    return entry is None or (np.ndim(entry) == 0 and bool(entry != entry))


def read_columns(path: Path) -> Columns:
    """Read the columns of a csv or tsv table with a header line; "nan" and "null" are text like any other.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: no rows, a name that several columns have, or a row of more or fewer entries than the
            header.
    """
    try:
        separator, text = separated(csv_text(path), "\t" if path.suffix.lower() == ".tsv" else ",")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
        rows = [(reader.line_num, [entry.strip() for entry in row]) for row in reader if row]
    except (OSError, ValueError, csv.Error) as error:
        raise StoreError(f"The table '{path}' cannot be read: {str(error).strip()}.") from error
    if not rows:
        raise StoreError(f"The table '{path}' cannot be read: it is empty.")
    (line, header), *body = rows
    require_distinct(header, f"in line {line}")
    if not body:
        raise InvalidSettingError(f"The table '{path}' has no rows.")
    for line, row in body:
        if len(row) != len(header):
            raise InvalidSettingError(f"Line {line} has {len(row)} entries, and the header {len(header)} columns.")
    columns = zip(*(row for _, row in body), strict=True)
    return Columns(dict(zip(header, map(list, columns), strict=True)), [line for line, _ in body])


def require_distinct(header: Sequence[str], where: str) -> None:
    """Raise if several columns have one name.

    Raises:
        InvalidSettingError: they have.
    """
    first: dict[str, int] = {}
    for place, name in enumerate(header):
        if first.setdefault(name, place) < place:
            raise InvalidSettingError(
                f"The columns {first[name] + 1} and {place + 1} are both called '{name}' {where}; rename one."
            )


def choose_columns(
    columns: Sequence[str], meaning_columns: Sequence[str] | None, message_columns: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Return the columns of meanings and of messages: those asked for, else by name, else the rest.

    Raises:
        InvalidSettingError: a column is missing or asked for twice, or the columns cannot be told apart.
    """
    tokens = list(message_columns or ()) or _default_message_columns(columns, meaning_columns)
    attributes = list(meaning_columns or ()) or _default_meaning_columns(columns, tokens)
    found = f"The table has the columns {', '.join(c or '(no name)' for c in columns)}"
    known = set(columns)
    unknown = [c for c in (*attributes, *tokens) if c not in known]
    if unknown:
        raise InvalidSettingError(f"{found}; there is no '{unknown[0]}'.")
    if "" in (*attributes, *tokens):
        raise InvalidSettingError(
            f"Column {list(columns).index('') + 1} has no name in the header: name it, or leave it out (pandas writes "
            "such a column unless index=False), or say which columns are meanings and which messages."
        )
    if not attributes or not tokens or len({*attributes, *tokens}) != len(attributes) + len(tokens):
        raise InvalidSettingError(
            f"{found}; say which are meanings and which messages, each in one of the two, by --meaning-columns and "
            "--message-columns (in Python, meaning_columns= and message_columns=)."
        )
    return attributes, tokens


def _default_message_columns(columns: Sequence[str], meaning_columns: Sequence[str] | None) -> list[str]:
    for called in (["message"], [c for c in columns if c.lower() == "message"]):
        if len(called) == 1 and called[0] in columns:
            return called
    named = [c for c in columns if re.fullmatch(r"t\d+", c)]
    attributes = set(meaning_columns or [c for c in columns if re.fullmatch(r"m\d+", c)])
    return named or [c for c in columns if attributes and c not in attributes]


def _default_meaning_columns(columns: Sequence[str], tokens: Sequence[str]) -> list[str]:
    named = [c for c in columns if re.fullmatch(r"m\d+", c)]
    taken = set(tokens)
    return named or [c for c in columns if c not in taken]


def _number_values(columns: dict[str, list[str]]) -> tuple[IntegerArray, tuple[tuple[str, ...], ...] | None]:
    """Number the values of each attribute from 0 in sorted order, [n, A], and return their names."""
    names = [_sorted_names(column) for column in columns.values()]
    counts = [len(of_one) for of_one in names]
    if len(set(counts)) > 1:
        listing = ", ".join(f"{c} has {n}" for c, n in zip(columns, counts, strict=True))
        raise InvalidSettingError(f"All attributes must have the same number of values; {listing}.")
    codes = [_codes(column, of_one) for column, of_one in zip(columns.values(), names, strict=True)]
    plain = tuple(map(str, range(counts[0])))
    kept = tuple(map(tuple, names))
    return np.stack(codes, axis=1), None if all(of_one == plain for of_one in kept) else kept


def _number_tokens(columns: list[list[str]]) -> IntegerArray:
    """Return tokens [n, L] from one text column, or from several columns of one token each."""
    rows = split_messages(columns[0]) if len(columns) == 1 else [list(row) for row in zip(*columns, strict=True)]
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1 or lengths[0] == 0:
        raise InvalidSettingError(
            f"All messages must have the same length, at least 1; found lengths {', '.join(map(str, lengths))}. "
            "Fill up shorter ones with a token of its own."
        )
    flat = [token for row in rows for token in row]
    return _token_codes(flat).reshape(len(rows), lengths[0])


def split_messages(texts: list[str]) -> list[list[str]]:
    """Split messages into tokens: at spaces if any message has one, else into characters."""
    if any(re.search(r"\s", text) for text in texts):
        return [text.split() for text in texts]
    return [list(text) for text in texts]


def _token_codes(tokens: list[str]) -> IntegerArray:
    distinct = set(tokens)
    if all(_is_number(token) for token in distinct) and len(set(map(int, distinct))) == len(distinct):
        return np.array([int(token) for token in tokens])
    if all(re.fullmatch("[a-z]", token) for token in distinct):
        return np.array([ord(token) - FIRST_LETTER for token in tokens])
    return _codes(tokens, _sorted_names(tokens))


def _codes(column: list[str], names: list[str]) -> IntegerArray:
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[value] for value in column], dtype=np.int64)


def _sorted_names(column: list[str]) -> list[str]:
    """Return the distinct values, numbers by size and words in alphabetical order."""
    distinct = set(column)
    numeric = all(re.fullmatch(r"-?[0-9]{1,18}", value) for value in distinct)
    return sorted(distinct, key=lambda name: (int(name), name)) if numeric else sorted(distinct)


def _is_number(token: str) -> bool:
    return re.fullmatch("[0-9]{1,9}", token) is not None
