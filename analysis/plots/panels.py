"""Results arranged for plots: blocks that share an axis, lines with a label, cells with mean and spread."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from icy.analysis.order import ORDERED, in_order, place_of, place_of_model, without_hashes
from icy.analysis.row_types import Series, SortKey
from icy.analysis.table_cells import LEAST_RATIO, TableCell, cell_in_row
from icy.analysis.tables.bias import bias_table
from icy.analysis.tables.bias_notes import GEOMETRIC
from icy.analysis.wording import LETTERS, heading
from icy.core.errors import InvalidSettingError
from icy.core.text import counted, natural
from icy.records.load import NONE, Results, long_of, records_in
from icy.records.long_table import ROW
from icy.records.record import Record

LARGEST = 25.0  # largest width or height of a readable figure, in inches; two and a half pages
BLOCK = ("role", "protocol", "measure", "representation")  # columns in which the results of one block agree
# Settings that all rows of a protocol share only by chance, in contrast to its target and its cap.
SETTINGS = ("meanings", "vocab_size", "word_length", "hidden_size", "preset", "settings", "options")
PLURAL = {"sender": "senders", "receiver": "receivers", "pair": "sender and receiver"}
AXIS_NAMES = {  # by measure
    "ratio": "ratio to concat",
    "held_out": "held-out accuracy",
    "end_to_end": "end-to-end accuracy",
}


@dataclass(frozen=True, eq=False)
class Line:
    """One row of a bias table: a model under one setting.

    Attributes:
        label: name of the model, and the settings that distinguish it from other lines.
        model: full name.
        long: its rows of the long table.
    """

    label: str
    model: str
    long: pd.DataFrame
    _cells: dict[tuple[str, str], TableCell | None] = field(default_factory=dict, repr=False)

    def cell(self, grammar: str, spread: str) -> TableCell | None:
        """Return the mean and spread on a grammar; None if it was not measured."""
        if (grammar, spread) not in self._cells:
            part = self.long[self.long["grammar"] == grammar]
            self._cells[grammar, spread] = cell_in_row(part, spread, log=False) if len(part) else None
        return self._cells[grammar, spread]

    @property
    def cap(self) -> float:
        """The cap of ratios; infinite for other measures, or if it is unknown."""
        first = self.long.iloc[0]
        return math.inf if first["measure"] != "ratio" or pd.isna(first["cap"]) else float(first["cap"])

    def bar(self, cell: TableCell) -> tuple[float, float]:
        """Return the lengths of the error bar of a cell, down and up."""
        if cell.log_scale and cell.log is not None:
            low, high = cell.log.interval
            known = not (math.isnan(low) or math.isnan(high))
            return (cell.center - low, max(0.0, min(high, self.cap) - cell.center)) if known else (0.0, 0.0)
        return error_lengths(cell.mean, cell.spread, bool(self.long["measure"].iloc[0] == "ratio"), self.cap)


@dataclass(frozen=True, eq=False)
class ResultBlock:
    """Results with the same side, protocol, measure and representation, which can share an axis.

    Attributes:
        name: name that distinguishes it from other blocks; "" if it is the only block.
        measure: "accuracy", "ratio", "held_out" or "end_to_end".
        long: its rows of the long table.
        apart: settings in which it may differ from other blocks. The labels of its lines show them.
    """

    name: str
    measure: str
    long: pd.DataFrame
    apart: Sequence[str] = ()

    @cached_property
    def grammars(self) -> list[str]:
        """Grammars of the results, in the order of the papers' tables."""
        return in_order(self.long["grammar"])

    @property
    def axis(self) -> str:
        """Axis label for the values."""
        return AXIS_NAMES.get(self.measure, self.measure)

    @property
    def is_ratio(self) -> bool:
        """Whether values are ratios: small values are good, and the axis is logarithmic."""
        return self.measure == "ratio"

    @cached_property
    def lines(self) -> list[Line]:
        """Lines of the block, one per row of the bias table."""
        return self.lines_over()

    def lines_over(self, *together: str) -> list[Line]:
        """Return the lines; rows that differ only in the columns `together` share a line."""
        apart = [name for name in ROW[1:] if name not in together]
        varying = [name for name in apart if name in self.apart or self.long[name].nunique(dropna=False) > 1]
        return lines_of(self.long, varying, sides=self.long["role"].nunique(dropna=False) > 1)


def measured(results: Results) -> pd.DataFrame:
    """Return results in long form for plots; the column `value` of pairs is their end-to-end accuracy.

    Raises:
        InvalidSettingError: no results, or an invalid value.
    """
    long = without_hashes(long_of(results))
    pairs = long["role"].eq("pair")
    if not pairs.any():
        return long
    value = long["end_to_end_accuracy"].where(pairs & ~long["failed"].astype(bool), long["value"])
    return long.assign(value=value, measure=long["measure"].mask(pairs, "end_to_end"))


def blocks(long: pd.DataFrame) -> list[ResultBlock]:
    """Split results by side, protocol, measure and representation."""
    varying = [name for name in BLOCK if long[name].nunique(dropna=False) > 1]
    if not varying:
        return [ResultBlock("", str(long["measure"].iloc[0]), long)]
    found, apart = [], [name for name in SETTINGS if long[name].nunique(dropna=False) > 1]
    for _, part in long.groupby(varying, sort=False, dropna=False):
        first = part.iloc[0]
        differing = {name: str(first[name]) for name in varying if name != "measure" or "protocol" not in varying}
        if "role" in differing:
            differing["role"] = PLURAL.get(differing["role"], differing["role"])
        name = ", ".join(differing.values())
        found.append(ResultBlock(name, str(first["measure"]), part, apart))
    return sorted(found, key=_place)


def lines_of(long: pd.DataFrame, varying: Sequence[str], sides: bool) -> list[Line]:
    """Split runs into the lines of a plot: one line per model and setting, with its label and its rows.

    Lines are sorted by model, then as in tables, then by label.

    Models are sorted by name, or as in `icy.analysis.order.models_in_order`.

    Args:
        long: rows of the long table, or curves.
        varying: columns that distinguish settings.
        sides: whether labels include the side of a model.
    """
    found = []
    for _, part in long.groupby(["model", *varying], sort=False, dropna=False):
        first = part.iloc[0]
        model = str(first["model"])
        label = ", ".join([model if sides else model.rpartition("/")[2], *_words(first, varying)])
        usual = [place_of(name, first[name]) for name in varying if name in ORDERED]
        found.append(((place_of_model(model), usual, natural(label)), Line(label, model, part)))
    return [line for _, line in sorted(found, key=lambda one: one[0])]


def records_of(results: Results, kind: str) -> list[Record]:
    """Return the records of results, for plots that need learning curves.

    Args:
        results: results with records, not a table.
        kind: name of the plot, for the error.

    Raises:
        InvalidSettingError: `results` is a table, or is empty.
    """
    records = records_in(results)
    if records is not None:
        if not records:
            raise InvalidSettingError(NONE)
        return list(records)
    raise InvalidSettingError(
        f"The plot '{kind}' needs every evaluation of training, and a table does not have them: use the results "
        "folder, or a ProbeResult."
    )


def title_and_notes(long: pd.DataFrame, spread: str | None = None) -> tuple[str, list[str]]:
    """Return title and notes of the bias table: the measure and its setting, the spread, cut runs and failed runs.

    Args:
        long: results in long form.
        spread: spread of the plot; None if it has no error bars.
    """
    table = bias_table(long, spread or "sd", log=False)
    notes = [note for note in table.notes if spread or not note.startswith("mean ±")]
    has_bars = bool(notes) and notes[0].startswith(("mean ±", GEOMETRIC))
    if has_bars and (long["censored"].astype(bool) & long["measure"].eq("ratio")).any():
        notes[0] += "; error bars end at the cap" if long["cap"].notna().any() else ""
    return table.title, notes


def refuse_crowd(size: Iterable[float], parts: Sequence[ResultBlock]) -> None:
    """Raise an error if a new figure would be too large to read.

    Args:
        size: width and height of the figure, in inches.
        parts: blocks that the figure would show.

    Raises:
        InvalidSettingError: the width or the height is larger than LARGEST.
    """
    width, height = size
    if max(width, height) <= LARGEST:
        return
    rows, long = sum(len(part.lines) for part in parts), pd.concat([part.long for part in parts])
    varying = [name for name in ("protocol", *ROW[1:]) if long[name].nunique(dropna=True) > 1]
    example = f", as in --where {varying[0]}={long[varying[0]].dropna().iloc[0]}" if varying else ""
    raise InvalidSettingError(
        f"These results have {counted(rows, 'row')} in {counted(len(parts), 'panel')}. Their plot would be "
        f"{width:.0f} by {height:.0f} inches, too large to read: choose some with --model, --grammar or "
        f"--where{example}; `icy plot heat` draws many rows."
    )


def limits(lines: Iterable[Line], grammars: Iterable[str], spread: str, ratio: bool) -> tuple[float, float]:
    """Return axis limits that include all lines and error bars and, for ratios, 1 (the ratio of concat)."""
    names = list(grammars)
    cells = [(line, line.cell(grammar, spread)) for line in lines for grammar in names]
    found = [(cell.center, *line.bar(cell)) for line, cell in cells if cell is not None and cell.seeds]
    high = max([mean + up for mean, _, up in found], default=1.0)
    if not ratio:
        lowest = min([mean for mean, _, _ in found], default=0.0)
        return (min(mean - down for mean, down, _ in found) - 0.05 if lowest < 0 else 0.0), max(1.05, high)
    low = min([0.9, *(max(mean - down, mean / 2, LEAST_RATIO) for mean, down, _ in found)])
    return low / 1.1, max(2.0, high) * 1.35


def error_lengths(mean: float, spread: float, ratio: bool, cap: float = math.inf) -> tuple[float, float]:
    """Return the lengths of an error bar, down and up.

    The error bar of a ratio ends above 0, for a logarithmic axis, and at the cap, the largest ratio that is measured.
    """
    length = spread if math.isfinite(spread) else 0.0
    return (min(length, 0.9 * mean), min(length, max(0.0, cap - mean))) if ratio else (length, length)


def _place(block: ResultBlock) -> SortKey:
    first = block.long.iloc[0]
    representation = place_of("representation", first["representation"])
    return str(first["role"]) != "sender", str(first["role"]), str(first["protocol"]), block.measure, representation


def _words(row: Series, names: Iterable[str]) -> list[str]:
    """Return the settings of a row as short words, such as "E=128"."""
    shown = {name: row[name] for name in names if not pd.isna(row[name]) and row[name] != ""}
    return [_word(name, value) for name, value in shown.items()]


def _word(name: str, value: Any) -> str:
    if name in LETTERS:
        return f"{LETTERS[name]}={value}"
    return value if isinstance(value, str) else f"{heading(name)} {value:g}"
