"""Published games: jobs that retrain their agents, and comparison of the results with the printed numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import pandas as pd

from icy.analysis.row_types import Facts, Row
from icy.analysis.table_cells import Reference, TableCell
from icy.records.long_table import SYNONYMS

from .catalogue import find_table, published
from .verdicts import judge_runs

GameKey = tuple[str, str, int, int, int]  # world, representation, rule length, word size, message length
SEEDS = 3  # the table's rows were trained once
WHICH = ("world", "representation", "rule_length", "word_size", "message_length")


@dataclass(frozen=True)
class GameTable:
    """How the agents of a published table of games are trained.

    Attributes:
        arguments: arguments of the kind of job "games" that all rows share.
        by_size: whether the names of rows contain the size of words.
    """

    arguments: Facts = field(default_factory=dict)
    by_size: bool = False


GAMES = MappingProxyType(
    {
        "cbm24/table1": GameTable({"targets": 20}),
        "cbm24/table3": GameTable({"targets": 8, "steps": 200_000}, by_size=True),  # its best epochs are 100 at most
    }
)


def with_names(cells: pd.DataFrame, table: str) -> pd.DataFrame:
    """Add the column `row`, the name of the game as in "thing-qt-l4", to a published table of games.

    Example:
        >>> from icy.analysis import published
        >>> with_names(published("cbm24/table3"), "cbm24/table3")["row"].iloc[0]
        'shape-gs-l1-d8'
    """
    if "message_length" not in cells:
        cells = cells.assign(message_length=cells["rule_length"])
    names = cells["world"] + "-" + cells["representation"] + "-l" + cells["rule_length"].astype(str)
    if GAMES[table].by_size:
        names += "-d" + cells["word_size"].astype(str)
    return cells.assign(row=names)


def game_parts(table: str, reference: pd.DataFrame, seeds: object = None) -> list[Facts]:
    """Return the arguments of the jobs ("games") that retrain published agents, a dict per row of the table.

    Args:
        table: id of the table, one of GAMES.
        reference: cells of the table from `with_names`.
        seeds: seeds; by default SEEDS.
    """
    parts = []
    for _, rows in reference.groupby("row", sort=False):
        first = rows.iloc[0]
        own = {name: first[name] if name in ("world", "representation") else int(first[name]) for name in WHICH}
        parts.append({**GAMES[table].arguments, **own, "seeds": SEEDS if seeds is None else seeds})
    return parts


# -- values side by side -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublishedRow:
    """The published values of a row, by measure."""

    values: Mapping[str, float]
    table: str

    def with_reference(self, measure: str, cell: TableCell) -> TableCell:
        """Add the published value of a measure to a cell, if there is one."""
        if measure not in self.values or not cell.seeds:
            return cell
        value = self.values[measure]
        error = cell.spread / math.sqrt(cell.seeds) if cell.seeds > 1 else math.nan
        distance = (cell.mean - value) / error if error else math.nan
        return replace(cell, reference=Reference(value, math.nan, distance, source=self.table))


def references(table: str) -> dict[GameKey, PublishedRow]:
    """Return the rows of a published table of games, by the columns of WHICH.

    Raises:
        UnknownNameError: an unknown table of games.
    """
    found = find_table(table)
    if found.id not in GAMES:
        from icy.core.errors import unknown

        raise unknown("published table of games", table, list(GAMES))
    cells = with_names(published(found.id), found.id)
    return {
        _row(rows.iloc[0].to_dict()): PublishedRow(dict(zip(rows["measure"], rows["mean"], strict=True)), found.id)
        for _, rows in cells.groupby("row", sort=False)
    }


def _row(cell: Row) -> GameKey:
    numbers = (int(cell[name]) for name in WHICH[2:])
    return (str(cell["world"]), str(cell["representation"]), *numbers)  # type: ignore[return-value]


def judge_games(table: str, long: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare results with the published numbers of games; see `icy.analysis.literature.verdicts.judge_cells`.

    Args:
        table: id of the table, one of GAMES.
        long: results of the kind of job "games" in long form, with the column `world`.
        reference: cells of the table from `with_names`.

    Returns:
        The table of `judge_cells`: the column `representation` holds the world, and `model` the name of the row.
    """
    runs = [_runs(long, cell) for cell in reference.to_dict("records")]
    cells = reference.rename(columns={"row": "model"}).assign(representation=reference["world"].str.title(), grammar="")
    return judge_runs(cells, runs)


def _runs(long: pd.DataFrame, cell: Row) -> pd.DataFrame:
    """Return the columns `value` and `failed` of the runs of a published cell."""
    rows = rows_of(long, cell)
    return (
        rows[[cell["measure"], "failed"]].set_axis(["value", "failed"], axis=1) if cell["measure"] in rows else rows[:0]
    )


def rows_of(long: pd.DataFrame, cell: Row) -> pd.DataFrame:
    """Return the results of the game that a published cell belongs to."""
    if not len(long):
        return long
    same = pd.Series(True, index=long.index)
    for name in WHICH:
        same &= long[SYNONYMS.get(name, name)].eq(cell[name])
    return long[same]
