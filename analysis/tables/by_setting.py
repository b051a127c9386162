"""Helpers of tables with a row per setting: options as columns, a line per setting, and common notes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pandas as pd

from icy.analysis.table_cells import SPREADS, TableCell, checked_spread
from icy.core.errors import InvalidSettingError
from icy.core.text import counted
from icy.records.load import Results, long_of
from icy.records.long_table import options_of

from .printed_table import Line

FURTHER = "further"  # column of options that no other column shows


def results_in(results: Results, spread: str, compare: object = None, refusal: str = "") -> pd.DataFrame:
    """Check the options of a table, and return its results in long form.

    Args:
        results: results of one kind of job; may be empty.
        spread: a name of `icy.analysis.table_cells.SPREADS`.
        compare: reference results; raises an error if there is a `refusal`.
        refusal: the reason why a comparison is not possible; "" if it is possible.

    Raises:
        InvalidSettingError: an unknown spread, or a comparison that is not possible.
    """
    checked_spread(spread)
    if compare is not None and refusal:
        raise InvalidSettingError(f"{refusal}; leave out compare (--compare).")
    return long_of(results, empty=True)


def with_options(long: pd.DataFrame, columns: Sequence[str] = (), shown: Iterable[str] = ()) -> pd.DataFrame:
    """Add options as columns to a long table; the column FURTHER holds the remaining options as text.

    Args:
        long: a long table.
        columns: options that become columns; "" if a run does not have the option.
        shown: options that other columns show.
    """
    options = [options_of(text) for text in long["options"]]
    values = {name: [one.get(name, "") for one in options] for name in columns}
    rest = [{name: text for name, text in one.items() if name not in {*columns, *shown}} for one in options]
    return long.assign(**values, **{FURTHER: [", ".join(_settings(one)) for one in rest]})


def _settings(options: Mapping[str, str]) -> Iterator[str]:
    """Yield options as text, except None; a dict yields its items one by one."""
    for name, text in options.items():
        inner = _dict_of(text)
        if inner:
            yield from (f"{name}.{n}={v}" for n, v in inner.items() if v is not None)
        elif text != "None":
            yield name if inner is not None else f"{name}={text}"


def _dict_of(text: str) -> dict[object, object] | None:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return found if isinstance(found, dict) else None


def split_shared(texts: Sequence[str]) -> tuple[str, list[str]]:
    """Return the options shared by all rows of a long table, and the other options of each row.

    Example:
        >>> split_shared(["a=1, b=2", "a=1, b=3"])
        ('a=1', ['b=2', 'b=3'])
    """
    options = [options_of(text) for text in texts]
    shared = set.intersection(*(set(one.items()) for one in options)) if len(set(texts)) > 1 else set()
    rest = [", ".join(f"{n}={value}" for n, value in one.items() if (n, value) not in shared) for one in options]
    return ", ".join(f"{name}={value}" for name, value in sorted(shared)), rest if shared else list(texts)


def setting_labels(long: pd.DataFrame) -> dict[str, str]:
    """Return the headings of the columns of preset and further options, for the columns in which rows differ."""
    labels = {"preset": "preset"} if long["preset"].nunique() > 1 else {}
    return labels | ({FURTHER: "settings"} if (long[FURTHER] != "").any() else {})


def lines_of(
    long: pd.DataFrame,
    labels: Iterable[str],
    columns: Mapping[str, str],
    cell: Callable[[pd.DataFrame, str], TableCell],
) -> list[Line]:
    """Return the lines of a table: for each combination of labels, their values, the number of seeds, and the cells.

    Args:
        long: a row per run, with the column `seed`.
        labels: columns that distinguish lines.
        columns: columns of scores, and their headings.
        cell: function that returns the cell for the runs of a line and the name of a column.
    """
    return [
        (
            [*map(whole_text, key), str(part["seed"].nunique())],
            {heading: cell(part, name) for name, heading in columns.items()},
        )
        for key, part in long.groupby(list(labels), sort=False, dropna=False)
    ]


def row_numbers(long: pd.DataFrame, labels: Iterable[str]) -> list[int]:
    """Return the number of the first row of the long table (column `row`, if it has one) in each line of a table."""
    return long.groupby(list(labels), sort=False, dropna=False)["row"].first().tolist() if "row" in long else []


def whole_text(value: object) -> str:
    """Return a value of a long table as text; whole numbers have no decimal point."""
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- notes -------------------------------------------------------------------------------------------------------------


def spread_note(long: pd.DataFrame, spread: str) -> list[str]:
    """Return a note on the spread; empty for a single seed."""
    return [f"mean ± {SPREADS[spread][0]}"] if long["seed"].nunique() > 1 else []


def failures(long: pd.DataFrame) -> list[str]:
    """Return a note with the number of failed runs and their errors; empty if none failed."""
    failed = long[long["failed"].astype(bool)]
    reasons = "; ".join(sorted(set(failed["error"].dropna().astype(str))))
    note = f"{len(failed)} of {counted(len(long), 'run')} failed{': ' if reasons else ''}{reasons}"
    return [note] if len(failed) else []
