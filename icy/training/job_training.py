"""The training of a job: its replicates, the configurations and versions that determine their keys, and the trainer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from icy.config.settings import ENGINES
from icy.core import native
from icy.core.entry import JOB, Entry
from icy.core.errors import InvalidSettingError, require_known
from icy.core.registry import registry
from icy.core.types import Choices, Fields
from icy.records.kinds import RowKey, job_kind
from icy.records.record import MODELS, Record, record_key

from .outcomes import Outcome, Replicate, Report

CORES = "icy.models.native"  # the package of the native cores, named here to avoid importing it


@dataclass(frozen=True, kw_only=True)
class JobTraining(ABC):
    """The part of a job that determines its numbers: replicates, configuration, versions and training; see `Job`.

    Attributes:
        replicates: the replicates to train.
        baselines: updates of the baselines on file, by seed; for a failed baseline, the reason.
        device: "cpu", "cuda", ...
        engine: how replicates are stacked; one of ENGINES.
        folder: the results folder.
        parameters: numbers of parameters by convention, for the record.
        preset: name of the preset of the settings, for the record.
        keep_models: whether the weights of every replicate are saved next to its record.
        checkpoints: whether trainings save checkpoints in the results folder and resume from them, so that a killed
            run loses only seconds. The default is True for kinds that support this.
        identity: versions of replicates with code of users, fixed when the job is planned, since the code may change
            later.
        made_by: the code of users and its behavior, for the record.
    """

    replicates: tuple[Replicate, ...] = ()
    baselines: Mapping[int, float | str] = field(default_factory=dict)
    device: str = "cpu"
    engine: str = "auto"
    folder: str = "."
    parameters: Mapping[str, int] = field(default_factory=dict)
    preset: str = "default"
    keep_models: bool = False
    checkpoints: bool = False
    identity: Mapping[Replicate, Mapping[str, str]] = field(default_factory=dict, repr=False)
    made_by: Mapping[str, Fields] = field(default_factory=dict, repr=False)

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        check_engine(self.engine, self.device)

    @property
    def entries(self) -> list[Entry]:
        """Registry entries that a worker needs to train the job."""
        return [registry.get(self.kind, JOB)]

    @abstractmethod
    def config(self, replicate: Replicate) -> Choices:
        """Return all choices that can change the numbers of a replicate: `model`, `grammar`, `seed` and others."""

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Return the versions of the parts that determine the results."""
        return {self.kind: registry.get(self.kind, JOB).full_version}

    def key(self, replicate: Replicate) -> str:
        """Return the key of a replicate's record."""
        return record_key(self.config(replicate), self.fixed_versions(replicate))

    def fixed_versions(self, replicate: Replicate) -> Mapping[str, str]:
        """Return the versions of the parts that determine the results, for code of users as they were planned."""
        return self.identity.get(replicate) or self.versions(replicate)

    def behavior(self) -> dict[str, Fields]:
        """Return digests of what users' code computes for fixed inputs, by name; see `icy.training.behavior`."""
        return {}

    @property
    def row(self) -> RowKey:
        """The part of the configuration that distinguishes this row from other rows of a plan."""
        return job_kind(self.kind).row_key(self.config(self.any_replicate))

    @property
    def any_replicate(self) -> Replicate:
        """One of the replicates, for configuration that all replicates of the row share."""
        return Replicate(self.replicates[0].condition if self.replicates else "", 0)

    def train(self, report: Report | None = None) -> Iterator[Outcome]:
        """Train the replicates; yield each when it ends. `report` gets the readings of every evaluation.

        The default calls the training function in the registration of the kind.
        """
        trained: Iterator[Outcome] = job_kind(self.kind).function("train")(self, report)
        return trained

    def for_travel(self) -> Self:
        """Return the job for another machine: without checkpoints, because these stay in the results folder."""
        return replace(self, checkpoints=False) if self.checkpoints else self

    def joined(self, other: JobTraining) -> Self:
        """Return the job with the additional replicates of another job of the row."""
        replicates = tuple(dict.fromkeys((*self.replicates, *other.replicates)))
        identity, made_by = {**self.identity, **other.identity}, {**self.made_by, **other.made_by}
        return replace(self, replicates=replicates, identity=identity, made_by=made_by)

    def own_files(self, replicate: Replicate) -> Mapping[str, bytes]:
        """Return additional files to keep with a replicate's record, by path in the results folder."""
        return {}

    def model_file(self, replicate: Replicate) -> str:
        """Return the path of a replicate's saved model in the results folder."""
        return f"{MODELS}/{self.key(replicate)}.safetensors"

    def is_baseline(self, replicate: Replicate) -> bool:
        """Whether the replicate is the baseline of its seed. Other replicates are measured relative to the baseline."""
        return False

    def baselines_in(self, records: Iterable[Record]) -> dict[int, float | str]:
        """Return the updates of the baselines in some records, by seed; for a failed baseline, the reason."""
        # A pair may fail in the game, after its pre-training gave the updates.
        return {r["seed"]: _steps_or_reason(r) for r in records if self.is_baseline(Replicate(r["grammar"], r["seed"]))}

    def length(self, baseline: float | None) -> int | None:
        """Return the maximum number of updates of a replicate, given its baseline's updates; None if not known."""
        return None


def check_engine(engine: str, device: str) -> None:
    """Check the name of an engine.

    Raises:
        UnknownNameError: the name is unknown.
        InvalidSettingError: a CUDA graph without a GPU, or native cores that are not available or do not run on this
            processor.
    """
    require_known("engine", engine, ENGINES)
    if engine.endswith("+graph") and device == "cpu":
        raise InvalidSettingError("Updates can be captured as a graph only on a GPU; leave out '+graph'.")
    why_not = native.why_not(CORES) if device == "cpu" else "they run only on a CPU" if device == "cuda" else None
    if engine == "native" and why_not is not None:
        raise InvalidSettingError(f"Native cores are not available here ({why_not}): choose another engine, or 'auto'.")


def _steps_or_reason(record: Record) -> float | str:
    """Return the updates of a baseline, or the reason for its failure."""
    steps: float | None = record.get("baseline_crossing")
    steps = record.get("baseline_steps") if steps is None else steps
    if steps is None and not record["failed"]:
        steps = record["steps"]
    return record["reason"] if steps is None else steps
