"""Read tables of meanings and messages from files: languages saved by icy, your own tables, EGG's interactions."""

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.languages import storage
from icy.languages.language import Language

from .table import Table

if TYPE_CHECKING:
    import pandas as pd


EGG_CLASS = "egg.core.interaction.Interaction"
Columns = str | Sequence[str] | None


def read_table(
    path: str | Path,
    *,
    meaning_columns: Columns = None,
    message_columns: Columns = None,
    one_hot: int | None = None,
    eos: int | None = None,
) -> Table:
    """Read a table of meanings and messages from a file.

    Unlike a Language, a table may lack meanings, or have the same meaning in several rows.

    Args:
        path: a language saved by icy (csv, parquet, npz); a csv, tsv or parquet table with a header line; an npz file
            with the arrays `meanings` and `messages`; or interactions saved by EGG, with any other suffix or none.
        meaning_columns: in a table, by default m0, m1, ..., or all that are not message columns; in interactions, the
            field that holds the meanings, by default sender_input.
        message_columns: in a table, by default `message`, or t0, t1, ..., or all that are not meaning columns. A single
            column holds letters ("abba") or tokens separated by spaces ("12 7 0"), of any lengths; several columns
            hold one token each.
        one_hot: number of values per attribute, for interactions whose meanings are concatenated one-hot vectors.
        eos: the token that ends a message; see Table.of.

    Returns:
        The table, named after the language or the file.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: the file does not hold meanings and messages.
    """
    file = Path(path)
    readers: dict[str, Callable[[], Table]] = {
        ".csv": lambda: _read_text(file, _listed(meaning_columns), _listed(message_columns)),
        ".tsv": lambda: _read_text(file, _listed(meaning_columns), _listed(message_columns)),
        ".parquet": lambda: _read_parquet(file, _listed(meaning_columns), _listed(message_columns)),
        ".npz": lambda: _read_arrays(file),
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
        return Table.of(Language.load(file))
    try:
        frame = storage.read_frame(file)
    except (OSError, ValueError) as error:
        raise StoreError(f"The table '{file}' cannot be read: {str(error).strip()}.") from error
    return _of_frame(frame, meaning_columns, message_columns)


def _read_parquet(file: Path, meaning_columns: list[str], message_columns: list[str]) -> Table:
    import pandas as pd

    try:
        return Table.of(Language.load(file))
    except StoreError:
        pass  # not a language of icy's, so the user's own table
    try:
        frame = pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise StoreError(f"The table '{file}' cannot be read: {str(error).strip()}.") from error
    return _of_frame(frame, meaning_columns, message_columns)


def _of_frame(frame: "pd.DataFrame", meaning_columns: list[str], message_columns: list[str]) -> Table:
    if frame.empty:
        raise InvalidSettingError("The table has no rows.")
    attributes, tokens = storage.choose_columns([str(c) for c in frame.columns], meaning_columns, message_columns)
    meanings = np.array([_values(frame[c].tolist()) for c in attributes], dtype=object).T
    if len(tokens) > 1:
        return Table.of(_numeric(meanings), [_values(row) for row in zip(*(frame[c] for c in tokens), strict=True)])
    found = frame[tokens[0]].tolist()
    rows = storage.split_messages([s.strip() for s in found]) if isinstance(found[0], str) else found
    return Table.of(_numeric(meanings), _token_rows(rows))


def _values(column: Sequence[Any]) -> list[Any]:
    """Return a column (or row) as numbers if all entries are numbers, else unchanged."""
    texts = [v.strip() if isinstance(v, str) else v for v in column]
    for kind in (int, float):
        try:
            return [kind(v) for v in texts] if all(kind(v) == float(v) for v in texts) else texts
        except (TypeError, ValueError):
            continue
    return texts


def _numeric(meanings: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the meanings as an array of floats if all are numbers, else unchanged."""
    try:
        return meanings.astype(float)
    except (TypeError, ValueError):
        return meanings


def _token_rows(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return messages of integers if every token is one, else messages of names."""
    listed = [list(row) for row in rows]
    try:
        return [[int(token) for token in row] for row in listed]
    except (TypeError, ValueError):
        return listed


def _read_arrays(file: Path) -> Table:
    try:
        return Table.of(Language.load(file))
    except StoreError:
        pass  # not a language of icy's, so the user's own arrays
    try:
        with np.load(file, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise StoreError(f"'{file}' cannot be read: {str(error).strip()}.") from error
    if not {"meanings", "messages"} <= set(found):
        raise InvalidSettingError(
            f"The file has the arrays {', '.join(found) or 'none'}; it needs 'meanings' and 'messages'."
        )
    return Table.of(found["meanings"], found["messages"])


class _Interaction:
    """Stand-in for EGG's class of this name, whose fields become attributes."""


def _read_interaction(file: Path, fields: list[str], one_hot: int | None) -> Table:
    """Read the pickled Interaction of tensors that EGG's `dump_interactions` or InteractionSaver writes."""
    import pickle

    import torch

    try:
        with torch.serialization.safe_globals([(_Interaction, EGG_CLASS)]):
            held = vars(torch.load(file, map_location="cpu", weights_only=True))
    except (OSError, RuntimeError, pickle.UnpicklingError, EOFError, TypeError) as error:
        first = str(error).strip().partition("\n")[0]
        raise StoreError(f"'{file}' is no csv, tsv, parquet or npz, and no interactions of EGG's: {first}.") from error
    meanings, messages = _field(held, (fields or ["sender_input"])[0]), _field(held, "message")
    if messages.ndim == 3:  # one-hot or relaxed symbols, under Gumbel-softmax
        messages = messages.argmax(-1)
    rows = messages.astype(np.int64)
    if held.get("message_length") is not None:  # tokens after the end were sampled, but the receiver ignored them
        lengths = _field(held, "message_length").astype(np.int64)
        return Table.of(_classes(meanings, one_hot), [row[:n] for row, n in zip(rows, lengths, strict=True)])
    return Table.of(_classes(meanings, one_hot), rows if rows.ndim == 2 else rows[:, None])


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
