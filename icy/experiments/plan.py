"""Plans: rows, what of them is on file, and what is left to train."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from icy.config.settings import settings_for
from icy.config.specs import ProbeSpec
from icy.core.checks import FIRST_SEED
from icy.core.devices import resolve_device
from icy.core.errors import InvalidSettingError, unknown
from icy.core.provenance import usable_cores
from icy.core.registry import registry
from icy.models.factory import count_parameters
from icy.records.record import Record, baselines_of
from icy.records.store import Store, to_run
from icy.training.job import Job, Replicate, Task

RUNNERS = ("local", "ray")
ON_CLUSTERS = ("auto", "cpu", "cuda")  # devices
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Row:
    """One model on all grammars and seeds, and what is on file of it.

    Attributes:
        job: all the replicates of the row, baselines first.
        missing: those that are to be trained now.
        filed: the records of the others.
    """

    job: Job
    missing: tuple[Replicate, ...]
    filed: tuple[Record, ...] = ()

    @classmethod
    def of(cls, job: Job, store: Store, rerun: str) -> Row:
        """The row of a job, as the store and what is to be run again have it."""
        keys = {job.key(r): r for r in job.replicates}
        wanted = to_run(keys, store, rerun)
        found = [store.get(key) for key in keys if key not in wanted]
        missing = tuple(r for key, r in keys.items() if key in wanted)
        return cls(job, missing, tuple(r for r in found if r is not None))

    @property
    def name(self) -> str:
        """The model."""
        return self.job.task.entry.qualified

    @property
    def facts(self) -> dict[str, str]:
        """What rows of one model may differ in, by name."""
        job, task = self.job, self.job.task
        return {
            "hidden size": str(task.hidden_size),
            "meanings": str(task.space),
            "V": str(task.vocab_size),
            "w": str(task.word_length),
            "representation": task.representation,
            "protocol": job.protocol.name,
            "target": f"{job.protocol.target:g}",
            "cap": f"{job.protocol.cap:g}",
            "preset": job.preset,
        }

    def baselines(self) -> dict[int, int | str]:
        """Concat's steps by seed, as far as it is on file."""
        return baselines_of(self.filed)

    def with_records(self, records: Sequence[Record]) -> Row:
        """The row after some of its replicates were trained."""
        done = {(r["grammar"], r["seed"]) for r in records}
        missing = tuple(r for r in self.missing if (r.grammar, r.seed) not in done)
        return replace(self, missing=missing, filed=(*self.filed, *records))


@dataclass(frozen=True)
class Plan:
    """Everything a probe is going to do."""

    rows: tuple[Row, ...]
    store: Store
    device: str
    workers: int
    runner: str = "local"
    per_gpu: int = 1

    @property
    def total(self) -> int:
        """Replicates to train."""
        return sum(len(row.missing) for row in self.rows)

    @property
    def varying(self) -> list[str]:
        """The names of the facts in which its rows differ."""
        facts = [row.facts for row in self.rows]
        found = [name for name in (facts[0] if facts else ()) if len({fact[name] for fact in facts}) > 1]
        # Targets and caps go with the protocol, unless they were asked for.
        own = {name: len({(fact["protocol"], fact[name]) for fact in facts}) for name in found}
        protocols = len({fact["protocol"] for fact in facts})
        return [name for name in found if name not in ("target", "cap") or own[name] > protocols]

    @property
    def hidden_sizes(self) -> list[int]:
        """Those of its rows, each once."""
        return list(dict.fromkeys(row.job.task.hidden_size for row in self.rows))


def planned(spec: ProbeSpec, rows: Sequence[Row]) -> Plan:
    """The plan of some rows, on the runner, the device and the workers that were asked for.

    Raises:
        InvalidSettingError: fewer than one worker, more than one to share no GPU, or a model or grammar of a notebook
            for another machine.
    """
    device = _device(spec)
    if spec.per_gpu < 1:
        raise InvalidSettingError(f"per_gpu must be at least 1, not {spec.per_gpu}.")
    workers = plan_workers(spec.workers, device, rows)
    if spec.runner == "local":
        if spec.per_gpu != 1:
            raise InvalidSettingError("per_gpu is for --runner ray; on this machine --workers share the GPU.")
        return Plan(tuple(rows), Store(spec.out), device, workers)
    for row in rows:
        _refuse_notebook(row)
    return Plan(tuple(rows), Store(spec.out), device, spec.workers or 0, spec.runner, spec.per_gpu)


def _device(spec: ProbeSpec) -> str:
    """Where to compute; of a cluster it is not known before it is there."""
    if spec.runner not in RUNNERS:
        raise unknown("runner", spec.runner, RUNNERS)
    if spec.runner == "local":
        return resolve_device(spec.device)
    if spec.device not in ON_CLUSTERS:
        raise unknown("device of a cluster", spec.device, ON_CLUSTERS, "Its tasks see no GPU but their own.")
    return spec.device


def _refuse_notebook(row: Row) -> None:
    """Other machines cannot import what was defined in a notebook or at a prompt."""
    entry = row.job.task.entry
    grammars = {name for replicate in row.job.replicates for name in replicate.grammar.split("+")}
    used = [entry, *([entry.cell] if entry.cell else []), *(registry.get(name, "grammar") for name in grammars)]
    for one in used:
        if one.origin == "__main__":
            raise InvalidSettingError(
                f"'{one.name}' is defined in a notebook or script, which other machines cannot import: save it in a "
                'file of its own, mine.py, and pass plugin="mine.py" (--plugin mine.py); or use the local runner.'
            )


def plan_workers(asked: int | None, device: str, rows: Sequence[Row]) -> int:
    """How many processes to use: unless told, one for a GPU, and on a CPU one per core; no more than there is to do.

    Raises:
        InvalidSettingError: fewer than one was asked for.
    """
    if asked is not None and asked < 1:
        raise InvalidSettingError(f"workers must be at least 1, not {asked}.")
    workers = asked or (usable_cores() if device == "cpu" else 1)
    return max(1, min(workers, sum(len(row.missing) for row in rows)))


def parameter_counts(task: Task) -> dict[str, int]:
    """`count_parameters` of the model of a task."""
    from icy.training.engine import make_model

    return count_parameters(make_model(task, FIRST_SEED, settings_for("default")))
