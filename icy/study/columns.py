"""The columns of the study's data, as columns.toml declares them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        type: type and constraints in SQL; "" for a column that the export computes. In the study table, "text" or
            "number".
        meaning: meaning of the column in the export; "" if exports leave it out.
    """

    type: str
    meaning: str = ""


Columns = Mapping[str, Column]


def _columns(declared: Mapping[str, list[str]]) -> Columns:
    return {name: Column(*column) for name, column in declared.items()}


DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""The content of columns.toml."""

DATABASE: Mapping[str, Columns] = {table: _columns(columns) for table, columns in DECLARED["database"].items()}
"""The tables of the database."""

STUDY_TABLE, IDS = _columns(DECLARED["rows"]), _columns(DECLARED["ids"])
"""The columns of the study table, and the further columns of games in an export with ids."""


def exported_columns(part: str) -> dict[str, str]:
    """Return the columns of a part of the export, and their meanings."""
    tables = {**DATABASE, "ids": IDS, "rows": STUDY_TABLE}
    named = DECLARED["export"][part].get("tables", ())
    return {name: one.meaning for table in named for name, one in tables[table].items() if one.meaning}
