"""Reference values for results: published values, or values of other results."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from icy.analysis.literature.agreement import agreement, end_to_end_agreement, with_distance
from icy.analysis.literature.catalogue import find_table
from icy.analysis.order import Series, text_of
from icy.analysis.table_cells import Reference, TableCell, both_censored, cell_in_row, cell_of
from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.core.text import listed
from icy.records.load import ATLAS, Results, long_of, read_long
from icy.records.long_table import ROW

PUBLISHED = "published"
# Columns of ROW in which rows of two results must agree to be compared. The rest (TRAINING) are settings of training.
IDENTITY = ["model", "options", "representation", "meanings", "vocab_size", "word_length", "hidden_size", "protocol",
            "held_out", "split"]  # fmt: skip
TRAINING = [name for name in ROW if name not in IDENTITY]
LIMIT = ["max_updates"]  # rows with this budget are compared with rows without it only if none has the same budget
CellKey = tuple[int, str]  # number of a row (`numbered`), and a grammar


def compared_with(compare: Results | None) -> tuple[str | pd.DataFrame | None, str]:
    """Find the reference results, and their heading in tables.

    A name other than "published" is first searched among files and folders, then among published tables.

    Args:
        compare: "published", the name of one published table, "atlas", a results folder or file, results, or None.

    Returns:
        "published", the id of a published table, other results in long form, or None; and the heading.

    Raises:
        UnknownNameError: the name is not a file, a folder or a published table.
    """
    if compare is None:
        return None, ""
    if not isinstance(compare, str | Path):
        return long_of(compare), "other"
    if compare == PUBLISHED:
        return PUBLISHED, PUBLISHED
    if compare == ATLAS or Path(compare).exists():
        return read_long(compare), Path(compare).stem
    try:
        return find_table(str(compare)).id, PUBLISHED
    except UnknownNameError as error:
        raise UnknownNameError(f"'{compare}' is not a file or a folder. {error}") from error


def cell_references(
    long: pd.DataFrame, compare: str | pd.DataFrame | None, spread: str = "sem"
) -> dict[CellKey, Reference]:
    """Return the reference values of a table's cells.

    Args:
        long: results in long form, with the column `row`.
        compare: "published", the name of one published table, other results in long form, or None for no references.
        spread: spread to show with the means of other results, a name of `icy.analysis.table_cells.SPREADS`.

    Raises:
        UnknownNameError: an unknown table.
        InvalidSettingError: several rows of the other results match one row (`matched_rows`).
    """
    if compare is None:
        return {}
    return _published_references(long, compare) if isinstance(compare, str) else _references(long, compare, spread)


def pair_references(long: pd.DataFrame, name: str) -> dict[tuple[int, str, str], Reference]:
    """Return published values of pairs, by row, grammar and measure.

    Args:
        long: results in long form, with the column `row`.
        name: "published", or the name of one published table.
    """
    cells = end_to_end_agreement(long, "" if name == PUBLISHED else name, by=["row"])
    return {
        (int(cell["row"]), str(cell["grammar"]), str(cell["measure"])): _reference(cell) for _, cell in cells.iterrows()
    }


def matched_rows(long: pd.DataFrame, other: pd.DataFrame, names: Sequence[str] = IDENTITY) -> dict[int, int]:
    """Match the rows of two tables by model, sizes and protocol.

    If several rows match, take the row with the same training.

    Args:
        long: results in long form, with the column `row`.
        other: other results in long form, with the column `row`.
        names: columns of ROW in which rows must agree.

    Returns:
        A dict from the number of a row of `long` to the number of its partner, without rows that have no partner.

    Raises:
        InvalidSettingError: several rows match, and not exactly one of them has the same training.
    """
    mine, theirs = (_first(table) for table in (long, other))
    found = {}
    for row, about in mine.iterrows():
        alike = theirs[equal_rows(theirs, about, names)]
        if len(alike) > 1 and equal_rows(alike, about, LIMIT).any():
            alike = alike[equal_rows(alike, about, LIMIT)]
        if len(alike) > 1:
            several = alike
            alike = alike[equal_rows(alike, about, [name for name in ROW if name not in (*names, "model")])]
            if len(alike) != 1:
                differ = [name for name in ROW if several[name].map(str).nunique() > 1]
                name = differ[-1]
                values = [text_of(value) for value in several[name].drop_duplicates()]
                example = shlex.quote(f"FOLDER:{name}={max(values, key=len)}")
                usual = f", or :{name}= for the row without" if "-" in values else ""
                raise InvalidSettingError(
                    f"The other results have several rows of {about['model']} at {about['meanings']}, which differ in "
                    f"{listed(differ)}: select one with `icy compare`, as in {example}{usual}."
                )
        if len(alike):
            found[int(str(row))] = int(str(alike.index[0]))
    return found


def numbered(long: pd.DataFrame) -> pd.DataFrame:
    """Add a column `row`: the number of each replicate's row, in the order of first replicates."""
    return long.assign(row=long.groupby(list(ROW), sort=False, dropna=False).ngroup())


def _published_references(long: pd.DataFrame, name: str) -> dict[CellKey, Reference]:
    """Return published values; each row takes them from the table with most of its cells."""
    cells = agreement(long, "" if name == PUBLISHED else name, by=["row"])
    covered = cells.groupby(["row", "source", "table"])["grammar"].transform("size")
    # A tie goes to Perkins21, which prints errors where Icy22's table 20 has none.
    cells = cells.assign(covered=covered).sort_values(["covered", "source"], ascending=False, kind="stable")
    best = cells.drop_duplicates(["row"])[["row", "source", "table"]]
    chosen = cells.merge(best, on=["row", "source", "table"])
    return {(int(cell["row"]), str(cell["grammar"])): _reference(cell) for _, cell in chosen.iterrows()}


def _reference(cell: Series) -> Reference:
    source = find_table(f"{cell['source']}/{str(cell['table']).partition('/')[0]}").id
    return Reference(cell["published"], cell["published_error"], cell["distance"], source=source)


def _references(long: pd.DataFrame, other: pd.DataFrame, spread: str) -> dict[CellKey, Reference]:
    """Return the values of other results."""
    other = numbered(other)
    ours, theirs, shown = _cells(long, "sem"), _cells(other, "sem"), _cells(other, spread, cell_in_row)
    partners = matched_rows(long, other)  # several rows may have the same one
    differences = training_differences(long, other, partners)
    pairs = [((row, grammar), (partners.get(row, -1), grammar)) for row, grammar in ours]
    pairs = [(own, their) for own, their in pairs if their in theirs and ours[own].seeds and theirs[their].seeds]
    ratios = set(other.loc[other["measure"] == "ratio", "row"])
    both = [(ours[own], theirs[their]) for own, their in pairs]
    rows = [[a.mean, a.spread, a.seeds, b.mean, b.spread, b.seeds, 0.0] for a, b in both]
    names = ["icy", "icy_error", "seeds", "published", "published_error", "n", "rounding"]
    distances = with_distance(pd.DataFrame(rows, columns=names, dtype=float))["distance"]
    found = {}
    for (own, their), distance in zip(pairs, distances, strict=True):
        cell = theirs[their]
        if their[0] in ratios and both_censored(cell.mean, cell.seeds, cell.censored, ours[own].mean):
            distance = math.nan
        log = shown[their].log if shown[their].log_scale else None
        error = math.nan if log else shown[their].spread
        found[own] = Reference(cell.mean, error, distance, cell.censored > 0, "", differences[own[0]], log)
    return found


def _cells(long: pd.DataFrame, spread: str, cell: Callable[..., TableCell] = cell_of) -> dict[CellKey, TableCell]:
    """Return the cells of a table, by row and grammar."""
    found = {}
    for key, part in long.groupby(["row", "grammar"]):
        row, grammar = key  # type: ignore[misc]
        found[int(str(row)), str(grammar)] = cell(part, spread)
    return found


def _first(long: pd.DataFrame) -> pd.DataFrame:
    return long.drop_duplicates("row").set_index("row")[[*IDENTITY, *TRAINING]]


def equal_rows(rows: pd.DataFrame, about: Series, names: Sequence[str]) -> pd.Series[bool]:
    """Return a mask of the rows that equal `about` in the columns `names`; missing values are equal."""
    same = pd.Series(True, index=rows.index)
    for name in names:
        value, column = about[name], rows[name]
        same &= column.isna() if pd.isna(value) else column.eq(value).fillna(False).astype(bool)
    return same


def training_differences(
    long: pd.DataFrame, other: pd.DataFrame, partners: Mapping[int, int]
) -> dict[int, tuple[str, ...]]:
    """Return the columns of TRAINING in which each row differs from its partner."""
    mine, theirs = _first(long), _first(other)
    return {
        row: tuple(n for n in TRAINING if not equal_rows(theirs.loc[[partner]], mine.loc[[row]].iloc[0], [n]).all())
        for row, partner in partners.items()
    }
