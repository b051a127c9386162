"""Tables with a row per setting or per language: options as columns, lines, common notes, and metrics."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from icy.analysis.order import in_order, range_text, text_of
from icy.analysis.table_cells import NOTED, SPREADS, TableCell, cell_of_values, checked_spread, conventions_of
from icy.core.conventions import lower_is_better, read_conventions
from icy.core.errors import InvalidSettingError
from icy.core.text import counted, listed
from icy.records.load import Results, long_of
from icy.records.long_table import option_cell, option_columns, option_rows

from .printed_table import BiasTable, Line

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
    options = option_columns(long)
    rest = option_rows(options.drop(columns=[*columns, *shown], errors="ignore"))
    further = [", ".join(text for name in sorted(map(str, row)) for text in _items(name, row[name])) for row in rest]
    return long.assign(**options.reindex(columns=[*columns]).astype(object).fillna(""), **{FURTHER: further})


def _items(name: str, text: str | None) -> list[str]:
    """Return an option as text, without values that are None; the items of a dict one by one."""
    try:
        inner = ast.literal_eval(text) if text and text.startswith("{") else None
    except (ValueError, SyntaxError):
        inner = None
    if not isinstance(inner, dict):
        return [f"{name}={text}"] * (text not in (None, "None"))
    return [f"{name}.{n}={v}" for n, v in inner.items() if v is not None] if inner else [name]


def split_shared(texts: Sequence[str]) -> tuple[str, list[str]]:
    """Return the options shared by all rows of a long table, and the other options of each row.

    Example:
        >>> split_shared(["a=1, b=2", "a=1, b=3"])
        ('a=1', ['b=2', 'b=3'])
    """
    options = option_columns(pd.DataFrame({"options": texts}))
    same = options.nunique(dropna=False).eq(1) & (len(set(texts)) > 1)
    shared, rest = (option_rows(options.loc[:, chosen]) for chosen in (same, ~same))
    return option_cell(shared[0]), [*map(option_cell, rest)]


def setting_labels(long: pd.DataFrame) -> dict[str, str]:
    """Return the headings of the columns of preset and further options, for the columns in which rows differ."""
    labels = {"preset": "preset"} if long["preset"].nunique() > 1 else {}
    return labels | ({FURTHER: "settings"} if (long[FURTHER] != "").any() else {})


def frame_table(
    title: str,
    frame: pd.DataFrame,
    labels: Mapping[str, str],
    cell: Callable[[pd.DataFrame, str], TableCell],
    columns: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    decimals: int = 2,
    spread: str = "sd",
    *,
    counted: str = "seeds",
    kind: str = "",
    grouped: Sequence[str] = (),
) -> BiasTable:
    """Make a table of a frame with a row per run: a line per combination of labels, over seeds.

    Args:
        title: title of the table.
        frame: a row per run, with the column `seed`; `row`, if it has this column, becomes the number of the line.
        labels: columns that distinguish lines, and their headings.
        cell: function that returns the cell for the runs of a line and the name of a column.
        columns: columns of scores, and their headings; by default there is a column per grammar, with its `value`.
        notes: sentences below the table; failed runs are added.
        decimals: number of decimals.
        spread: a name of `icy.analysis.table_cells.SPREADS`.
        counted: heading of the number of seeds.
        kind: kind of job whose conventions of metrics are shown; "" for none.
        grouped: labels that become headings of groups of rows.
    """
    lines: list[Line] = []
    numbers = []
    for key, part in frame.groupby(list(labels), sort=False, dropna=False):
        if columns is None:
            cells = {str(g): cell(some, "value") for g, some in part.groupby("grammar", sort=False)}
        else:
            cells = {heading: cell(part, name) for name, heading in columns.items()}
        lines.append(([*map(text_of, key), str(part["seed"].nunique())], cells))
        numbers += part["row"].head(1).tolist() if "row" in part else []
    used = conventions_of(frame, kind) if columns and kind else {}
    return BiasTable(
        title,
        [*labels.values(), counted],
        in_order(frame["grammar"]) if columns is None else list(columns.values()),
        lines,
        [*notes, *(failures(frame) if "failed" in frame else [])],
        decimals,
        spread=spread,
        conventions={heading: used[name] for name, heading in (columns or {}).items() if name in used},
        row_numbers=numbers,
        grouped=grouped,
    )


# -- notes -------------------------------------------------------------------------------------------------------------


def spread_note(long: pd.DataFrame, spread: str) -> list[str]:
    """Return a note on the spread; empty for a single seed."""
    return [f"mean ± {SPREADS[spread][0]}"] if long["seed"].nunique() > 1 else []


def updates_note(long: pd.DataFrame) -> list[str]:
    """Return a note on the updates of runs that did not fail; empty if there are none."""
    steps = long.loc[~long["failed"].astype(bool), "steps"].dropna()
    low, high = (int(steps.min()), int(steps.max())) if len(steps) else (0, 0)
    note = f"after {counted(low, 'update')}" if low == high else f"after {low} to {high} updates"
    return [note] if len(steps) else []


def failures(long: pd.DataFrame) -> list[str]:
    """Return a note with the number of failed runs and their errors; empty if none failed."""
    failed = long[long["failed"].astype(bool)]
    reasons = "; ".join(sorted(set(failed["error"].dropna().astype(str))))
    note = f"{len(failed)} of {counted(len(long), 'run')} failed{': ' if reasons else ''}{reasons}"
    return [note] if len(failed) else []


# -- metrics of several languages as a table ---------------------------------------------------------------------------


FACTS = {"rows": "rows", "attributes": "attributes", "length": "length", "vocab_size": "V"}  # of a language: headings


def metrics_table(
    scores: pd.DataFrame, metrics: Sequence[str], spread: str = "sd", notes: Sequence[str] = ()
) -> BiasTable:
    """Make a table with a row per language and a column per metric, over seeds.

    Args:
        scores: rows of `icy.metrics.evaluate`, with the columns `name` and `seed`. For metrics with a permutation test,
            a column shows the value by chance, and a line below each row the p-value.
        metrics: columns to show.
        spread: spread over seeds, "sd", "sem" or "ci95"; a single seed is shown with the metric's own standard error.
        notes: sentences below the table.

    Raises:
        InvalidSettingError: an unknown spread.
    """
    checked_spread(spread)
    names = in_order(scores["name"])
    ordered = scores.sort_values("name", key=lambda column: column.map(names.index), kind="stable")
    facts = {name: ordered.groupby("name")[name].transform(range_text) for name in FACTS}
    several = scores["name"].duplicated().any()
    own = any(f"{metric}_error" in scores for metric in metrics)
    spreads = [f"mean ± {SPREADS[spread][0]}"] if several else ["value ± standard error of its own"] if own else []
    labels = {"name": "language", **FACTS}
    table = table_of_scores(ordered.assign(**facts), labels, metrics, spread, "seeds" if several else "", "seeds")
    return replace(table, title="metrics of languages", notes=[*spreads, *table.notes, *notes])


def table_of_scores(
    scores: pd.DataFrame, labels: Mapping[str, str], metrics: Sequence[str], spread: str, several: str, counted: str
) -> BiasTable:
    """Make a table without title, with a column per metric and, for metrics that were tested, its chance value.

    Args:
        scores: rows of `icy.metrics.evaluate`.
        labels: columns that distinguish lines, and their headings; the first has the names of languages.
        metrics: columns to show.
        spread: a name of `icy.analysis.table_cells.SPREADS`.
        several: plural noun for the parts of a row, such as "seeds"; "" if no row has several.
        counted: heading of the number of rows of `scores` in each line.
    """
    shown = {name: name for metric in metrics for name in (metric, f"{metric}_chance") if name in scores}
    conventions = read_conventions(scores.get("conventions", ()))
    notes = _reasons(scores, metrics, next(iter(labels)))
    if tested := [*shown] != list(metrics):
        which = f", the largest over {several}" if several else ""
        notes = [f"chance: mean ± standard deviation over permutations of the messages; p: their test{which}", *notes]
    notes += [f"lower is better: {listed(errors)}"] if (errors := list(filter(lower_is_better, metrics))) else []
    rows = scores.assign(seed=range(len(scores)))  # each counts, even without a seed
    table = frame_table("", rows, labels, partial(metric_cell, spread=spread), shown, notes, 3, counted=counted)
    known = {name: conventions[name] for name in metrics if name in conventions}
    return replace(table, below={"p": "p"} if tested else {}, conventions=known)


def _reasons(scores: pd.DataFrame, metrics: Sequence[str], label: str) -> list[str]:
    """Return notes on values that the size of a language table determines or bounds, with the languages."""
    everything, found = in_order(scores[label]), []
    for metric in metrics:
        column = f"{metric}_note"
        if column not in scores:
            continue
        noted = scores[scores[column].fillna("") != ""]
        for note, part in noted.groupby(column, sort=False):
            names = in_order(part[label])
            of = "" if names == everything else f" of {listed(names)}"
            found.append(f"{NOTED} {metric}{of}: {note}")
    return found


def metric_cell(part: pd.DataFrame, column: str, spread: str) -> TableCell:
    """Summarize a column of `icy.metrics.evaluate` as a cell, with reasons for its values and its permutation test."""
    why, note = (
        "; ".join(dict.fromkeys(text for text in part.get(f"{column}_{name}", ()) if isinstance(text, str) and text))
        for name in ("why", "note")
    )
    cell = replace(cell_of_values(part[column], spread), why=why, note=note)
    if f"{column}_sd" in part:  # values by chance: their spread is over permutations
        return replace(cell, spread=float(part[f"{column}_sd"].mean()))
    if f"{column}_p" in part:
        cell = replace(cell, p=float(part[f"{column}_p"].max()))
    if len(part) == 1 and f"{column}_error" in part and cell.seeds:
        return replace(cell, spread=float(part[f"{column}_error"].iloc[0]))
    return cell
