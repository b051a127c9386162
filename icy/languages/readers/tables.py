"""Conversion of the columns that a reader found to a table, with a sentence on how they were read."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from icy.core.csv_files import DECIMAL_COMMA
from icy.core.errors import InvalidSettingError, unknown
from icy.core.text import counted, listed
from icy.languages.containers import Entries, Values
from icy.languages.language import Language
from icy.languages.table import Table

from .columns import LENGTHS, choose_columns
from .files import File, Found

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
