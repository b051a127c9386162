"""What the plots read in results: panels that belong together, rows with a label, cells of a mean and a spread."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from icy.analysis.cells import LEAST, Cell, cell_of
from icy.analysis.order import ORDERED, in_order, place_of
from icy.analysis.tables.bias import bias_table
from icy.core.errors import InvalidSettingError
from icy.core.text import natural
from icy.records.load import NONE, Results, long_of, records_in
from icy.records.long_table import ROW
from icy.records.record import Record

BLOCK = ("side", "protocol", "measure", "representation")  # what has a panel, or a row of panels, of its own
PLURAL = {"sender": "senders", "receiver": "receivers", "pair": "sender and receiver"}
LETTERS = {"hidden_size": "E", "vocab_size": "V", "word_length": "w"}
MEASURES = {  # as the names of axes
    "ratio": "ratio to concat",
    "held_out": "held-out accuracy",
    "end_to_end": "end-to-end accuracy",
}


@dataclass(frozen=True, eq=False)
class Line:
    """One row of a bias table: a model under some settings.

    Attributes:
        label: the model, and what tells it from the others beside it.
        model: its name.
        long: its rows of the long table.
    """

    label: str
    model: str
    long: pd.DataFrame
    _cells: dict[tuple[str, str], Cell | None] = field(default_factory=dict, repr=False)

    def cell(self, grammar: str, spread: str) -> Cell | None:
        """Its cell of a grammar; None if that was not measured."""
        if (grammar, spread) not in self._cells:
            part = self.long[self.long["grammar"] == grammar]
            self._cells[grammar, spread] = cell_of(part, spread) if len(part) else None
        return self._cells[grammar, spread]


@dataclass(frozen=True, eq=False)
class Block:
    """Results that may share an axis: of one side, protocol and representation.

    Attributes:
        name: what tells it from the other blocks; "" if there is only one.
        measure: "accuracy", "ratio", "held_out" or "end_to_end".
        long: its rows of the long table.
    """

    name: str
    measure: str
    long: pd.DataFrame

    @cached_property
    def grammars(self) -> list[str]:
        """In the order of the papers' tables."""
        return in_order(self.long["grammar"])

    @property
    def axis(self) -> str:
        """The name of an axis for its values."""
        return MEASURES.get(self.measure, self.measure)

    @property
    def is_ratio(self) -> bool:
        """Whether little is good, and the axis logarithmic."""
        return self.measure == "ratio"

    @cached_property
    def lines(self) -> list[Line]:
        """A line per row of the bias table."""
        return self.lines_over()

    def lines_over(self, *together: str) -> list[Line]:
        """The same, where the rows of one line may differ in some columns."""
        apart = [name for name in ROW[1:] if name not in together]
        varying = [name for name in apart if self.long[name].nunique(dropna=False) > 1]
        return lines_of(self.long, varying, sides=self.long["side"].nunique(dropna=False) > 1)


def lines_of(long: pd.DataFrame, varying: Sequence[str], sides: bool) -> list[Line]:
    """A line per model and values of some columns: by model, then in the order of tables, then of labels.

    Args:
        long: rows of the long table, or curves.
        varying: the columns.
        sides: whether labels tell the side of a model.
    """
    found = []
    for _, part in long.groupby(["model", *varying], sort=False, dropna=False):
        first = part.iloc[0]
        model = str(first["model"])
        label = ", ".join([model if sides else model.rpartition("/")[2], *words(first, varying)])
        usual = [place_of(name, first[name]) for name in varying if name in ORDERED]
        found.append(((natural(model), usual, natural(label)), Line(label, model, part)))
    return [line for _, line in sorted(found, key=lambda one: one[0])]


def measured(results: Results) -> pd.DataFrame:
    """Results in long form, as they are drawn: of pairs the accuracy end to end."""
    long = long_of(results)
    pairs = long["side"].eq("pair")
    if not pairs.any():
        return long
    value = long["end_to_end_accuracy"].where(pairs & ~long["failed"].astype(bool), long["value"])
    return long.assign(value=value, measure=long["measure"].mask(pairs, "end_to_end"))


def words(row: pd.Series[Any], names: Iterable[str]) -> list[str]:
    """The settings of a row as short words."""
    shown = {name: row[name] for name in names if not pd.isna(row[name]) and row[name] != ""}
    return [_word(name, value) for name, value in shown.items()]


def _word(name: str, value: Any) -> str:
    if name in LETTERS:
        return f"{LETTERS[name]}={value}"
    return value if isinstance(value, str) else f"{name.replace('_', ' ')} {value:g}"


def reach(cell: Cell, ratio: bool) -> tuple[float, float]:
    """How far the error of a cell reaches down and up; down to 0 there is no place on a logarithmic axis."""
    up = cell.spread if math.isfinite(cell.spread) else 0.0
    return min(up, 0.9 * cell.mean) if ratio else up, up


def limits(cells: Iterable[Cell | None], ratio: bool) -> tuple[float, float]:
    """Of an axis on which cells and their errors stand; on one of ratios so does 1, which is concat's."""
    found = [(cell.mean, *reach(cell, ratio)) for cell in cells if cell is not None and cell.seeds]
    high = max([mean + up for mean, _, up in found], default=1.0)
    if not ratio:
        return 0.0, max(1.05, high)
    low = min([0.9, *(max(mean - down, mean / 2, LEAST) for mean, down, _ in found)])
    return low / 1.1, max(2.0, high) * 1.35


def records_of(results: Results, kind: str) -> list[Record]:
    """The records behind results.

    Raises:
        InvalidSettingError: a table, which has no curves, or no results.
    """
    records = records_in(results)
    if records is not None:
        if not records:
            raise InvalidSettingError(NONE)
        return list(records)
    raise InvalidSettingError(
        f"The plot '{kind}' needs the readings of every check, which a table does not hold: give the results folder, "
        "or a ProbeResult."
    )


def blocks(long: pd.DataFrame) -> list[Block]:
    """Results by side, protocol, measure and representation, as far as these differ."""
    varying = [name for name in BLOCK if long[name].nunique(dropna=False) > 1]
    if not varying:
        return [Block("", str(long["measure"].iloc[0]), long)]
    found = []
    for _, part in long.groupby(varying, sort=False, dropna=False):
        first = part.iloc[0]
        told = {name: str(first[name]) for name in varying if name != "measure" or "protocol" not in varying}
        if "side" in told:
            told["side"] = PLURAL.get(told["side"], told["side"])
        name = ", ".join(told.values())
        found.append(Block(name, str(first["measure"]), part))
    return sorted(found, key=_place)


def _place(block: Block) -> tuple[Any, ...]:
    first = block.long.iloc[0]
    representation = place_of("representation", first["representation"])
    return str(first["side"]) != "sender", str(first["side"]), str(first["protocol"]), block.measure, representation


def said(long: pd.DataFrame, spread: str | None = None) -> tuple[str, list[str]]:
    """What stands above and below the bias table: what was measured; what its spread is, what was cut and failed.

    Args:
        long: results.
        spread: None where it is not shown.
    """
    table = bias_table(long, spread or "sd")
    return table.title, [note for note in table.notes if spread or not note.startswith("mean ±")]
