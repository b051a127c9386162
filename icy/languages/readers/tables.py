"""Choice of the columns of a file that hold meanings and messages, and their conversion to a table."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from icy.core.errors import InvalidSettingError, unknown
from icy.core.files import DECIMAL_COMMA, of_one_name
from icy.core.text import counted, listed
from icy.languages.language import Language
from icy.languages.rule import Container, Entries, Values
from icy.languages.table import Table

from .files import File, Found

# -- choice of the columns of a file that hold meanings and messages ---------------------------------------------------


MESSAGES = ("message", "messages", "utterance", "utterances", "tokens")  # usual names of columns with messages
MEANINGS = (
    *("meaning", "meanings", "attributes", "concepts", "concept", "phrase", "phrases", "semantics", "input", "inputs"),
    *("sender_input", "sender_inputs", "observations", "observation"),
)
LENGTHS = ("message_length", "message_lengths")  # names of columns with the number of tokens of each message
NO_ATTRIBUTES = {*LENGTHS, "receiver_input", "receiver_output", "aux_input"}  # names of EGG
IN_PYTHON = "in Python, meaning_columns= and message_columns="
OPTIONS = f"--meaning-columns and --message-columns ({IN_PYTHON})"


class ColumnChoice(NamedTuple):
    """Columns of meanings and of messages.

    Attributes:
        meanings: the columns of meanings; none if the file only has messages.
        messages: the columns of messages.
        rest: whether meanings are simply all columns that do not hold messages.
    """

    meanings: list[str]
    messages: list[str]
    rest: bool = False


def require_distinct(header: Sequence[str], where: str) -> None:
    """Raise InvalidSettingError if several columns have the same name."""
    if same := of_one_name(header):
        raise InvalidSettingError(f"{same[0].upper()}{same[1:]} {where}; rename one of them.")


def choose_columns(
    columns: Sequence[str],
    meaning_columns: Sequence[str] = (),
    message_columns: Sequence[str] = (),
    header: str = "",
    *,
    with_messages: bool = True,
) -> ColumnChoice:
    """Choose the columns of meanings and of messages: by request, by name, or all other columns.

    Args:
        columns: all names. "Meaning.size" is an entry of the dictionary "Meaning", and belongs to it.
        meaning_columns: requested columns of meanings, if any.
        message_columns: requested columns of messages, if any.
        header: where the names come from, for errors.
        with_messages: whether there must be messages; if not, all columns of a table without messages are meanings.

    Raises:
        InvalidSettingError: a column is missing or requested twice, or the columns cannot be distinguished.

    Example:
        >>> choose_columns(["id", "Meaning.size", "Meaning.hue", "Tokens"])
        ColumnChoice(meanings=['Meaning.size', 'Meaning.hue'], messages=['Tokens'], rest=False)
        >>> choose_columns(["size", "hue", "t0", "t1"])
        ColumnChoice(meanings=['size', 'hue'], messages=['t0', 't1'], rest=True)
        >>> choose_columns(["size", "hue"], with_messages=False)
        ColumnChoice(meanings=['size', 'hue'], messages=[], rest=True)
    """
    wanted, spoken = _with_entries(columns, meaning_columns), _with_entries(columns, message_columns)
    tokens = spoken or [name for name in messages_by_name(columns) if name not in wanted]
    known = meanings_by_name(columns) if with_messages or tokens else []
    attributes = wanted or [name for name in known if name not in tokens]
    if attributes and not tokens:
        tokens = [name for name in columns if name not in attributes]
    others = [name for name in columns if name not in tokens and not _of_egg(name)]
    alone = bool(tokens) and not others and not wanted
    rest = not attributes and not alone
    if rest:  # t0, t1 and so on hold a message, even if another column does too
        attributes = [name for name in others if not re.fullmatch(r"t\d+", name)]
    found = f"The table has the column{'s' * (len(columns) != 1)} {', '.join(c or '(no name)' for c in columns)}"
    found += f" ({header})" if header else ""
    if unknown := [name for name in (*attributes, *tokens) if name not in columns]:
        raise InvalidSettingError(f"{found}; '{unknown[0]}' is not one of them; choose by {OPTIONS}.")
    if "" in (*attributes, *tokens):
        raise InvalidSettingError(
            f"Column {list(columns).index('') + 1} has no name in the header: name it, or leave it out (pandas writes "
            "its index in this way unless index=False), or choose the columns of meanings and messages."
        )
    twice = len({*attributes, *tokens}) != len(attributes) + len(tokens)
    if with_messages and (twice or not tokens or not (attributes or alone)):
        raise InvalidSettingError(
            f"{found}; choose columns of meanings and columns of messages, without overlap, as in "
            f"--message-columns {shlex.quote(columns[-1])}, which makes all others meanings ({IN_PYTHON})."
        )
    return ColumnChoice(attributes, tokens, rest)


def messages_by_name(columns: Sequence[str]) -> list[str]:
    """Return the columns of messages by their names: `message` and the like, or t0, t1, and so on."""
    return _columns_named(columns, MESSAGES) or _in_order(columns, "t")


def meanings_by_name(columns: Sequence[str]) -> list[str]:
    """Return the columns of meanings by their names: m0, m1, and so on, or `meaning` and the like."""
    return _in_order(columns, "m") or _columns_named(columns, MEANINGS)


def _of_egg(name: str) -> bool:
    """Return whether a column is a field of EGG's Interaction without meanings or messages."""
    parts = name.lower().split(".")
    return not NO_ATTRIBUTES.isdisjoint(parts) or "aux" in parts[:-1]


def _columns_named(columns: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the columns that have the first of the known names that occurs; an equal case is preferred."""
    first = {column: column.partition(".")[0] for column in columns}
    for name in known:
        if found := [column for column in columns if first[column] == name]:
            return found
        if found := [column for column in columns if first[column].lower() == name]:
            return found
    return []


def _in_order(columns: Sequence[str], letter: str) -> list[str]:
    """Return the columns t0, t1, t2 and so on, by their numbers."""
    return sorted((c for c in columns if re.fullmatch(rf"{letter}\d+", c)), key=lambda c: int(c[1:]))


def _with_entries(columns: Sequence[str], requested: Sequence[str]) -> list[str]:
    """Return the requested names; a dictionary is replaced by the names of its entries."""
    entries = {name: [column for column in columns if column.startswith(f"{name}.")] for name in requested}
    return [each for name in requested for each in (entries[name] if name not in columns and entries[name] else [name])]


def with_columns(found: Found, file: File) -> Found:
    """Keep only the columns that have as many rows as meanings and messages.

    If these have unusual names, all columns must have as many rows. The rest is named in a remark.

    Raises:
        InvalidSettingError: the columns differ in their number of rows, or have none.
    """
    flat = _opened(found.columns)
    rows = {n: len(c) for n, c in flat.items() if isinstance(c, (list, tuple)) or getattr(c, "ndim", 0) > 0}
    names = list(rows)
    named = _with_entries(names, file.meaning_columns or found.meanings or meanings_by_name(names))
    named += _with_entries(names, file.message_columns or found.messages or messages_by_name(names))
    lengths = {rows[name] for name in named if name in rows} or {*rows.values()}
    lengths |= {n for name, n in rows.items() if named and name.lower().endswith(LENGTHS)}
    if len(lengths) != 1:
        there = listed([f"{name} ({counted(n, 'row')})" for name, n in rows.items()]) or "no columns"
        raise InvalidSettingError(
            f"Meanings and messages must have the same number of rows, but the file has {there}; {OPTIONS} choose them."
        )
    if lengths == {0}:
        raise InvalidSettingError("The file has no rows.")
    columns = _with_entries_apart({name: flat[name] for name, n in rows.items() if n in lengths})
    rest = [name for name in flat if rows.get(name) not in lengths]
    return replace(found, columns=columns, remarks=[*found.remarks, *([f"not used: {listed(rest)}"] if rest else [])])


def _with_entries_apart(columns: Mapping[str, Entries]) -> dict[str, Entries]:
    """Return columns of dictionaries as a column for each entry, with names such as "aux.length"."""
    apart: dict[str, Entries] = {}
    for name, column in columns.items():
        held = [row for row in column if row is not None] if isinstance(column, list) else []
        if not held or not all(isinstance(row, Mapping) for row in held):
            apart[name] = column
            continue
        keys = dict.fromkeys(key for row in held for key in row)
        apart |= _with_entries_apart({f"{name}.{k}": [None if r is None else r.get(k) for r in column] for k in keys})
    return apart


def _opened(held: Mapping[str, Container]) -> dict[str, Container]:
    """Flatten dictionaries, with names such as "aux.length", and convert nested tensors to lists."""
    flat: dict[str, Container] = {}
    for name, entry in held.items():
        if isinstance(entry, Mapping):
            flat |= {f"{name}.{key}": value for key, value in _opened(entry).items()}
        else:
            flat[str(name)] = list(entry.unbind()) if getattr(entry, "is_nested", False) else entry
    return flat


# -- conversion of the columns that a reader found to a table, with a sentence on how they were read -------------------


MOST_LISTED = 12  # limit of the attributes that a sentence lists
SETS = ("concepts", "phrase", "phrases", "semantics")  # names of columns of phrases
WEIGHTS = (
    *("count", "counts", "weight", "weights", "frequency", "frequencies", "freq", "freqs", "n"),
    *("probability", "probabilities", "prob", "occurrences"),
)  # usual names of columns of weights
log = logging.getLogger(__name__)


def table_of(found: Found | Language, file: File, reading: Mapping[str, Any]) -> Table:
    """Convert the columns that a reader found to a table, named after the language or the file.

    Args:
        found: columns, or a language of icy.
        file: the file, with the requested columns.
        reading: options of `icy.languages.rule.Rule`.

    Raises:
        InvalidSettingError: a column is missing, or the entries do not form a table.
    """
    if isinstance(found, Language):
        if file.meaning_columns or file.message_columns or file.weights:
            raise InvalidSettingError("A language of icy has fixed columns and no weights; choose none.")
        return replace(Table.of(found, **reading), read_as="a language of icy")
    if file.weights not in (None, *found.columns):
        raise unknown("column", str(file.weights), list(found.columns))
    alone = found.meanings is not None and not found.meanings and not file.meaning_columns  # only messages
    names = [name for name in (found.messages if alone and found.messages else found.columns) if name != file.weights]
    attributes, tokens, rest = choose_columns(
        names, file.meaning_columns or found.meanings or (), file.message_columns or found.messages or (), found.header
    )
    meanings, phrases = [with_points(found, name) for name in attributes], found.phrases
    if len(attributes) == 1 and (concepts := _concepts(attributes[0], found.columns[attributes[0]])):
        meanings, phrases = [concepts], True
    places = found.places or range(1, len(found.columns[tokens[0]]) + 1)
    single = len(tokens) == 1 and re.fullmatch(r"t\d+", tokens[0])  # one of several columns with a token each
    options = {
        "tokens": "whole" if single else found.tokens,
        "eos": found.eos,
        "phrases": phrases,
        "lengths": found.lengths,
        **reading,
    }
    table = Table.of(
        _join_columns(meanings),
        _join_columns([found.columns[name] for name in tokens]),
        weights=None if file.weights is None else with_points(found, file.weights),
        place=lambda row: f"{found.place} {places[row]}",
        columns=(attributes, tokens),
        **options,
    )
    stem = attributes[0] if len(attributes) == 1 else "attribute "
    several = tuple(f"{stem}{a}" for a in range(table.attributes))
    table = replace(
        table,
        name=file.path.stem,
        attribute_names=tuple(attributes) if len(attributes) == table.attributes else several,
    )
    sizes = {name: _count_values(table, a) for a, name in enumerate(table.attribute_names)}
    if not table.phrases:
        for a, (name, column) in enumerate(zip(sizes, table.meanings.T, strict=True)):
            if len(table) > 1 and (column == column[0]).all():
                value = table.value_name(a, column[0])
                log.warning("The attribute '%s' has the same value, %s, in every row.", name, value)
        if rest:
            warn_of_columns(
                sizes,
                len(table),
                " by --meaning-columns {others} (in Python, meaning_columns=)",
                "use --weights {name} (in Python, weights=)",
            )
    return replace(table, read_as=_read_as(found, file, attributes, tokens, table, sizes))


def _concepts(name: str, column: Entries) -> Values:
    """Return the list of concepts of each phrase if a column holds phrases; otherwise an empty list.

    A column holds phrases if its entries are lists of names, or texts with spaces, that differ in length.
    For lists, a usual name of phrases is enough.
    """
    usual = name.lower() in SETS or name.isdecimal()  # a number in place of a name: SCAN, COGS
    if usual and all(isinstance(entry, str) for entry in column):
        parts = [entry.split() for entry in column]
        return parts if len({len(row) for row in parts}) > 1 else []
    if not all(isinstance(entry, list) for entry in column):
        return []
    names = any(isinstance(concept, str) for entry in column for concept in entry)
    return list(column) if names and (usual or len({len(entry) for entry in column}) > 1) else []


def _join_columns(columns: Sequence[Entries]) -> Entries | None:
    """Join columns: one column is unchanged, several columns become rows of entries; None without columns."""
    if len(columns) < 2:
        return columns[0] if columns else None
    return [list(row) for row in zip(*(c.tolist() if isinstance(c, np.ndarray) else c for c in columns), strict=True)]


def with_points(found: Found, name: str) -> Entries:
    """Return the entries of a column, with decimal commas replaced by points if the format uses commas."""
    column: Entries = found.columns[name]
    if found.decimal == ".":
        return column
    if not all(entry is None or (isinstance(entry, str) and re.fullmatch(DECIMAL_COMMA, entry)) for entry in column):
        return column
    return [None if entry is None else entry.replace(",", ".") for entry in column]


def _read_as(
    found: Found, file: File, attributes: Sequence[str], tokens: Sequence[str], table: Table, sizes: Mapping[str, int]
) -> str:
    """Return a line on how each column is read."""
    parts = []
    if table.phrases:
        lengths = [len(phrase) for phrase in table.concepts]
        least = "" if min(lengths) == max(lengths) else f"{min(lengths)} to "
        parts.append(f"phrases of {least}{counted(max(lengths), 'concept')} in {listed(attributes)}")
    elif attributes:
        shown = [f"{name} ({counted(size, 'value') if size else 'real numbers'})" for name, size in sizes.items()]
        several = "" if len(attributes) == len(sizes) else f"{listed(attributes)} as {len(sizes)} "
        parts.append(f"{several}attribute{'s' * (len(sizes) > 1)} {listed(shown, most=MOST_LISTED)}")
    else:
        parts.append("no meanings")
    parts.append(f"message in {listed(tokens)}, {table.read_as}")
    parts += [f"weight in {file.weights}"] if file.weights else []
    used = {*attributes, *tokens, file.weights}
    used |= {name for name in found.columns if found.lengths is not None and name.lower().endswith(LENGTHS)}
    rest = [name or "(no name)" for name in found.columns if name not in used]
    parts += [f"not used: {listed(rest)}"] if rest else []
    parts += [remark for remark in found.remarks if "--eos" not in remark or not table.removed]
    return (f"{found.what}: " if found.what else "") + "; ".join(parts)


def _count_values(table: Table, attribute: int) -> int:
    """Return the number of values of an attribute; 0 for real numbers."""
    column = table.meanings[:, attribute]
    return 0 if table.continuous and (column != np.round(column)).any() else len(np.unique(column))


def warn_of_columns(distinct: Mapping[str, int], rows: int, numbering: str, counting: str) -> None:
    """Log a warning for attributes that may be an id, with a different value in every row, or weights, by their name.

    Args:
        distinct: number of values of each attribute, by name.
        rows: number of rows.
        numbering: advice on an id; "{others}" becomes the names of the other attributes.
        counting: advice on weights; "{name}" becomes the name of the attribute.
    """
    for name, values in distinct.items():
        others = ",".join(other for other in distinct if other != name)
        if others and rows > 2 and values == rows:
            log.warning(
                "The column '%s' has a different value in every row, like an id, and is read as an attribute; if it is "
                "not one, leave it out%s.", name, numbering.format(others=others),
            )  # fmt: skip
        if others and name.lower() in WEIGHTS:
            log.warning(
                "The column '%s' is read as an attribute; if it holds the number of times each row counts, %s.",
                name,
                counting.format(name=name),
            )
