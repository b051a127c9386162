"""Kinds of jobs: their arguments, their training, and the display of their results.

Every kind of run has an entry here, such as a probe or an end-to-end run. Planning, store, resume, runners, display,
trackers, sweeps and tables work on jobs (`icy.training.job.Job`). They look up the properties of a kind here, and do
not depend on particular kinds. A registered kind also has a command of its name.

Example:
    >>> job_kind("e2e").curve
    ('steps', 'accuracy', 'loss', 'topsim', 'sender_accuracy', 'receiver_accuracy')
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from icy.config.kinds import Settings, request_of
from icy.config.requests import SEEDS, RunRequest
from icy.config.settings import Numbers
from icy.core.entry import JOB, Entry
from icy.core.fields import setting
from icy.core.importing import load_object
from icy.core.registry import registry
from icy.core.types import Fields

from .record import Record, config_text

if TYPE_CHECKING:
    import pandas as pd

RowKey = str  # a configuration without grammar and seed, as text
Lazy = str | Callable[..., object]  # a function, or its address "module:object"
STEPS_AND_ACCURACY = ("steps", "accuracy")
SEEDS_TEXT = """What to train.

Attributes:
    seeds: how many, counted from 123, or which: [1, 2], "1,2", "123-127".
"""


@dataclass(frozen=True)
class JobKind:
    """A kind of job. Classes and functions may be addresses "module:object", which are imported on first use.

    Attributes:
        name: name in records, in sweeps, and of its command.
        description: one line; of icy's own kinds, the registry has it.
        request: the class of its requests, a subclass of `icy.config.requests.RunRequest`; by default that of
            `settings`, with a number of seeds.
        jobs: a function from a request to jobs, one per row of the table, each with all of its replicates; by default
            the jobs that `rows` makes of each combination of the values along the axes of the request.
        settings: the class of the settings of a row, a subclass of `icy.config.kinds.Settings`.
        rows: a function from a request with one value along each axis to jobs; by default one job, with `conditions`.
        conditions: conditions of the replicates of a job, if there are no `rows`; by default the name of the kind.
        source: paper and section.
        train: a function from a job and a `Report` to outcomes, for jobs without their own method `train`.
        behavior: a function from a job to digests of what users' code computes for fixed inputs, by name; by default
            the method of the settings.
        rehearse: a function from a job and a number of updates to the seconds per update; by default `Job.rehearse`
            times the training.
        spec: the former name of `request`, for plug-ins.
        result: the class of its results, a subclass of `ProbeResult`; by default `ProbeResult`.
        table: a function from a long table and the name of a spread to a `BiasTable`; by default `bias_table`.
        measures: numbers in its records in addition to `value`; columns of the long table.
        curve: column names of its learning curves; the first column is the number of updates.
        noun: plural noun for the trained models, for sentences.
        baseline: whether its tables show the steps of the baseline, concat, if the results have them.
        version: increased whenever a change could change results.
        row: fields of the configuration that distinguish rows; by default all except grammar and seed.
        model: a function from a record and its saved weights (tensors by name) to the trained module; without it,
            models of this kind cannot be saved.
        plot: name of the plot of its learning curves, if not "curves".
        command: full name of its command, if the command is in a group, as in "s2b train".
        evaluates: the command that evaluates saved models, without the name of their folder, as in "games eval".
        counted: plural noun for the unit of the first column of its learning curves, which labels an axis.
        conventions: a function from the configuration of a record to the conventions of the metrics among its measures:
            a dictionary of arguments by metric. For an empty configuration, the function returns the defaults.
    """

    name: str
    description: str = ""
    request: str | type | None = None
    jobs: Lazy | None = None
    source: str = ""
    settings: type[Settings] | None = None
    rows: Lazy | None = None
    conditions: tuple[str, ...] = ()
    result: str | type | None = None
    table: Lazy | None = None
    measures: tuple[str, ...] = ()
    curve: tuple[str, ...] = STEPS_AND_ACCURACY
    noun: str = "results"
    baseline: bool = True
    version: int = 1
    row: tuple[str, ...] = ()
    model: Lazy | None = None
    plot: str = ""
    command: str = ""
    evaluates: str = ""
    counted: str = "updates"
    conventions: Lazy | None = None
    train: Lazy | None = None
    behavior: Lazy | None = None
    rehearse: Lazy | None = None
    spec: InitVar[str | type | None] = None

    def __post_init__(self, spec: str | type | None) -> None:
        if spec is not None:
            object.__setattr__(self, "request", spec)

    def function(self, name: str) -> Callable[..., Any]:
        """Return a function of the kind: "jobs", "rows", "train", "behavior" or "rehearse"."""
        return cast("Callable[..., Any]", load_object(getattr(self, name)))

    def conventions_of(self, config: Fields) -> dict[str, dict[str, Any]]:
        """Return the conventions of a record's metrics, from the configuration of the record."""
        return {} if self.conventions is None else dict(load_object(self.conventions)(config))

    def row_key(self, config: Fields) -> RowKey:
        """Return the key of the row of a configuration."""
        names = self.row or [name for name in config if name not in ("grammar", "seed")]
        return config_text({name: config[name] for name in names if name in config})

    def request_class(self) -> Any:
        """Return the class of its requests."""
        return load_object(self.request) if self.settings is None or self.request is not None else _usual_request(self)

    @property
    def own_measures(self) -> list[str]:
        """Measures that are not fields of every record."""
        return [name for name in self.measures if name not in Record.__annotations__]


@cache
def _usual_request(kind: JobKind) -> type[RunRequest]:
    """Return the class of requests of a kind that declares only settings."""
    assert kind.settings is not None
    names = {"function": kind.name, "job_kind": kind.name, "__annotations__": {"seeds": Numbers}}
    texts = {"__doc__": SEEDS_TEXT, "__module__": kind.settings.__module__}
    seeds = {"seeds": setting(3, metadata=SEEDS)}
    made = type(f"{kind.settings.__name__}Request", (RunRequest,), {**names, **texts, **seeds})
    return request_of(kind.settings)(made)


def register_job_kind(kind: JobKind) -> None:
    """Register a kind of job.

    Raises:
        DuplicateNameError: the name is taken by another module.
    """
    if kind.settings is not None and kind.settings.kind != kind.name:
        raise TypeError(f"{kind.settings.__name__} needs kind = '{kind.name}', the name of its kind of job.")
    if kind.settings is not None:
        kind.request_class()  # raises for names that settings cannot have
    origin = sys._getframe(1).f_globals.get("__name__", "")
    card = kind.description, kind.source, kind.version
    registry.add(Entry(JOB, kind.name, kind, *card, origin=origin))


def job_kind(name: str) -> JobKind:
    """Return a kind of job by its name.

    Raises:
        UnknownNameError: no kind has this name.
    """
    kind: JobKind = registry.get(name, JOB).load()
    return kind


def job_kinds() -> list[JobKind]:
    """Return all kinds of jobs."""
    return [entry.load() for entry in registry.entries(JOB)]


def kind_name(side: str, kind: str | None = None) -> str:
    """Return the name of the kind of a record or row. Records of version 0.1 only have a side."""
    return kind or ("e2e" if side == "pair" else "probe")


def kind_of(record: Record) -> JobKind:
    """Return the kind of job of a record. If the kind's plug-in is not loaded, use the description in the record."""
    name = kind_name(record.get("side", ""), record.get("kind"))
    measures, curve = tuple(record.get("measures", ())), tuple(record.get("points", STEPS_AND_ACCURACY))
    return _registered(name) or JobKind(name, "", None, None, measures=measures, curve=curve)


def points_of(record: Record) -> tuple[str, ...]:
    """Return the column names of a record's learning curve, from the time when the record was saved."""
    return tuple(record.get("points", ())) or kind_of(record).curve


def kind_of_rows(long: pd.DataFrame, otherwise: str = "probe") -> JobKind:
    """Return the kind of job of the rows of a long table.

    Args:
        long: a long table.
        otherwise: name of the kind to return for rows of several kinds, or for an empty table.
    """
    names = list(dict.fromkeys(long["job_kind"]))
    name = str(names[0]) if len(names) == 1 else otherwise
    return _registered(name) or JobKind(name, "", None, None)


def _registered(name: str) -> JobKind | None:
    entry = registry.find(JOB, name)
    return None if entry is None else cast(JobKind, entry.load())


def row_of(record: Record) -> RowKey:
    """Return the key of the row of a plan to which a record belongs, like `Job.row`."""
    return kind_of(record).row_key(record["config"])
