"""Results beside other numbers: published ones, or those of other results."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from icy.errors import InvalidSettingError, UnknownNameError
from icy.long_table import ROW
from icy.reading import ATLAS, long_of, read_long

from .agreement import agreement, end_to_end_agreement
from .cells import Beside, Cell, cell_of
from .literature import find_table

PUBLISHED = "published"
# What makes rows of two results the same, however they were trained; and what tells rows of one result apart besides.
SAME = ["model", "representation", "meanings", "vocab_size", "word_length", "hidden_size", "protocol"]
ELSE = [name for name in ROW if name not in SAME]
Where = tuple[int, str]  # the number of a row, in the order of its first replicate; and a grammar


def numbered(long: pd.DataFrame) -> pd.DataFrame:
    """The same with a column `row`: which row of the table each replicate belongs to."""
    return long.assign(row=long.groupby(list(ROW), sort=False, dropna=False).ngroup())


def compared_with(compare: Any) -> tuple[str | pd.DataFrame | None, str]:
    """What to compare with, and what that is called: results where there are any of that name, else published ones.

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
    return Beside(cell["published"], cell["published_error"], cell["distance"])


def _others_beside(long: pd.DataFrame, other: pd.DataFrame, spread: str) -> dict[Where, Beside]:
    other = numbered(other)
    ours, theirs = _cells(long, "sem"), _cells(other, spread)
    errors = _cells(other, "sem")
    found = {}
    for row, partner in matched_rows(long, other).items():  # several rows may have the same partner
        for grammar in {g for r, g in ours if r == row} & {g for r, g in theirs if r == partner}:
            own, cell = ours[row, grammar], theirs[partner, grammar]
            if own.seeds and cell.seeds:
                combined = math.hypot(own.spread, errors[partner, grammar].spread)
                distance = (own.mean - cell.mean) / combined if combined else math.nan
                found[row, grammar] = Beside(cell.mean, cell.spread, distance, cell.cut > 0)
    return found


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
        alike = theirs[(theirs[SAME] == about[SAME]).all(axis=1)]
        if len(alike) > 1:
            alike = alike[[_equal(candidate, about) for _, candidate in alike.iterrows()]]
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


def _equal(one: pd.Series[Any], other: pd.Series[Any]) -> bool:
    return all(
        pd.isna(one[name]) == pd.isna(other[name]) and (pd.isna(one[name]) or one[name] == other[name]) for name in ELSE
    )


def paired_differences(long: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Replicate by replicate, how far `long` lies above `other`: rows of the same model, sizes and protocol, and the
    same seed, which have the same words and see the same meanings.

    Returns:
        The part of `long` that has a partner, with the difference as value.

    Raises:
        InvalidSettingError: nothing of the one is in the other.
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
        raise InvalidSettingError(
            "The two results share no model, sizes, protocol, grammar and seed, so that nothing can be subtracted; "
            "--compare shows them side by side."
        )
    found: pd.DataFrame = both.drop(columns="row")
    return found
