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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from icy.core.entry import JOB, Entry
from icy.core.lazy import load_object
from icy.core.plugins import source_digest
from icy.core.registry import registry
from icy.core.types import Fields

from .record import Record, config_text

if TYPE_CHECKING:
    import pandas as pd

RowKey = str  # a configuration without grammar and seed
Lazy = str | Callable[..., object]  # a function, or its address "module:object"
STEPS_AND_ACCURACY = ("steps", "accuracy")


@dataclass(frozen=True)
class JobKind:
    """One kind of job. Classes and functions may be given as "module:object"; they are then imported on first use.

    Attributes:
        name: in records and in sweeps, and of its command.
        description: one line.
        spec: the dataclass of its arguments, a subclass of `icy.config.specs.RunSpec`.
        jobs: a function from such a spec to jobs, one per row of the table, each with all of its replicates.
        source: paper and section.
        train: a function from a job and a `Report` to outcomes, for jobs without a method `train` of their own.
        rehearse: a function from a job and a number of updates to the seconds of one; unless given, `Job.rehearse`
            times the training.
        work: a function from a task and its settings to the `Work` of an update.
        result: the class of its results, a subclass of `ProbeResult`; unless given, that itself.
        table: a function from a long table and the name of a spread to a `BiasTable`; unless given, `bias_table`.
        measures: numbers that its records hold beside `value`; columns of the long table.
        curve: names of the numbers of one point of its learning curves; the first is the number of updates.
        noun: what one replicate trains, in the plural, for sentences.
        version: raised whenever a change could move results.
        row: names of the configuration that tell one row from another; unless given, all but grammar and seed.
        model: a function from a record and its kept weights (tensors by name) to the trained module; without, no models
            of such jobs can be kept.
        plot: the plot of its learning curves, where that is another than "curves".
        command: its command, where that stands in a group, as in "s2b train".
        evaluates: the command that evaluates kept models, before the name of their folder, as in "games eval".
        counted: what the first number of a point of its learning curves counts, in the plural; the label of an axis.
        conventions: a function from the configuration of a record to the conventions of the metrics among its measures:
            a dictionary of arguments by metric. An empty configuration asks for the default.
    """

    name: str
    description: str
    spec: str | type | None
    jobs: Lazy | None
    source: str = ""
    result: str | type | None = None
    table: Lazy | None = None
    measures: tuple[str, ...] = ()
    curve: tuple[str, ...] = STEPS_AND_ACCURACY
    noun: str = "results"
    version: int = 1
    row: tuple[str, ...] = ()
    model: Lazy | None = None
    plot: str = ""
    command: str = ""
    evaluates: str = ""
    counted: str = "updates"
    conventions: Lazy | None = None
    train: Lazy | None = None
    rehearse: Lazy | None = None
    work: Lazy | None = None

    def function(self, name: str) -> Callable[..., Any]:
        """Return one of the functions that the kind was registered with: "jobs", "train", "rehearse" or "work"."""
        return cast("Callable[..., Any]", load_object(getattr(self, name)))

    def conventions_of(self, config: Fields) -> dict[str, dict[str, Any]]:
        """Return the conventions of the metrics among the measures of a record, by its configuration."""
        return {} if self.conventions is None else dict(load_object(self.conventions)(config))

    def make_jobs(self, spec: Any) -> Sequence[Any]:
        """Return the jobs of a spec."""
        return cast("Sequence[Any]", self.function("jobs")(spec))

    def row_key(self, config: Fields) -> RowKey:
        """Return what tells the row of a configuration from all others."""
        names = self.row or [name for name in config if name not in ("grammar", "seed")]
        return config_text({name: config[name] for name in names if name in config})

    def load_spec(self) -> Any:
        """Return the class of its arguments."""
        return load_object(self.spec)

    @property
    def own_measures(self) -> list[str]:
        """Measures that are no field of every record."""
        return [name for name in self.measures if name not in Record.__annotations__]


def register_job_kind(kind: JobKind) -> None:
    """Register a kind of job.

    Raises:
        DuplicateNameError: the name is taken by another module.
    """
    origin = sys._getframe(1).f_globals.get("__name__", "")
    card = kind.description, kind.source, kind.version
    digest = source_digest(kind.jobs, origin)
    registry.add(Entry(JOB, kind.name, kind, *card, origin=origin, digest=digest))


def job_kind(name: str) -> JobKind:
    """Return a kind of job by its name.

    Raises:
        UnknownNameError: no kind has this name.
    """
    found: JobKind = registry.get(name, JOB).load()
    return found


def job_kinds() -> list[JobKind]:
    """Return all kinds of jobs."""
    return [entry.load() for entry in registry.entries(JOB)]


def kind_name(side: str, kind: str | None = None) -> str:
    """Return the name of the kind that a record or row is of; records of version 0.1 only say their side."""
    return kind or ("e2e" if side == "pair" else "probe")


def kind_of(record: Record) -> JobKind:
    """Return the kind of job that a record is of; of one whose plug-in is not loaded, what the record says of it."""
    name = kind_name(record.get("side", ""), record.get("kind"))
    measures, curve = tuple(record.get("measures", ())), tuple(record.get("points", STEPS_AND_ACCURACY))
    return _registered(name) or JobKind(name, "", None, None, measures=measures, curve=curve)


def points_of(record: Record) -> tuple[str, ...]:
    """Return the names of the numbers of a point of a record's learning curve, as they were when it was filed."""
    return tuple(record.get("points", ())) or kind_of(record).curve


def kind_of_rows(long: pd.DataFrame, otherwise: str = "probe") -> JobKind:
    """Return the kind of job that the rows of a long table are of.

    Args:
        long: a long table.
        otherwise: the kind for rows of several kinds, or for none.
    """
    names = list(dict.fromkeys(long["kind"]))
    name = str(names[0]) if len(names) == 1 else otherwise
    return _registered(name) or JobKind(name, "", None, None)


def _registered(name: str) -> JobKind | None:
    entry = registry.find(JOB, name)
    return None if entry is None else cast(JobKind, entry.load())


def row_of(record: Record) -> RowKey:
    """Return the row of a plan that a record belongs to, as `Job.row` names it."""
    return kind_of(record).row_key(record["config"])
