"""`icy.report`: write results as one HTML file."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from icy.analysis.literature.catalogue import find_table
from icy.analysis.report.methods import methods
from icy.analysis.report.page import Section, report_page
from icy.analysis.tables.bias import bias_table, difference_table
from icy.analysis.tables.printed_table import BiasTable, flat
from icy.analysis.tables.references import compared_with, numbered
from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, StoreError
from icy.core.files import write_atomically
from icy.core.text import listed
from icy.records.kinds import STEPS_AND_ACCURACY, kind_of_rows
from icy.records.load import Results, long_of, records_in
from icy.records.record import Record

from .results import counting, read_results, table_of

TITLE = "Results"
log = logging.getLogger(__name__)


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


# -- tables ------------------------------------------------------------------------------------------------------------


def result_tables(
    results: Results, spread: str = "sd", *, compare: Any = None, diff: str | None = None, **look: Any
) -> dict[str, BiasTable]:
    """Return the tables of results by protocol, because protocols measure different things.

    Args:
        results: a ProbeResult, a long table, or the path of results.
        spread: spread over seeds: "sd", "sem" or "ci95".
        compare: reference values next to the cells: "published", one published table, or other results.
        diff: for tables of differences seed by seed, with tests: the path of other results, a model of these results,
            or "each" for every pair of models.
        **look: by, sort, decimals, mark and log, as for `icy.analysis.bias_table`.

    Returns:
        A table per protocol of probes, and per kind of other jobs.

    Raises:
        InvalidSettingError: both `compare` and `diff` are given, or an option does not fit a kind of job.
        IncompatibleError: no protocol has results to subtract.
        UnknownNameError: an unknown table, model or column.

    Example:
        >>> import icy, pandas as pd
        >>> rows = [("sender/A", grammar, seed, 0.5) for grammar in ("rot", "perm") for seed in (1, 2)]
        >>> long = pd.DataFrame(rows, columns=["model", "grammar", "seed", "value"])
        >>> list(icy.result_tables(long.assign(measure="accuracy", protocol="budget")))
        ['budget']
    """
    if diff and compare:
        raise InvalidSettingError(
            "--compare shows two numbers side by side, and --diff subtracts them; give only one of these options."
        )
    if diff is not None:
        return _differences(long_of(results), diff, spread, look)
    other, name = compared_with(compare)
    found: dict[str, BiasTable] = {}
    groups = by_protocol(long_of(results))
    for protocol, part in groups:
        kind = kind_of_rows(part)
        about = _about(other, kind.name) if isinstance(other, str) else other
        if kind.table is None:
            made = bias_table(part, spread, compare=about, compared=name, **look)
            found[protocol] = counting(made, kind.counted)
            continue
        if (look.get("by", "representation"), look.get("sort", "given")) != ("representation", "given"):
            raise InvalidSettingError(f"Rows of {kind.noun} cannot be grouped or sorted; leave out --by and --sort.")
        if not isinstance(about, str | None) and len(groups) > 1:  # other games can be compared
            log.warning("Games of %s can only be compared with published results.", kind.noun)
            about = None
        found[protocol] = table_of(kind, part, spread, compare=about)
    return found


def _differences(long: pd.DataFrame, diff: str, spread: str, look: dict[str, Any]) -> dict[str, BiasTable]:
    """Return a table of differences per protocol, except for protocols without results to compare."""
    found: dict[str, BiasTable] = {}
    alone: list[tuple[str, IcyError]] = []
    for protocol, part in by_protocol(long):
        if (kind := kind_of_rows(part)).table is not None:
            raise InvalidSettingError(
                f"Games of {kind.noun} cannot be subtracted; select models that trained alone, with --model."
            )
        try:
            found[protocol] = difference_table(part, diff, Path(diff).stem, spread, **look)
        except (IncompatibleError, StoreError) as error:  # the protocol may have no results of this model
            alone.append((protocol, error))
    for protocol, reason in alone:
        if not found:
            raise reason
        log.warning("The protocol %s has no results to compare with %s.", protocol, diff)
    return found


def _about(compare: str, kind: str) -> str | None:
    """Return the published tables to compare with; None if the table is about another kind of run."""
    if compare == "published":
        return compare
    found = find_table(compare)
    if found.reproduce == kind:
        return compare
    log.warning("%s has no values to compare with these results: %s.", found.id, found.title)
    return None


def render_tables(tables: Mapping[str, BiasTable], format: str) -> str:
    """Render the tables of `result_tables` as one text; json and csv are one list or table with a column `protocol`.

    Args:
        tables: tables by protocol.
        format: "text", "markdown", "latex", "csv", "json" or "html".
    """
    if format == "json":
        records = [{"protocol": name, **record} for name, table in tables.items() for record in table.to_records()]
        return json.dumps(records, indent=1)
    if format != "csv" or len(tables) == 1:
        return "\n\n".join(table.render(format) for table in tables.values())
    parts = [flat(table).assign(protocol=name) for name, table in tables.items()]
    return str(pd.concat(parts).to_csv(index=False)).rstrip("\n")
