"""What the plots read results as: panels that belong together, rows with a label, cells of a mean and a spread."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import pandas as pd

from icy.errors import InvalidSettingError, unknown
from icy.long_table import LONG, ROW, WHOLE
from icy.registry import natural
from icy.results import ProbeResult
from icy.store import Record

from ..cells import Cell, cell_of
from ..tables import bias_table, in_order

Results: TypeAlias = "ProbeResult | pd.DataFrame"
NEEDED = ("model", "grammar", "seed", "value")
BLOCK = ("side", "protocol", "measure", "representation")  # what has a panel, or a row of panels, of its own
PLURAL = {"sender": "senders", "receiver": "receivers", "pair": "sender and receiver"}
REPRESENTATIONS = ("soft", "gumb", "discr")
LETTERS = {"hidden_size": "E", "vocab_size": "V", "word_length": "w"}
NONE = "There are no results to draw; `icy probe` makes some."
LEAST = 0.01  # ratio on a logarithmic axis; what was learnt at the first check has one of 0
MEASURES = {"ratio": "ratio to concat", "held_out": "held-out accuracy"}  # as the names of axes


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
        measure: "accuracy", "ratio" or "held_out".
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
        """A line per row of the bias table, in natural order of their labels."""
        return self.lines_over()

    def lines_over(self, *together: str) -> list[Line]:
        """The same, where the rows of one line may differ in some columns."""
        apart = [name for name in ROW[1:] if name not in together]
        varying = [name for name in apart if self.long[name].nunique(dropna=False) > 1]
        several = self.long["side"].nunique(dropna=False) > 1
        found = []
        for _, part in self.long.groupby(["model", *varying], sort=False, dropna=False):
            first = part.iloc[0]
            model = str(first["model"])
            shown = model if several else model.removeprefix(f"{first['side']}/")
            found.append(Line(", ".join([shown, *_said(first, varying)]), model, part))
        return sorted(found, key=lambda line: natural(line.label))


def _said(row: pd.Series[Any], names: Iterable[str]) -> list[str]:
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


# -- results as tables -------------------------------------------------------------------------------------------------


def long_of(results: Results) -> pd.DataFrame:
    """Results in long form, with every column of it, whatever version of icy wrote them.

    Raises:
        InvalidSettingError: a table that is none of results, or one without rows.
    """
    table = results.to_dataframe("long") if isinstance(results, ProbeResult) else results
    if missing := [name for name in NEEDED if name not in table]:
        raise InvalidSettingError(
            f"This is no long table of results, which has a row per model, grammar and seed: it lacks the column "
            f"{', '.join(missing)}; ProbeResult.to_dataframe('long') makes one, and icy writes results.parquet."
        )
    if not len(table):
        raise InvalidSettingError(NONE)
    return table if isinstance(results, ProbeResult) else _completed(table)


def _completed(table: pd.DataFrame) -> pd.DataFrame:
    """A table from a file, or from an older version, with the columns and the types of `icy.long_table.to_long`."""
    whole = table.reindex(columns=list(dict.fromkeys([*LONG, *table.columns])))
    for name in ("settings", "options"):
        whole[name] = whole[name].astype(object).where(whole[name].notna(), "")
    for name in ("cut", "failed"):
        whole[name] = whole[name].map({True: True, "True": True}).eq(True)
    for name in WHOLE:
        whole[name] = pd.to_numeric(whole[name], errors="coerce").astype("Int64")
    whole["side"] = whole["side"].astype(object).fillna(whole["model"].astype(str).str.partition("/")[0])
    whole["measure"] = whole["measure"].astype(object).fillna("accuracy")
    return whole


def records_of(results: Results, kind: str) -> list[Record]:
    """The records behind results.

    Raises:
        InvalidSettingError: a table, which has no curves, or no results.
    """
    if isinstance(results, ProbeResult):
        if not results.records:
            raise InvalidSettingError(NONE)
        return list(results.records)
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
    representation = str(first["representation"])
    known = REPRESENTATIONS.index(representation) if representation in REPRESENTATIONS else len(REPRESENTATIONS)
    return str(first["side"]) != "sender", str(first["side"]), str(first["protocol"]), block.measure, known


def said(long: pd.DataFrame, spread: str | None = None) -> tuple[str, list[str]]:
    """What stands above and below the bias table: what was measured; what its spread is, what was cut and failed.

    Args:
        long: results.
        spread: None where it is not shown.
    """
    table = bias_table(long, spread or "sd")
    return table.title, [note for note in table.notes if spread or not note.startswith("mean ±")]


def parameter_counts(long: pd.DataFrame) -> pd.Series[Any]:
    """The numbers of parameters that the tables show: under the preset `published` the published ones."""
    return long["parameters_published"].where(long["preset"].eq("published"), long["parameters"])


# -- a part of results -------------------------------------------------------------------------------------------------


def select(
    results: Results,
    models: Sequence[str] = (),
    grammars: Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
) -> Any:
    """Some of the results, in the form they were given in.

    Args:
        results: a ProbeResult or a long table.
        models: names or wildcards of models, with or without their side; none are all.
        grammars: the same of grammars.
        where: columns of the long table and the value that each must have.

    Raises:
        UnknownNameError: a pattern or a value that fits nothing, or a column that there is not.
        InvalidSettingError: nothing fits all of them.

    Example:
        >>> import pandas as pd
        >>> long = pd.DataFrame({"model": ["sender/FC1L", "sender/FC2L"], "grammar": "rot", "seed": 1, "value": 0.5})
        >>> list(select(long, models=["FC2*"])["model"])
        ['sender/FC2L']
    """
    long = long_of(results)
    keep = pd.Series(True, index=long.index)
    names = {m: (m, m.rpartition("/")[2]) for m in dict.fromkeys(long["model"].astype(str))}
    keep &= long["model"].isin(_matching("model in these results", models, names))
    keep &= long["grammar"].isin(
        _matching("grammar in these results", grammars, {g: (g,) for g in in_order(long["grammar"])})
    )
    for column, value in (where or {}).items():
        keep &= _equal(long, column, value)
    if not keep.any():
        raise InvalidSettingError("Each of these choices fits some results, and all together none: leave one out.")
    if isinstance(results, ProbeResult):
        return replace(results, records=[r for r, kept in zip(results.records, keep, strict=True) if kept])
    return results[keep]


def _matching(what: str, patterns: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    """The names that one of the patterns fits; all if there are none."""
    found: list[str] = [] if patterns else list(names)
    for pattern in patterns:
        fit = [n for n, forms in names.items() if any(fnmatch.fnmatchcase(f.lower(), pattern.lower()) for f in forms)]
        if not fit and pattern != "all":
            shortest = [forms[0] if "/" in pattern else forms[-1] for forms in names.values()]
            raise unknown(what, pattern, list(dict.fromkeys(shortest)))
        found += fit or list(names)
    return found


def _equal(long: pd.DataFrame, column: str, value: Any) -> pd.Series[bool]:
    if column not in long:
        raise unknown("column of results", column, [name for name in (*ROW, "side", "seed", "measure") if name in long])
    number = pd.to_numeric(pd.Series([value]), errors="coerce").iloc[0]
    values = long[column]
    equal = values.astype(str).str.lower().eq(str(value).lower())
    if pd.notna(number):
        equal |= pd.to_numeric(values, errors="coerce").eq(number).fillna(False).astype(bool)
    if not equal.any():
        raise unknown(f"{column.replace('_', ' ')} in these results", str(value), sorted(set(values.astype(str))))
    return equal
