"""Plans: rows, what of them is on file, and what is left to train."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast, get_args

from icy.config.specs import RunSpec
from icy.config.types import RunnerName
from icy.core.devices import resolve_device
from icy.core.errors import InvalidSettingError, unknown
from icy.core.provenance import usable_cores
from icy.core.registry import registry
from icy.core.signals import interrupted_with
from icy.core.types import Choices
from icy.records.kinds import job_kind
from icy.records.pack import Pack, read_once
from icy.records.record import NO_BASELINE, Record
from icy.records.store import Store, folder_of, keys_to_train
from icy.records.versions import Part, Versions, versions_of
from icy.training.combinations import combinations
from icy.training.job import Job, Replicate, check_config
from icy.training.job_training import check_engine
from icy.training.runners.base import one_thread

from .idle import tell_idle

log = logging.getLogger(__name__)
RUNNERS = get_args(RunnerName)
ON_CLUSTERS = ("auto", "cpu", "cuda")  # devices


@dataclass(frozen=True)
class Row:
    """One row of a table: a model on all its grammars and seeds, and what is on file of it.

    Attributes:
        job: all the replicates of the row, baselines first.
        missing: those that are to be trained now.
        filed: the records of the others.
        before: when what is on file of the missing, to be trained again, was finished; by key.
    """

    job: Job
    missing: tuple[Replicate, ...]
    filed: tuple[Record, ...] = ()
    before: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job, store: Store, rerun: str) -> Row:
        """Return the row of a job: what is on file, and what is missing or to be run again."""
        keys = {job.key(r): r for r in job.replicates}
        found = {key: store.get(key) for key in keys}
        wanted = keys_to_train(found, store, rerun, job.keep_models)
        again = {r.seed for key, r in keys.items() if key in wanted and job.is_baseline(r)}
        # Together with a baseline, the replicates that failed because it had failed.
        failed = {key for key, record in found.items() if record is not None and record.get("reason") == NO_BASELINE}
        wanted |= {key for key in failed if keys[key].seed in again}
        missing = tuple(r for key, r in keys.items() if key in wanted)
        filed = {key: called(record, keys[key]) for key, record in found.items() if record is not None}
        before = {key: record["finished"] for key, record in filed.items() if key in wanted}
        return cls(job, missing, tuple(record for key, record in filed.items() if key not in wanted), before)

    @property
    def name(self) -> str:
        """The model."""
        return self.job.name

    @property
    def facts(self) -> dict[str, str]:
        """What rows of one model may differ in, by name."""
        return self.job.facts

    def baselines(self) -> dict[int, float | str]:
        """Return the baseline's steps by seed, as far as they are on file."""
        return self.job.baselines_in(self.filed)

    def with_records(self, records: Sequence[Record]) -> Row:
        """Return the row after some of its replicates were trained."""
        done = {(r["grammar"], r["seed"]) for r in records}
        missing = tuple(r for r in self.missing if (r.condition, r.seed) not in done)
        return replace(self, missing=missing, filed=(*self.filed, *records))


def called(record: Record, replicate: Replicate) -> Record:
    """Return a record under the name that its language has in this plan: its file may have been renamed since."""
    if record["grammar"] == replicate.condition:
        return record
    config = {**record["config"], "grammar": replicate.condition}
    return cast(Record, {**record, "grammar": replicate.condition, "config": config})


@dataclass(frozen=True)
class Plan:
    """Everything that a run is going to do.

    Attributes:
        rows: rows of the table.
        store: the results folder.
        device: where to compute.
        workers: processes at once; 0, as many as a cluster has places.
        runner: "local" or "ray".
        per_gpu: processes that share one GPU of a cluster.
        start: packs whose records are copied into the store before anything is trained.
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
        """Kinds of its jobs, each once."""
        return list(dict.fromkeys(row.job.kind for row in self.rows))

    @property
    def versions(self) -> Versions:
        """The versions of all parts that its results are measured with, which tables show before others."""
        found: dict[Part, str] = {}
        for job, r in ((row.job, replicate) for row in self.rows for replicate in row.job.replicates):
            about = {"kind": job.kind, "side": job.side, "versions": job.versions(r)}
            parts = versions_of({**job.config(r), **about})
            found |= {part: version for part, version in parts.items() if version is not None}
        return found

    @property
    def varying(self) -> list[str]:
        """Names of the facts in which its rows differ."""
        facts = [row.facts for row in self.rows]
        known = dict.fromkeys(name for fact in facts for name in fact)
        found = [name for name in known if len({fact.get(name) for fact in facts}) > 1]
        # Targets and caps go with the protocol, unless they were asked for.
        own = {name: len({(fact.get("protocol"), fact.get(name)) for fact in facts}) for name in found}
        protocols = len({fact.get("protocol") for fact in facts})
        return [name for name in found if name not in ("target", "cap", "max updates") or own[name] > protocols]

    @property
    def hidden_sizes(self) -> list[str]:
        """Hidden sizes of its rows, each once."""
        return list(dict.fromkeys(row.facts["hidden size"] for row in self.rows if "hidden size" in row.facts))


def make_plan(spec: RunSpec) -> Plan:
    """Plan what a spec asks for, and train nothing.

    Raises:
        IcyError: as for `icy.probe`, `icy.e2e` and so on.
    """
    rows = plan_rows(spec)
    tell_idle(combinations(spec))
    return planned(spec, rows)


@interrupted_with("nothing was trained")
def plan_rows(spec: RunSpec) -> list[Row]:
    """Return the rows of a spec: the jobs of its kind, each with what is on file of it."""
    load_plugins(spec.plugin_files)
    if folder_of(spec.out).suffix.lower() in (".parquet", ".csv", ".json"):
        raise InvalidSettingError(
            f"out is a folder for results, not a file such as '{spec.out}': icy pack makes files."
        )
    where: Choices = {"device": device_of(spec), "engine": spec.engine, "folder": str(spec.out)}
    check_engine(spec.engine, where["device"])
    kind = job_kind(spec.job_kind)
    if spec.keep_models and kind.model is None:
        raise InvalidSettingError(f"Jobs of kind '{kind.name}' keep no models; leave out keep_models (--keep-models).")
    where["keep_models"] = spec.keep_models
    with one_thread():  # to try models out is quick, and slow where threads wait for each other on a busy machine
        jobs = kind.make_jobs(spec)
    for job in jobs:
        check_config(job)
    store = store_of(spec)
    return [Row.of(replace(job, **where), store, spec.rerun) for job in jobs]


def packs_of(spec: RunSpec) -> tuple[Pack, ...]:
    """Return the packs that a spec starts from.

    Raises:
        StoreError: one cannot be read.
    """
    return tuple(map(read_once, spec.start_files))


def store_of(spec: RunSpec) -> Store:
    """Return the results folder of a spec, with what the packs hold that it starts from."""
    return Store(spec.out, {record["key"]: record for pack in packs_of(spec) for record in pack.records})


def load_plugins(files: str | Path | Iterable[str | Path]) -> None:
    """Load plug-in files."""
    for file in [files] if isinstance(files, (str, Path)) else files:
        registry.load_file(file)


def planned(spec: RunSpec, rows: Sequence[Row]) -> Plan:
    """Return the plan of some rows, on the runner, device and workers that the spec asks for.

    Raises:
        InvalidSettingError: fewer than one worker, more than one to share no GPU, or a model or grammar of a notebook
            for another machine.
    """
    for sentence in dict.fromkeys(sentence for row in rows for sentence in row.job.remarks()):
        log.warning("%s", sentence)
    device = device_of(spec)
    if spec.per_gpu < 1:
        raise InvalidSettingError(f"per_gpu must be at least 1, not {spec.per_gpu}.")
    workers = plan_workers(spec.workers, device, rows)
    if spec.runner == "local":
        if spec.per_gpu != 1:
            raise InvalidSettingError("per_gpu is for --runner ray; on this machine --workers share the GPU.")
        return Plan(tuple(rows), store_of(spec), device, workers, start=packs_of(spec))
    for row in rows:
        _refuse_notebook(row)
    where = device, spec.workers or 0, spec.runner, spec.per_gpu, packs_of(spec)
    return Plan(tuple(rows), store_of(spec), *where)


def device_of(spec: RunSpec) -> str:
    """Return the device that a spec asks for; a cluster's is not known before it is reached."""
    if spec.runner not in RUNNERS:
        raise unknown("runner", spec.runner, RUNNERS)
    if spec.runner == "local":
        return resolve_device(spec.device)
    if spec.device not in ON_CLUSTERS:
        raise unknown("device of a cluster", spec.device, ON_CLUSTERS, "Its tasks see no GPU but their own.")
    return spec.device


def _refuse_notebook(row: Row) -> None:
    """Refuse what was defined in a notebook or at a prompt, which other machines cannot import."""
    for one in row.job.entries:
        if one.origin == "__main__":
            raise InvalidSettingError(
                f"'{one.name}' is defined in a notebook or script, which other machines cannot import: save it in a "
                'file of its own, mine.py, and pass plugin="mine.py" (--plugin mine.py); or use the local runner.'
            )


def plan_workers(asked: int | None, device: str, rows: Sequence[Row]) -> int:
    """Return the number of processes: unless given, one for a GPU, and on a CPU one per core; at most one per job.

    Raises:
        InvalidSettingError: fewer than one was asked for.
    """
    if asked is not None and asked < 1:
        raise InvalidSettingError(f"workers must be at least 1, not {asked}.")
    workers = asked or (usable_cores() if device == "cpu" else 1)
    return max(1, min(workers, sum(len(row.missing) for row in rows)))
