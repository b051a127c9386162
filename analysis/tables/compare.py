"""Results beside other numbers: published ones, or those of other results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from icy.analysis.cells import Beside, Cell, both_cut, cell_of
from icy.analysis.literature.agreement import agreement, end_to_end_agreement, with_distance
from icy.analysis.literature.catalogue import find_table
from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.records.load import ATLAS, long_of, read_long
from icy.records.long_table import ROW

PUBLISHED = "published"
# What makes rows of two results the same, however they were trained; and what tells rows of one result apart besides.
SAME = ["model", "options", "representation", "meanings", "vocab_size", "word_length", "hidden_size", "protocol",
        "held_out", "split"]  # fmt: skip
ELSE = [name for name in ROW if name not in SAME]
Where = tuple[int, str]  # the number of a row, in the order of its first replicate; and a grammar


def numbered(long: pd.DataFrame) -> pd.DataFrame:
    """The same with a column `row`: which row of the table each replicate belongs to."""
    return long.assign(row=long.groupby(list(ROW), sort=False, dropna=False).ngroup())


def compared_with(compare: Any) -> tuple[str | pd.DataFrame | None, str]:
    """What to compare with, and what that is called.

    But for "published", results where there are any of that name, else a published table.

    Args:
        compare: "published", the name of one published table, "atlas", a results folder or file, results, or None.

    Raises:
        UnknownNameError: there is nothing of that name.
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
        raise UnknownNameError(f"There is no file or folder {compare}. {error}") from error


def beside_of(long: pd.DataFrame, compare: str | pd.DataFrame | None, spread: str = "sem") -> dict[Where, Beside]:
    """What stands beside the cells of a table.

    Args:
        long: results in long form, with the column `row`.
        compare: "published", the name of one published table, other results in long form, or None for nothing.
        spread: of other results, as it is shown.

    Raises:
        UnknownNameError: no such table.
        InvalidSettingError: two rows of the other results are alike, but for what this row has not.
    """
    if compare is None:
        return {}
    return _published_beside(long, compare) if isinstance(compare, str) else _others_beside(long, compare, spread)


def _published_beside(long: pd.DataFrame, name: str) -> dict[Where, Beside]:
    """Of the published tables that have a row, the one with most of its cells."""
    cells = agreement(long, "" if name == PUBLISHED else name, by=["row"])
    covered = cells.groupby(["row", "source", "table"])["grammar"].transform("size")
    # Of equals, that of Perkins21, which prints errors where Icy22's table 20 has none.
    cells = cells.assign(covered=covered).sort_values(["covered", "source"], ascending=False, kind="stable")
    best = cells.drop_duplicates(["row"])[["row", "source", "table"]]
    chosen = cells.merge(best, on=["row", "source", "table"])
    return {(int(cell["row"]), str(cell["grammar"])): _beside(cell) for _, cell in chosen.iterrows()}


def pairs_beside(long: pd.DataFrame, name: str) -> dict[tuple[int, str, str], Beside]:
    """What was published of pairs, by row, grammar and measure.

    Args:
        long: results in long form, with the column `row`.
        name: "published", or the name of one published table.
    """
    cells = end_to_end_agreement(long, "" if name == PUBLISHED else name, by=["row"])
    return {
        (int(cell["row"]), str(cell["grammar"]), str(cell["measure"])): _beside(cell) for _, cell in cells.iterrows()
    }


def _beside(cell: pd.Series[Any]) -> Beside:
    source = find_table(f"{cell['source']}/{str(cell['table']).partition('/')[0]}").id
    return Beside(cell["published"], cell["published_error"], cell["distance"], source=source)


def _others_beside(long: pd.DataFrame, other: pd.DataFrame, spread: str) -> dict[Where, Beside]:
    other = numbered(other)
    ours, theirs, shown = _cells(long, "sem"), _cells(other, "sem"), _cells(other, spread)
    partners = matched_rows(long, other)  # several rows may have the same one
    otherwise = _otherwise(long, other, partners)
    pairs = [((row, grammar), (partners.get(row, -1), grammar)) for row, grammar in ours]
    pairs = [(own, their) for own, their in pairs if their in theirs and ours[own].seeds and theirs[their].seeds]
    ratios = set(other.loc[other["measure"] == "ratio", "row"])
    rows = [[*_numbers(ours[own]), *_numbers(theirs[their]), 0.0] for own, their in pairs]
    names = ["icy", "icy_error", "seeds", "published", "published_error", "n", "rounding"]
    distances = with_distance(pd.DataFrame(rows, columns=names, dtype=float))["distance"]
    found = {}
    for (own, their), distance in zip(pairs, distances, strict=True):
        cell = theirs[their]
        if their[0] in ratios and both_cut(cell.mean, cell.seeds, cell.cut, ours[own].mean):
            distance = math.nan
        found[own] = Beside(cell.mean, shown[their].spread, distance, cell.cut > 0, otherwise=otherwise[own[0]])
    return found


def _numbers(cell: Cell) -> tuple[float, float, int]:
    return cell.mean, cell.spread, cell.seeds


def _cells(long: pd.DataFrame, spread: str) -> dict[Where, Cell]:
    """The cells of a table, by row and grammar."""
    found = {}
    for key, part in long.groupby(["row", "grammar"]):
        row, grammar = key  # type: ignore[misc]
        found[int(str(row)), str(grammar)] = cell_of(part, spread)
    return found


def matched_rows(long: pd.DataFrame, other: pd.DataFrame) -> dict[int, int]:
    """For the rows of one table, the rows of another that are of the same model, sizes and protocol.

    Where several are, the one that was trained alike.

    Raises:
        InvalidSettingError: several are, and none or more than one of them was trained alike.
    """
    mine, theirs = (_first(table) for table in (long, other))
    found = {}
    for row, about in mine.iterrows():
        alike = theirs[_alike(theirs, about, SAME)]
        if len(alike) > 1:
            alike = alike[_alike(alike, about, ELSE)]
            if len(alike) != 1:
                raise InvalidSettingError(
                    f"The other results have several rows of {about['model']} at {about['meanings']}, which differ in "
                    "how they were trained; compare with a folder that has one."
                )
        if len(alike):
            found[int(str(row))] = int(str(alike.index[0]))
    return found


def _first(long: pd.DataFrame) -> pd.DataFrame:
    return long.drop_duplicates("row").set_index("row")[[*SAME, *ELSE]]


def _alike(rows: pd.DataFrame, about: pd.Series[Any], names: Sequence[str]) -> pd.Series[bool]:
    """Which rows are the same as one in some columns."""
    same = pd.Series(True, index=rows.index)
    for name in names:
        value, column = about[name], rows[name]
        same &= column.isna() if pd.isna(value) else column.eq(value).fillna(False).astype(bool)
    return same


def _otherwise(long: pd.DataFrame, other: pd.DataFrame, partners: Mapping[int, int]) -> dict[int, tuple[str, ...]]:
    """In what the partner of a row was trained otherwise: columns of the long table."""
    mine, theirs = _first(long), _first(other)
    return {
        row: tuple(name for name in ELSE if not _alike(theirs.loc[[partner]], mine.loc[[row]].iloc[0], [name]).all())
        for row, partner in partners.items()
    }


def paired_differences(long: pd.DataFrame, other: pd.DataFrame) -> tuple[pd.DataFrame, list[tuple[str, ...]]]:
    """Replicate by replicate, how far `long` lies above `other`: rows of the same model, sizes and protocol, and the
    same seed, which have the same words and see the same meanings.

    Returns:
        The part of `long` that has a partner, with the difference as value; and of every row with a partner, in what
        that was trained otherwise.

    Raises:
        IncompatibleError: nothing of the one is in the other.
        InvalidSettingError: as for `matched_rows`.
    """
    long, other = numbered(long), numbered(other)
    partner = matched_rows(long, other)
    good = other[~other["failed"].astype(bool)].set_index(["row", "grammar", "seed"])[["value", "cut"]]
    keys = pd.MultiIndex.from_arrays([long["row"].map(partner), long["grammar"], long["seed"]])
    theirs = good.reindex(keys).set_index(long.index)
    cut = long["cut"].astype(bool) | theirs["cut"].eq(True)
    both = long.assign(value=long["value"] - theirs["value"], cut=cut)
    both = both[both["value"].notna() & ~long["failed"].astype(bool)]
    if not len(both):
        raise IncompatibleError(
            "The two results share no model, sizes, protocol, grammar and seed, so that nothing can be subtracted; "
            "--compare shows them side by side."
        )
    return both.drop(columns="row"), list(_otherwise(long, other, partner).values())
