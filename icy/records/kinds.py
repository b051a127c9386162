"""Kinds of jobs: what can be run, how it is asked for, and how its results are shown.

A probe, an end-to-end run, and every further kind of run is one entry here. Planning, store, resume, runners, display,
trackers, sweeps and tables work on jobs (`icy.training.job.Job`) and look up here what differs between their kinds;
none of them names one. A registered kind also has a command of its name.

Example:
    >>> job_kind("e2e").curve
    ('steps', 'accuracy', 'loss', 'topsim', 'sender_accuracy', 'receiver_accuracy')
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from icy.core.errors import UnknownNameError
from icy.core.lazy import load_object
from icy.core.registry import Entry, registry

from .record import Record, config_text

if TYPE_CHECKING:
    import pandas as pd

RowKey = str  # a configuration without grammar and seed
BIAS_TABLE = "icy.analysis.tables.bias:bias_table"
KIND = "job"  # of a job kind's entry in the registry


@dataclass(frozen=True)
class JobKind:
    """One kind of job. Classes and functions may be given as "module:object"; they are then imported on first use.

    Attributes:
        name: in records, in sweeps, and of its command.
        description: one line.
        spec: the dataclass of its arguments, a subclass of `icy.config.specs.RunSpec`.
        jobs: a function from such a spec to jobs, one per row of the table, each with all of its replicates.
        source: paper and section.
        result: the class of its results, `ProbeResult` or a subclass.
        table: a function from a long table and the name of a spread to a `BiasTable`.
        measures: numbers that its records hold beside `value`; columns of the long table.
        curve: names of the numbers of one point of its learning curves; the first is the number of updates.
        version: raised whenever a change could move results.
        row: names of the configuration that tell one row from another; unless given, all but grammar and seed.
    """

    name: str
    description: str
    spec: Any
    jobs: Any
    source: str = ""
    result: Any = "icy.experiments.results:ProbeResult"
    table: Any = BIAS_TABLE
    measures: tuple[str, ...] = ()
    curve: tuple[str, ...] = ("steps", "accuracy")
    version: int = 1
    row: tuple[str, ...] = ()

    def make_jobs(self, spec: Any) -> Sequence[Any]:
        """Return the jobs of a spec."""
        return cast("Sequence[Any]", load_object(self.jobs)(spec))

    def row_key(self, config: Mapping[str, Any]) -> RowKey:
        """Return what tells the row of a configuration from all others."""
        names = self.row or [name for name in config if name not in ("grammar", "seed")]
        return config_text({name: config[name] for name in names})

    def load_spec(self) -> Any:
        """Return the class of its arguments."""
        return load_object(self.spec)

    def load_result(self) -> Any:
        """Return the class of its results."""
        return load_object(self.result)

    @property
    def has_own_table(self) -> bool:
        """Whether its results are not shown as a bias table."""
        return bool(self.table != BIAS_TABLE)

    def make_table(self, long: Any, spread: str, **options: Any) -> Any:
        """Return the table of some of its results."""
        return load_object(self.table)(long, spread, **options)


def register_job_kind(kind: JobKind) -> None:
    """Register a kind of job.

    Raises:
        DuplicateNameError: the name is taken by another module.
    """
    origin = sys._getframe(1).f_globals.get("__name__", "")
    registry.add(Entry(KIND, kind.name, kind, kind.description, kind.source, kind.version, origin=origin))


def job_kind(name: str) -> JobKind:
    """Return a kind of job by its name.

    Raises:
        UnknownNameError: no kind has this name.
    """
    found: JobKind = registry.get(name, KIND).load()
    return found


def job_kinds() -> list[JobKind]:
    """Return all kinds of jobs."""
    return [entry.load() for entry in registry.entries(KIND)]


def kind_name(side: str, kind: str | None = None) -> str:
    """Return the name of the kind that a record or row is of; records of version 0.1 only say their side."""
    return kind or ("e2e" if side == "pair" else "probe")


def kind_of(record: Record) -> JobKind:
    """Return the kind of job that a record is of."""
    return kind_called(kind_name(record.get("side", ""), record.get("kind")))


def kind_called(name: str) -> JobKind:
    """Return a kind by its name; of one whose plug-in is not loaded, what all kinds share."""
    try:
        return job_kind(name)
    except UnknownNameError:
        return JobKind(name, "", None, None)


def kind_of_rows(long: pd.DataFrame) -> JobKind:
    """Return the kind of job that the rows of a long table are of; of several kinds, that of probes."""
    names = list(dict.fromkeys(long["kind"]))
    return kind_called(names[0] if len(names) == 1 else kind_name(""))


def row_of(record: Record) -> RowKey:
    """Return the row of a plan that a record belongs to, as `Job.row` names it."""
    return kind_of(record).row_key(record["config"])
