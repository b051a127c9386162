"""Read tables of meanings and messages from files: languages saved by icy, your own tables, EGG's interactions."""

import json
import logging
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.core.text import counted, listed
from icy.languages import storage
from icy.languages.language import Language
from icy.languages.table import Table

log = logging.getLogger(__name__)
EGG_CLASS = "egg.core.interaction.Interaction"
END = "0"  # of a message in lines of messages and phrases
Columns = str | Sequence[str] | None


def read_table(
    path: str | Path,
    *,
    meaning_columns: Columns = None,
    message_columns: Columns = None,
    one_hot: int | None = None,
    eos: Any = None,
) -> Table:
    """Read a table of meanings and messages from a file.

    Unlike a Language, a table may lack meanings, or have the same meaning in several rows.

    Args:
        path: a language saved by icy (csv, parquet, npz); a csv, tsv or parquet table with a header line; an npz file
            with the arrays `meanings` and `messages`; a jsonl file of messages and phrases, as the program of CBM24
            reads and `icy games` writes; or interactions saved by EGG, with any other suffix or none.
        meaning_columns: in a table, by default m0, m1, ..., or all that are not message columns; in interactions, the
            field that holds the meanings, by default sender_input.
        message_columns: in a table, by default `message`, in any case, or t0, t1, ..., or all that are not
            meaning columns. A single column holds letters ("abba") or tokens separated by spaces ("12 7 0"), of any
            lengths; several columns hold one token each.
        one_hot: number of values per attribute, for interactions whose meanings are concatenated one-hot vectors.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        The table, named after the language or the file. Its `read_as` says which columns were taken for what; a column
        taken for an attribute by default that has another value in every row, like an id, is warned of.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: the file does not hold meanings and messages, a value or a message is empty, two columns
            have one name, or a row has more or fewer entries than the header.
    """
    file = Path(path)
    readers: dict[str, Callable[[], Table]] = {
        ".csv": lambda: _read_text(file, _listed(meaning_columns), _listed(message_columns)),
        ".tsv": lambda: _read_text(file, _listed(meaning_columns), _listed(message_columns)),
        ".parquet": lambda: _read_parquet(file, _listed(meaning_columns), _listed(message_columns)),
        ".npz": lambda: _read_arrays(file),
        ".jsonl": lambda: _read_lines(file),
    }
    read = readers.get(file.suffix.lower(), lambda: _read_interaction(file, _listed(meaning_columns), one_hot))
    try:
        table = read()
    except IcyError as error:
        raise type(error)(f"{error}" if str(path) in str(error) else f"'{path}': {error}") from error
    return replace(Table.of(table, eos=eos), name=table.name or file.stem)


def _listed(columns: Columns) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns or ())


def _read_text(file: Path, meaning_columns: list[str], message_columns: list[str]) -> Table:
    if file.suffix.lower() == ".csv" and storage.is_own_csv(file):
        return _of_language(file)
    return _of_columns(storage.read_columns(file), meaning_columns, message_columns)


def _of_language(file: Path) -> Table:
    return replace(Table.of(Language.load(file)), read_as="a language of icy")


def _read_parquet(file: Path, meaning_columns: list[str], message_columns: list[str]) -> Table:
    import pandas as pd
    import pyarrow.parquet as pq

    try:
        return _of_language(file)
    except StoreError:
        pass  # not a language of icy's, so the user's own table
    with storage.reading(f"The table '{file}' cannot be read"):
        storage.require_distinct(pq.read_schema(file).names, "in its schema")
        frame = pd.read_parquet(file)
    if frame.empty:
        raise InvalidSettingError("The table has no rows.")
    columns = {str(name): [_stripped(entry) for entry in frame[name].tolist()] for name in frame.columns}
    return _of_columns(storage.Columns(columns, range(1, len(frame) + 1), "row"), meaning_columns, message_columns)


def _stripped(entry: Any) -> Any:
    return entry.strip() if isinstance(entry, str) else entry


def _of_columns(found: storage.Columns, meaning_columns: list[str], message_columns: list[str]) -> Table:
    """Make a table of columns, and remember which were taken for what; warn of one that looks like a row number."""
    attributes, tokens = storage.choose_columns(list(found.columns), meaning_columns, message_columns)
    found.require_filled(attributes, tokens)
    found.require_one_spelling(tokens)
    values = [_values(found.columns[c]) for c in attributes]
    if not meaning_columns:
        _warn_of_numbering(dict(zip(attributes, values, strict=True)))
    _warn_of_constants(dict(zip(attributes, values, strict=True)))
    meanings = np.array(values, dtype=object).T
    spelling, messages = _messages([found.columns[c] for c in tokens])
    shown = listed([f"{c} ({_count(column)})" for c, column in zip(attributes, values, strict=True)])
    rest = [c or "(no name)" for c in found.columns if c not in (*attributes, *tokens)]
    left_out = f"; not used: {listed(rest)}" if rest else ""
    noun = counted(len(attributes), "attribute").partition(" ")[2]
    read_as = f"{noun} {shown}; message in {listed(tokens)}, {spelling}{left_out}"
    return replace(Table.of(_numeric(meanings), messages), read_as=read_as)


def _count(column: Sequence[Any]) -> str:
    """Return how many values a column has, and of what kind: "real numbers" where they are no classes."""
    if any(isinstance(v, float) and not v.is_integer() for v in column):
        return "real numbers"
    return counted(len(set(map(str, column))), "value")


def _warn_of_numbering(columns: dict[str, list[Any]]) -> None:
    """Warn of columns with a value of their own in every row beside others, as an id has."""
    for name, column in columns.items():
        whole = not any(isinstance(v, float) and not v.is_integer() for v in column)
        if len(columns) > 1 and len(column) > 2 and whole and len(set(map(str, column))) == len(column):
            others = ",".join(other for other in columns if other != name)
            log.warning(
                "The column '%s' has another value in every row, like an id, and was taken for an attribute; if it is "
                "none, leave it out by --meaning-columns %s (in Python, meaning_columns=).", name, others,
            )  # fmt: skip


def _warn_of_constants(columns: dict[str, list[Any]]) -> None:
    """Warn of columns with one and the same value in every row, on which no message can depend."""
    for name, column in columns.items():
        if len(column) > 1 and len(set(map(str, column))) == 1:
            log.warning("The attribute '%s' has the same value, %s, in every row.", name, column[0])


def _messages(columns: list[list[Any]]) -> tuple[str, list[list[Any]]]:
    """Return how messages are spelt, in words, and their tokens."""
    if len(columns) > 1:
        flat = iter(_values([token for row in zip(*columns, strict=True) for token in row]))
        return "a token each", [list(row) for row in zip(*[flat] * len(columns), strict=True)]
    (found,) = columns
    if not all(isinstance(entry, str) for entry in found):
        if any(np.ndim(entry) == 0 for entry in found):  # numbers, which are tokens only by themselves
            return "a single token", [[entry] for entry in found]
        return "lists of tokens", _token_rows(found)
    spaced = any(len(entry.split()) > 1 for entry in found)
    return "tokens between spaces" if spaced else "a letter each", _token_rows(storage.split_messages(found))


def _values(column: Sequence[Any]) -> list[Any]:
    """Return entries as numbers if all are, else unchanged; "0" and "00" are two classes, unless numbers are real."""
    texts = [v.strip() if isinstance(v, str) else v for v in column]
    for kind in (int, float):
        try:
            numbers: list[Any] = [kind(v) for v in texts]
            if not all(map(_same_number, numbers, texts)):
                return texts
            real = not all(float(number).is_integer() for number in numbers)
            return numbers if real or len(set(numbers)) == len(set(texts)) else texts
        except (TypeError, ValueError, OverflowError):
            continue
    return texts


def _same_number(number: Any, entry: Any) -> bool:
    """Return whether a number is what stands in a file; digits beyond all floats are no infinite number."""
    if isinstance(number, float) and math.isinf(number) and isinstance(entry, str):
        return "inf" in entry.lower()
    return bool(number == float(entry))


def _numeric(meanings: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the meanings as an array of floats if all are numbers and some are not whole, else unchanged."""
    kinds = set(map(type, meanings.flat))
    if str in kinds or kinds == {int}:  # `_values` found the former to be names; the latter may not fit in a float
        return meanings
    try:
        return meanings.astype(float)
    except (TypeError, ValueError):
        return meanings


def _token_rows(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return messages of integers if every token is one, else messages of names."""
    listed = [list(row) for row in rows]
    tokens = {token for row in listed for token in row}
    try:
        whole = {token: int(token) for token in tokens}
    except (TypeError, ValueError):
        return listed
    if len(set(whole.values())) < len(tokens):  # "0" and "00"
        return listed
    return [[whole[token] for token in row] for row in listed]


def _read_arrays(file: Path) -> Table:
    try:
        return _of_language(file)
    except StoreError:
        pass  # not a language of icy's, so the user's own arrays
    with storage.reading(f"'{file}' cannot be read"), np.load(file, allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    if not {"meanings", "messages"} <= set(found):
        raise InvalidSettingError(
            f"The file has the arrays {', '.join(found) or 'none'}; it needs 'meanings' and 'messages'."
        )
    rest = [name for name in found if name not in ("meanings", "messages")]
    read_as = "the arrays meanings and messages" + (f"; not used: {listed(rest)}" if rest else "")
    return replace(Table.of(found["meanings"], found["messages"]), read_as=read_as)


def _read_lines(file: Path) -> Table:
    """Read lines of a message and a phrase, as JSON: ["w.w.0", "c.c"] (CBM24)."""
    with storage.reading(f"'{file}' cannot be read"):
        pairs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    for number, pair in enumerate(pairs, 1):
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) and part for part in pair)):
            raise InvalidSettingError(f'Line {number} is not of the form ["w.w.0", "c.c"], a message and a phrase.')
    messages, phrases = ([pair[side].split(".") for pair in pairs] for side in (0, 1))
    if len(lengths := {len(phrase) for phrase in phrases}) > 1:
        raise InvalidSettingError(
            f"Phrases have {min(lengths)} to {max(lengths)} concepts, and in a table all have as many; in Python, "
            'icy.metrics.cbm(phrases, messages, concepts="items") takes phrases of any lengths.'
        )
    ended = all(row[-1] == END and END not in row[:-1] and len(row) > 1 for row in messages)
    words = [row[:-1] for row in messages] if ended else messages
    table = Table.of(np.array(phrases, dtype=object), _token_rows(words))
    left_out = f"; {END}, which ends every message, is left out" if ended else ""
    return replace(table, phrases=True, read_as=f"a message and a phrase in every line{left_out}")


class _Interaction:
    """Stand-in for EGG's class of this name, whose fields become attributes."""


def _read_interaction(file: Path, fields: list[str], one_hot: int | None) -> Table:
    """Read the pickled Interaction of tensors that EGG's `dump_interactions` or InteractionSaver writes."""
    import pickle

    import torch

    kinds = f"'{file}' is no csv, tsv, parquet or npz, and no interactions of EGG's"
    allowed = torch.serialization.safe_globals([(_Interaction, EGG_CLASS)])
    with storage.reading(kinds), allowed, warnings.catch_warnings(action="ignore"):  # on versions of pickles
        try:
            held = vars(torch.load(file, map_location="cpu", weights_only=True))
        except pickle.UnpicklingError as error:  # torch advises to run what the file holds
            raise StoreError(f"{kinds}: it is no pickle, or holds more than tensors, which is never run.") from error
    with storage.reading(f"'{file}' holds no interactions of EGG's that can be read"):
        return _of_interaction(held, fields, one_hot)


def _of_interaction(held: dict[str, Any], fields: list[str], one_hot: int | None) -> Table:
    field = (fields or ["sender_input"])[0]
    meanings, messages = _classes(_field(held, field), one_hot), _field(held, "message")
    if messages.ndim == 3:  # one-hot or relaxed symbols, under Gumbel-softmax
        messages = messages.argmax(-1)
    rows = messages.astype(np.int64)
    decoded = "" if one_hot is None else f" as one-hot vectors of {one_hot}"
    read_as = f"interactions of EGG: meanings in {field}{decoded}, messages in message"
    if held.get("message_length") is not None:  # tokens after the end were sampled, but the receiver ignored them
        lengths = _field(held, "message_length").astype(np.int64)
        shorter = [row[:n] for row, n in zip(rows, lengths, strict=True)]
        return replace(Table.of(meanings, shorter), read_as=f"{read_as} up to message_length")
    return replace(Table.of(meanings, rows if rows.ndim == 2 else rows[:, None]), read_as=read_as)


def _field(held: dict[str, Any], name: str) -> np.ndarray[Any, Any]:
    """Return a tensor of an interaction as an array; `aux_input.name` is one in a dictionary."""
    first, _, inner = name.partition(".")
    found: Any = held.get(first)
    if inner and isinstance(found, dict):
        found = found.get(inner)
    if not hasattr(found, "numpy"):
        there = ", ".join(key for key, value in held.items() if hasattr(value, "numpy"))
        raise InvalidSettingError(f"The interactions have no tensor '{name}'; they have {there or 'none'}.")
    array: np.ndarray[Any, Any] = found.numpy()
    return array


def _classes(meanings: np.ndarray[Any, Any], one_hot: int | None) -> np.ndarray[Any, Any]:
    """Return meanings as [N, A] attribute values, decoded if they are concatenated one-hot vectors."""
    if one_hot is None:
        return meanings.reshape(len(meanings), -1)
    if meanings.ndim != 2 or meanings.shape[1] % one_hot:
        raise InvalidSettingError(
            f"Meanings of shape {meanings.shape} are not one-hot vectors of {one_hot} values side by side."
        )
    values: np.ndarray[Any, Any] = meanings.reshape(len(meanings), -1, one_hot).argmax(-1)
    return values
