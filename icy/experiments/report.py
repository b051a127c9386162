"""`icy.report`: write results as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from icy.analysis.report.methods import methods
from icy.analysis.report.page import Section, report_page
from icy.analysis.tables.references import numbered
from icy.core.errors import InvalidSettingError
from icy.core.files import write_atomically
from icy.core.text import listed
from icy.records.kinds import STEPS_AND_ACCURACY, kind_of_rows
from icy.records.load import Results, long_of, records_in
from icy.records.record import Record

from .results import read_results, table_of

TITLE = "Results"


def report(results: Results, path: str | Path, title: str = "", spread: str = "sd", compare: Any = None) -> Path:
    """Write results as one HTML file: tables that can be sorted and filtered, plots, curves, settings and versions.

    The file is self-contained and loads nothing from the network.

    Args:
        results: a ProbeResult, a long table, or the path of results. Reports of long tables have no curves.
        path: path of the file, ending in .html.
        title: heading of the report; by default the names of up to three models, else "Results".
        spread: spread over seeds: "sd", "sem" or "ci95".
        compare: reference values to show next to the results of probes, as for `icy.analysis.bias_table`.

    Returns:
        The path.

    Raises:
        IncompatibleError: the plotting library is not installed.
        InvalidSettingError: another suffix, or no results.
        StoreError: a path has no results, or the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidSettingError(f"A report is written as .html, not as '{path.name}'.")
    if isinstance(results, str | Path):
        results = read_results([results])
    sections = report_sections(results, spread, compare)
    models = list(dict.fromkeys(str(model) for section in sections for model in section.long["model"]))
    title = title or (listed(models) if 0 < len(models) <= 3 else TITLE)
    write_atomically(path, report_page(sections, title, methods(results)).encode())
    return path


def report_sections(results: Results, spread: str = "sd", compare: Any = None) -> list[Section]:
    """Return a section per protocol of probes, and per kind of other jobs."""
    long = long_of(results)
    records = {record["key"]: record for record in records_in(results) or ()}
    sections = []
    for name, part in by_protocol(long):
        part = numbered(part)
        kind = kind_of_rows(part)
        options = {"compare": compare} if kind.table is None and compare is not None else {}
        own = [records[key] for key in part["key"] if key in records]
        points = _measured(kind.curve, own)
        sections.append(Section(name, kind.noun, table_of(kind, part, spread, **options), part, own, points))
    return sections


def _measured(names: Sequence[str], records: Sequence[Record]) -> tuple[str, ...]:
    """Return the names of the columns of learning curves, without trailing columns that no record has."""
    points = [point for record in records for point in record.get("curve", ())]
    most = max((n + 1 for point in points for n, value in enumerate(point) if value is not None), default=0)
    return tuple(names[: max(most, len(STEPS_AND_ACCURACY))])


def by_protocol(long: pd.DataFrame) -> Sequence[tuple[str, pd.DataFrame]]:
    """Split results by protocol; results of kinds of jobs without protocols are split by kind."""
    names = long["protocol"].where(long["protocol"].notna(), long["job_kind"])
    parts = long.groupby(names, sort=False, dropna=False)
    return [(str(name), part.reset_index(drop=True)) for name, part in parts]
