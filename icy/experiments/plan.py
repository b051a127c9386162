"""Plans: rows, their records on file, and the replicates left to train."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast, get_args

from icy.config.requests import RunRequest
from icy.config.settings import RunnerName
from icy.core.code import edited_modules, same_code
from icy.core.errors import InvalidSettingError, require_known
from icy.core.machine import SOFTWARE, resolve_device, usable_cores
from icy.core.processes import interrupted_with
from icy.core.registry import registry
from icy.core.text import listed
from icy.core.types import Choices, Fields
from icy.records.kinds import job_kind
from icy.records.pack import Pack, read_once
from icy.records.record import NO_BASELINE, Record
from icy.records.store import Store, folder_of, keys_to_train
from icy.records.versions import Part, Versions, versions_of
from icy.training.combinations import jobs_of
from icy.training.job import Job, Replicate, check_config, check_engine
from icy.training.runners.base import one_thread

from .idle import warn_of_idle

# -- the identity of code of users in a job: the versions in the keys of its records -----------------------------------

# A record is used again only for the same code and the same behavior. `icy.core.code` describes the code, and
# `icy.training.task_models` the behavior; both are stored in the record. The digest of the code and a name of the
# behavior are among the versions of the record, and so determine its key.


log = logging.getLogger(__name__)
J = TypeVar("J", bound=Job)
OwnVersions = Mapping[str, str]
BEHAVIOR = "behavior"  # name of a version
OF_REPLICATES = {*SOFTWARE, "grammar", "language", "protocol", BEHAVIOR}  # versions that are not of the code of a model
MOST_NAMED = 4  # most changed parts in a warning
_warned: set[str] = set()  # sentences, to warn only once


def with_identity(job: J, store: Store) -> J:
    """Return a job with the versions and the description of its code of users; other jobs are returned unchanged.

    Args:
        job: a job with all replicates of a row.
        store: the results folder. Its records with the same code and the same behavior give the behavior its name.
    """
    users = [entry for entry in job.entries if entry.is_users]
    if not users:
        return job
    from icy.training.task_models import behavior_name, same_behavior  # imports torch

    for module in edited_modules():  # plug-in files are imported again
        _warn(f"{module} was edited after it was imported; the imported code is used, until Python is restarted.")
    parts = {entry.qualified: {"code": {n: digest[:8] for n, digest in entry.parts.items()}} for entry in users}
    behaviors: Mapping[str, Fields] = {}
    with contextlib.suppress(Exception):  # the training will report the error
        behaviors = job.behavior()
    for entry in users:
        entry.note_changes(entry.parts)
    made_by = parts | {name: {**parts.get(name, {}), BEHAVIOR: one} for name, one in behaviors.items()}
    own: dict[Replicate, OwnVersions] = {r: job.versions(r) for r in job.replicates}
    known = store.of_users(job.name, job.row)
    other = f"{job.name} counts as another model than the one of earlier results in {store.folder}"
    of_code = {name: version for name, version in next(iter(own.values()), {}).items() if name not in OF_REPLICATES}
    same_code = [one for one in known if of_code.items() <= one["versions"].items()]
    match = next((one for one in same_code if same_behavior(_behaviors(one), behaviors)), None)
    if same_code and match is None:
        _warn(f"{other}, although its code is the same, since it behaves differently for a fixed input.")
    elif known and not same_code:
        alike = behaviors and same_behavior(_behaviors(known[-1]), behaviors)
        same = "; for a fixed input it behaves the same" if alike else ""
        _warn(f"{other}, since {_changes(known[-1], made_by)}{same}.")
    name = behavior_name(behaviors) if match is None else match["versions"].get(BEHAVIOR)
    further = {BEHAVIOR: name} if behaviors and name else {}
    return replace(job, identity={r: {**one, **further} for r, one in own.items()}, made_by=made_by)


def _behaviors(record: Record) -> dict[str, Fields]:
    """Return the behaviors in a record; none in a record of an older version."""
    return {name: one[BEHAVIOR] for name, one in record.get("made_by", {}).items() if BEHAVIOR in one}


def _changes(record: Record, made_by: Mapping[str, Fields]) -> str:
    """Return the difference of the code from that of a record, as a part of a sentence."""
    before = {part for of in record.get("made_by", {}).values() for part in of.get("code", {}).items()}
    after = {part for of in made_by.values() for part in of.get("code", {}).items()}
    names = sorted({name for name, _ in before ^ after})
    if not before:
        return "an older version of icy recorded less of its code"
    return f"its code has changed ({listed(names, most=MOST_NAMED)})"


def _warn(sentence: str) -> None:
    """Warn once."""
    if sentence not in _warned:
        _warned.add(sentence)
        log.warning("%s", sentence)


RUNNERS = get_args(RunnerName)
ON_CLUSTERS = ("auto", "cpu", "cuda")  # devices


@dataclass(frozen=True)
class Row:
    """One row of a table: a model on all its grammars and seeds, with its records on file.

    Attributes:
        job: all the replicates of the row, baselines first.
        missing: the replicates to train now.
        filed: the records of the other replicates.
        before: finishing times, by key, of records that will be replaced, because their replicates are trained again.
    """

    job: Job
    missing: tuple[Replicate, ...]
    filed: tuple[Record, ...] = ()
    before: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job, store: Store, rerun: str) -> Row:
        """Return the row of a job: the records on file, and the replicates that are missing or to be trained again."""
        keys = {job.key(r): r for r in job.replicates}
        records = {key: store.get(key) for key in keys}
        to_train = keys_to_train(records, store, rerun, job.keep_models)
        again = {r.seed for key, r in keys.items() if key in to_train and job.is_baseline(r)}
        # If a baseline is trained again, so are the replicates that failed because it had failed.
        failed = {key for key, record in records.items() if record is not None and record.get("reason") == NO_BASELINE}
        to_train |= {key for key in failed if keys[key].seed in again}
        missing = tuple(r for key, r in keys.items() if key in to_train)
        filed = {key: called(record, keys[key]) for key, record in records.items() if record is not None}
        before = {key: record["finished"] for key, record in filed.items() if key in to_train}
        return cls(job, missing, tuple(record for key, record in filed.items() if key not in to_train), before)

    @property
    def name(self) -> str:
        """The model."""
        return self.job.name

    @property
    def facts(self) -> dict[str, str]:
        """Settings that may distinguish rows of one model, by name."""
        return self.job.facts

    def baselines(self) -> dict[int, float | str]:
        """Return the baseline's updates by seed, for the seeds on file."""
        return self.job.baselines_in(self.filed)

    def with_records(self, records: Sequence[Record]) -> Row:
        """Return the row with additional records of replicates that have been trained."""
        done = {(r["grammar"], r["seed"]) for r in records}
        missing = tuple(r for r in self.missing if (r.condition, r.seed) not in done)
        return replace(self, missing=missing, filed=(*self.filed, *records))


def called(record: Record, replicate: Replicate) -> Record:
    """Return a record with the name of its language in this plan, since the language's file may have been renamed."""
    if record["grammar"] == replicate.condition:
        return record
    config = {**record["config"], "grammar": replicate.condition}
    return cast(Record, {**record, "grammar": replicate.condition, "config": config})


@dataclass(frozen=True)
class Plan:
    """Everything that a run will do.

    Attributes:
        rows: rows of the table.
        store: the results folder.
        device: where to compute.
        workers: number of parallel processes; 0 for as many as a cluster can run.
        runner: "local" or "ray".
        per_gpu: processes that share one GPU of a cluster.
        start: packs; their records are copied into the store before training.
    """

    rows: tuple[Row, ...]
    store: Store
    device: str
    workers: int
    runner: str = "local"
    per_gpu: int = 1
    start: tuple[Pack, ...] = ()

    @property
    def total(self) -> int:
        """Number of replicates to train."""
        return sum(len(row.missing) for row in self.rows)

    @property
    def kinds(self) -> list[str]:
        """Kinds of the plan's jobs, without repeats."""
        return list(dict.fromkeys(row.job.kind for row in self.rows))

    @property
    def versions(self) -> Versions:
        """The versions of all parts that the plan's results depend on. Tables prefer these versions."""
        versions: dict[Part, str] = {}
        for job, r in ((row.job, replicate) for row in self.rows for replicate in row.job.replicates):
            about = {"kind": job.kind, "side": job.side, "versions": job.fixed_versions(r)}
            parts = versions_of({**job.config(r), **about})
            versions |= {part: version for part, version in parts.items() if version is not None}
        return versions

    @property
    def varying(self) -> list[str]:
        """Names of the settings that differ between the rows."""
        facts = [row.facts for row in self.rows]
        known = dict.fromkeys(name for fact in facts for name in fact)
        names = [name for name in known if len({fact.get(name) for fact in facts}) > 1]
        # Targets and caps depend on the protocol, unless the user sets them.
        own = {name: len({(fact.get("protocol"), fact.get(name)) for fact in facts}) for name in names}
        protocols = len({fact.get("protocol") for fact in facts})
        return [name for name in names if name not in ("target", "cap", "max updates") or own[name] > protocols]


def make_plan(request: RunRequest) -> Plan:
    """Return the plan of a request, without training.

    Raises:
        IcyError: as for `icy.probe`, `icy.e2e` and so on.
    """
    rows = plan_rows(request)
    warn_of_idle(request, [row.job for row in rows])
    return planned(request, rows)


@interrupted_with("nothing was trained")
def plan_rows(request: RunRequest) -> list[Row]:
    """Return the rows of a request: the jobs of its kind, each with its records on file."""
    registry.load_files(request.plugin)
    if folder_of(request.out).suffix.lower() in (".parquet", ".csv", ".json"):
        raise InvalidSettingError(
            f"out is a folder for results, not a file such as '{request.out}'; `icy pack` writes results to a file."
        )
    where: Choices = {"device": device_of(request), "engine": request.engine, "folder": str(request.out)}
    check_engine(request.engine, where["device"])
    kind = job_kind(request.job_kind)
    if request.keep_models and kind.model is None:
        raise InvalidSettingError(f"Jobs of kind '{kind.name}' save no models; leave out keep_models (--keep-models).")
    where["keep_models"] = request.keep_models
    changes = getattr(request, "settings", {})  # checked when jobs are made
    given = {name for name in request.given if getattr(request, name, "") is not None}
    where["given"] = frozenset(given).union(changes if isinstance(changes, Mapping) else ())
    store = store_of(request)
    from icy.grammars.languages import forget_user_languages  # here, since importing a plan must not import grammars
    from icy.training.task_models import fixed_randomness  # it imports torch

    # With one thread, trial calls are fast, also on a busy machine, where threads would wait for each other.
    with same_code(), fixed_randomness(), one_thread():
        forget_user_languages()
        jobs = jobs_of(kind, request)
        for job in jobs:
            check_config(job)
        return [Row.of(with_identity(replace(job, **where), store), store, request.rerun) for job in jobs]


def packs_of(request: RunRequest) -> tuple[Pack, ...]:
    """Return the packs that a request starts from.

    Raises:
        StoreError: a pack cannot be read.
    """
    return tuple(map(read_once, request.start_files))


def store_of(request: RunRequest) -> Store:
    """Return the results folder of a request, with the records of the packs that it starts from."""
    return Store(request.out, {record["key"]: record for pack in packs_of(request) for record in pack.records})


def planned(request: RunRequest, rows: Sequence[Row]) -> Plan:
    """Return the plan of some rows, on the runner, device and workers of the request.

    Raises:
        InvalidSettingError: workers or per_gpu below 1, per_gpu with the local runner, or a model or grammar that is
            defined in a notebook and would run on another machine.
    """
    for sentence in dict.fromkeys(sentence for row in rows for sentence in row.job.remarks()):
        log.warning("%s", sentence)
    device = device_of(request)
    if request.per_gpu < 1:
        raise InvalidSettingError(f"per_gpu must be at least 1, not {request.per_gpu}.")
    workers = plan_workers(request.workers, device, rows)
    if request.runner != "local":
        workers = request.workers or 0
        for row in rows:
            _refuse_notebook(row)
    elif request.per_gpu != 1:
        raise InvalidSettingError("per_gpu is for --runner ray; on this machine --workers share the GPU.")
    return Plan(tuple(rows), store_of(request), device, workers, request.runner, request.per_gpu, packs_of(request))


def device_of(request: RunRequest) -> str:
    """Return the device of a request; for a cluster also "auto", as its devices are known only after connecting."""
    require_known("runner", request.runner, RUNNERS)
    if request.runner == "local":
        return resolve_device(request.device)
    require_known("device of a cluster", request.device, ON_CLUSTERS, "Each task sees only its own GPU.")
    return request.device


def _refuse_notebook(row: Row) -> None:
    """Raise an error if a model or grammar is defined in a notebook or at a prompt: other machines cannot import it."""
    for entry in row.job.entries:
        if entry.origin == "__main__":
            raise InvalidSettingError(
                f"'{entry.name}' is defined in a notebook or script, which other machines cannot import: save it in a "
                'file of its own, mine.py, and pass plugin="mine.py" (--plugin mine.py); or use the local runner.'
            )


def plan_workers(workers: int | None, device: str, rows: Sequence[Row]) -> int:
    """Return the number of processes, at most one per replicate. By default one on a GPU, and one per core on a CPU.

    Raises:
        InvalidSettingError: fewer than one worker.
    """
    if workers is not None and workers < 1:
        raise InvalidSettingError(f"workers must be at least 1, not {workers}.")
    workers = workers or (usable_cores() if device == "cpu" else 1)
    return max(1, min(workers, sum(len(row.missing) for row in rows)))
