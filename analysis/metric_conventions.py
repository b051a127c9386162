"""Conventions (definitions and options) of the metrics in a long table, in a printed table, and in curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from icy.core.conventions import Convention, read_conventions
from icy.core.text import counted
from icy.records.kinds import JobKind, job_kind, kind_of_rows

from .table_cells import TableCell

# Metrics that may be undefined in a run that did not fail, and the only reason for it.
UNDEFINED = {"topsim": "all pairs of meanings, or all pairs of messages, are equally far apart"}


def with_reason(cell: TableCell, part: pd.DataFrame, metric: str) -> TableCell:
    """Add the reason for missing values to the cell of a metric, if runs that did not fail have no value.

    Args:
        cell: cell that shows the metric.
        part: rows of the long table that the cell summarizes.
        metric: column of the metric.
    """
    if metric not in UNDEFINED or not (part[metric].isna() & ~part["failed"].astype(bool)).any():
        return cell
    return replace(cell, why=UNDEFINED[metric])


def undefined_notes(long: pd.DataFrame) -> list[str]:
    """Return a note for each metric that is undefined in some runs that did not fail, with the reason."""
    played, found = long[~long["failed"].astype(bool)], []
    for name, why in UNDEFINED.items():
        lacking = int(played[name].isna().sum()) if name in played else 0
        if 0 < lacking < len(played):
            found.append(f"{name} is undefined in {lacking} of {counted(len(long), 'run')}: {why}")
    return found


def conventions_of(long: pd.DataFrame, kind: str = "probe") -> dict[str, Convention]:
    """Return the conventions of each metric in a long table; if it has none, the defaults of its kind of job.

    Args:
        long: a long table, or curves. Tables of older versions lack the column `conventions`.
        kind: the kind of job, for a table that does not have it.
    """
    found = read_conventions(long["conventions"]) if "conventions" in long else {}
    if found:
        return found
    own = usual_conventions(kind_of_rows(long, kind)) if "job_kind" in long else {}
    return own or usual_conventions(job_kind(kind))


def usual_conventions(kind: JobKind) -> dict[str, Convention]:
    """Return the default conventions of the metrics that a kind of job measures."""
    return {name: Convention(name, values) for name, values in kind.conventions_of({}).items()}


def of_columns(long: pd.DataFrame, shown: Mapping[str, str], kind: str) -> dict[str, Convention]:
    """Return the conventions of the columns of a printed table.

    Args:
        long: the results in the table, in long form.
        shown: headings of the printed columns, by column of the long table.
        kind: the kind of job.
    """
    found = conventions_of(long, kind)
    return {heading: found[name] for name, heading in shown.items() if name in found}
