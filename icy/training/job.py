"""Jobs: replicates of one row that train in one process.

`Job` is the interface of runs for planning, the store, runners, displays and trackers: first the choices that determine
the results, then the cost of training, the texts and the records. Each subclass is a kind of job:
`icy.training.language_job.LanguageJob` trains a model, `PairJob` there a sender and a receiver.
"""

from __future__ import annotations

import contextlib
import math
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Number
from statistics import fmean
from typing import Any, Self, cast

from icy.config.kinds import Settings
from icy.config.settings import ENGINES
from icy.core import native
from icy.core.entry import JOB, Entry
from icy.core.errors import IcyError, InvalidSettingError, SurroundingsError, require_known, what_and_where
from icy.core.machine import device_name, git_revision, now, out_of_memory, software
from icy.core.registry import registry
from icy.core.text import counted, listed
from icy.core.types import Choices, Fields
from icy.records.check import config_fault
from icy.records.kinds import STEPS_AND_ACCURACY, RowKey, job_kind
from icy.records.record import CROSSINGS, FAILURES, INTERRUPTED, MODELS, Record, as_json, record_key, value_of

# -- results of training: replicates, readings of their evaluations, and outcomes --------------------------------------


@dataclass(frozen=True, order=True)
class Replicate:
    """One model of a stack: a condition and a seed. Records have the condition in the column `grammar`.

    Attributes:
        condition: in probes and pairs, the grammar that is learned; in games, the kind of distractors; in S2B, the
            speaker; in the recall task, the stimuli; in the study, the grammar of a game.
        seed: seed of the initial weights and of all other random numbers; in the study, the number of an instance.
    """

    condition: str
    seed: int

    @property
    def grammar(self) -> str:
        """The condition, under its name before version 0.3."""
        warnings.warn("Replicate.grammar is now Replicate.condition.", DeprecationWarning, stacklevel=2)
        return self.condition


@dataclass(frozen=True)
class Reading:
    """One replicate's accuracy at one evaluation; `phase` names the phase if a training has several."""

    replicate: Replicate
    steps: int
    accuracy: float
    phase: str = ""


@dataclass
class Outcome:
    """The result of a replicate, or its failure.

    Attributes:
        replicate: the replicate.
        reason: "target", "cap", "budget" or "steps" for a result; for a failure one of FAILURES.
        steps: number of updates, or the loop index with `steps_from_zero`.
        accuracy: accuracy at the end; NaN if training diverged.
        curve: a point per evaluation, with the columns of `JobKind.curve`, by default (steps, accuracy).
        engine: how the stack was trained.
        seconds: this replicate's share of the time of its stacks; by default the time since the outcome before.
        baseline_steps: updates of the baseline at the same seed, if it reached the target.
        extra: further numbers, by their names in the record; see `JobKind.measures`.
        error: a sentence about the failure, for reasons that are not in FAILURES.
        files: files to keep with the record, by their path in the results folder.
        crossing: the number of updates at which the target was reached, if it was interpolated between two checks.
        baseline_crossing: the same number of the baseline.
    """

    replicate: Replicate
    reason: str
    steps: int
    accuracy: float
    curve: Sequence[Sequence[Any]] = ()
    engine: str = ""
    seconds: float = 0.0
    baseline_steps: int | None = None
    extra: Fields = field(default_factory=dict)
    error: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    crossing: float | None = None
    baseline_crossing: float | None = None

    @property
    def failed(self) -> bool:
        """Whether the replicate failed."""
        return self.error is not None or self.reason in FAILURES


Report = Callable[[list[Reading]], None]


# -- jobs --------------------------------------------------------------------------------------------------------------


CORES = "icy.models.native"  # the package of the native cores, named here to avoid importing it
IDENTITY = ("model", "grammar", "seed", "settings", "options")  # names in a configuration that `facts` leaves out
# Fields of records that a configuration or the extra numbers of an outcome cannot overwrite.
RESERVED = {
    *("key", "config", "kind", "side", "measure", "value", "preset", "parameters", "failed", "reason", "error"),
    *("traceback", "accuracy", "baseline_steps", "curve", "engine", "seconds", "versions", "made_by", "git", "device"),
    *("device_name", "finished", "measures", "points", "files", *CROSSINGS),
}


@dataclass(frozen=True, kw_only=True)
class Job:
    """Replicates of one row, for one process: the settings of the row with the replicates to train.

    Attributes:
        settings: the settings of the row.
        replicates: the replicates to train.
        baselines: updates of the baselines on file, by seed; for a failed baseline, the reason.
        device: "cpu", "cuda", ...
        engine: how replicates are stacked; one of ENGINES.
        folder: the results folder.
        parameters: numbers of parameters by convention, for the record.
        preset: name of the preset of the settings, for the record.
        given: names of the options and settings that the user gave, for warnings.
        keep_models: whether the weights of every replicate are saved next to its record.
        checkpoints: whether trainings save checkpoints in the results folder and resume from them, so that a killed
            run loses only seconds. The default is True for kinds that support this.
        identity: versions of replicates with code of users, fixed when the job is planned, since the code may change
            later.
        made_by: the code of users and its behavior, for the record.
    """

    settings: Any = field(default_factory=Settings)
    replicates: tuple[Replicate, ...] = ()
    baselines: Mapping[int, float | str] = field(default_factory=dict)
    device: str = "cpu"
    engine: str = "auto"
    folder: str = "."
    parameters: Mapping[str, int] = field(default_factory=dict)
    preset: str = "default"
    given: frozenset[str] = field(default=frozenset(), compare=False)
    keep_models: bool = False
    checkpoints: bool = False
    identity: Mapping[Replicate, Mapping[str, str]] = field(default_factory=dict, repr=False)
    made_by: Mapping[str, Fields] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_engine(self.engine, self.device)
        object.__setattr__(self, "preset", getattr(self.settings, "preset", self.preset))
        if getattr(self.settings, "on_cpu", False):
            object.__setattr__(self, "device", "cpu")

    @property
    def of_row(self) -> Settings:
        """The settings of the row; the defaults for a job of an older plug-in with another field of this name."""
        return self.settings if isinstance(self.settings, Settings) else Settings()

    @property
    def kind(self) -> str:
        """Name of the kind of job."""
        return str(self.of_row.kind)

    @property
    def entries(self) -> list[Entry]:
        """Registry entries that a worker needs to train the job."""
        conditions = dict.fromkeys(replicate.condition for replicate in self.replicates)
        own = {entry.qualified: entry for one in conditions for entry in self.of_row.entries_of(one)}
        return [registry.get(self.kind, JOB), *self.of_row.entries, *own.values()]

    def config(self, replicate: Replicate) -> Choices:
        """Return all choices that can change the numbers of a replicate: `model`, `grammar`, `seed` and others."""
        return {**self._shared_config, "grammar": replicate.condition, "seed": replicate.seed}

    @cached_property
    def _shared_config(self) -> Choices:
        return {"model": self.name, **self.of_row.config()}

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Return the versions of the parts that determine the results."""
        of_kind = {self.kind: registry.get(self.kind, JOB).full_version}
        return {**of_kind, **self.of_row.versions(replicate.condition, replicate.seed)}

    def key(self, replicate: Replicate) -> str:
        """Return the key of a replicate's record."""
        return record_key(self.config(replicate), self.fixed_versions(replicate))

    def fixed_versions(self, replicate: Replicate) -> Mapping[str, str]:
        """Return the versions of the parts that determine the results, for code of users as they were planned."""
        return self.identity.get(replicate) or self.versions(replicate)

    def behavior(self) -> dict[str, Fields]:
        """Return digests of what users' code computes for fixed inputs, by name; see `icy.training.task_models`."""
        if (kind := job_kind(self.kind)).behavior is not None:
            return dict(kind.function("behavior")(self))
        return dict(self.of_row.behavior(self.any_replicate.condition))

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

    def joined(self, other: Job) -> Self:
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
        found: int | None = self.of_row.length(baseline)
        return found

    # -- cost, texts and records ---------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the row: the model with its side."""
        return str(self.of_row.name)

    @property
    def short_name(self) -> str:
        """Name without the side, for texts that state the side elsewhere."""
        return str(self.of_row.short_name or self.name)

    @property
    def side(self) -> str:
        """Group of the row in tables: "sender", "receiver", "pair" or another word."""
        return str(self.of_row.side or self.kind)

    @property
    def measure(self) -> str:
        """Name of the number in the column `value`."""
        return str(self.of_row.measure)

    @property
    def facts(self) -> dict[str, str]:
        """The settings that distinguish rows with the same name."""
        config = self.config(self.any_replicate)
        return self.of_row.facts() or {name: str(value) for name, value in config.items() if name not in IDENTITY}

    def remarks(self) -> list[str]:
        """Return warnings about the results to expect, shown once before training."""
        return []

    def phase_text(self, phase: str) -> str | None:
        """Return the name of a phase of training; None for the main phase, the phase that `length` limits."""
        name: str | None = self.of_row.phase_text(phase)
        return name

    def waiting_text(self) -> str:
        """Return the status text while the length of training is not known."""
        return str(self.of_row.waiting_text())

    def limit_text(self) -> str:
        """Return the words before the remaining time: "at most" if a replicate may end early."""
        return str(self.of_row.limit_text())

    def conditions_text(self) -> str | None:
        """Return a sentence that lists the conditions of the replicates; None if there are none to list."""
        sentence: str | None = self.of_row.conditions_text([*dict.fromkeys(r.condition for r in self.replicates)])
        return sentence

    @property
    def update_cost(self) -> float:
        """Relative cost of one update of one replicate, used to order the rows of a plan."""
        return float(self.parameters.get("true", 1)) * float(self.of_row.work())

    def rehearse(self, updates: int) -> float:
        """Return the seconds of one update of all replicates; discard the results.

        They are timed by the function `rehearse` of the kind; by default between two evaluations of a replicate,
        or over the whole training if there are fewer.
        """
        if (kind := job_kind(self.kind)).rehearse is not None:
            return float(kind.function("rehearse")(self, updates))
        evaluations: list[tuple[float, list[Reading]]] = []

        def report(readings: list[Reading]) -> None:
            if not evaluations or readings[0].replicate == evaluations[0][1][0].replicate:
                evaluations.append((time.perf_counter(), readings))
            if len(evaluations) == 2:
                raise _Enough

        start = time.perf_counter()
        with contextlib.suppress(_Enough):
            steps = [outcome.steps for outcome in replace(self, checkpoints=False).train(report)]
        if len(evaluations) < 2:  # the training has ended
            return (time.perf_counter() - start) / fmean(steps) if any(steps) else math.nan
        (began, first), (ended, last) = evaluations
        updates = max(r.steps for r in last) - max(r.steps for r in first)
        together = len({r.replicate for r in last})  # 1 if replicates are trained one after another
        return (ended - began) / updates * len(self.replicates) / together if updates > 0 else math.nan

    @property
    def rehearsal(self) -> Self:
        """The job to time for an estimate, with baselines, because training may need these."""
        return replace(self, baselines={r.seed: 1 for r in self.replicates})

    @property
    def alike(self) -> str:
        """A key that is equal for jobs with updates of equal cost; by default each row has its own key."""
        return f"{self.row} {self.engine} {len(self.replicates)}"

    def most_updates(self, baseline: float | None) -> int | None:
        """Return the maximum number of updates of a replicate, also if `length` is not known; None for no maximum."""
        most: int | None = self.of_row.most_updates(baseline)
        return self.length(baseline) if most is None else most

    def summary(self, record: Record) -> str:
        """Return the result of a replicate in a few words."""
        own: str = self.of_row.summary(record)
        return own or f"{record['measure']} {value_of(record):.3f} after {counted(record['steps'], 'update')}"

    def explain(self, outcome: Outcome) -> str:
        """Return the reason for a failure, as a sentence without a full stop."""
        known = {
            "no_baseline": "the baseline failed at this seed, so there is nothing to compare with",
            "diverged": "the loss is no longer a finite number",
        }
        own = self.of_row.explain(outcome.reason, outcome.replicate.condition, outcome.extra)
        return outcome.error or own or known.get(outcome.reason, outcome.reason)

    def record(self, outcome: Outcome) -> Record:
        """Return the record of a replicate that ended."""
        return _record_of(
            self,
            outcome.replicate,
            failed=outcome.failed,
            reason=outcome.reason,
            error=self.explain(outcome) if outcome.failed else None,
            steps=outcome.steps,
            accuracy=outcome.accuracy,
            baseline_steps=outcome.baseline_steps,
            **{name: value for name in CROSSINGS if (value := getattr(outcome, name)) is not None},
            curve=outcome.curve,
            engine=outcome.engine,
            seconds=round(outcome.seconds, 4),
            extra=outcome.extra,
            **({"files": sorted(outcome.files)} if outcome.files else {}),
        )

    def failure(self, replicate: Replicate, error: BaseException) -> Record:
        """Return the record of a replicate that failed with an exception."""
        sentence = what_and_where(error)
        trace = "".join(traceback.format_exception(error))
        outside = out_of_memory(error) or isinstance(error, SurroundingsError)
        reason = INTERRUPTED if outside else "error"
        return _record_of(self, replicate, failed=True, reason=reason, error=sentence, traceback=trace)


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
    elsewhere = None if device == "auto" else "they run only on a CPU"
    why_not = native.why_not(CORES) if device == "cpu" else elsewhere
    if engine == "native" and why_not is not None:
        raise InvalidSettingError(f"Native cores are not available here ({why_not}): choose another engine, or 'auto'.")


def _steps_or_reason(record: Record) -> float | str:
    """Return the updates of a baseline, or the reason for its failure."""
    steps: float | None = record.get("baseline_crossing")
    steps = record.get("baseline_steps") if steps is None else steps
    if steps is None and not record["failed"]:
        steps = record["steps"]
    return record["reason"] if steps is None else steps


class _Enough(BaseException):  # not an Exception, which `train` may catch
    """Ends a rehearsal after two evaluations."""


def _record_of(job: Job, replicate: Replicate, extra: Fields | None = None, **result: Any) -> Record:
    kind, config, extra = job_kind(job.kind), job.config(replicate), extra or {}
    if wrong := sorted(({*RESERVED, "steps"} - set(kind.measures)) & set(extra)):
        raise IcyError(f"Extra numbers of a job of kind '{job.kind}' cannot have the reserved names {listed(wrong)}.")
    for name in kind.measures:
        if not isinstance(extra.get(name), (Number, type(None))):
            raise IcyError(f"The measure '{name}' of a job of kind '{job.kind}' must be a number, not {extra[name]!r}.")
    if wrong := [point for point in result.get("curve", ()) if len(point) != len(kind.curve)]:
        columns = f"the columns {listed(kind.curve)}"
        raise IcyError(f"A curve of a job of kind '{job.kind}' has {columns}, but a point has {len(wrong[0])} numbers.")
    points = {} if kind.curve == STEPS_AND_ACCURACY else {"points": list(kind.curve)}
    record = {
        "key": job.key(replicate),
        **{name: value for name, value in config.items() if name not in ("settings", "options")},
        "kind": job.kind,
        "side": job.side,
        "measure": job.measure,
        "preset": job.preset,
        "parameters": dict(job.parameters),
        **result,
        **extra,
        **({"measures": kind.own_measures} if kind.own_measures else {}),
        **points,
        "config": config,
        "versions": {**software(), **job.fixed_versions(replicate)},
        **({"made_by": dict(job.made_by)} if job.made_by else {}),
        "git": git_revision(),
        "device": job.device,
        "device_name": device_name(job.device),
        "finished": now(),
    }
    return cast(Record, as_json(record))


def check_config(job: Job) -> None:
    """Check that a job can train, and that its configuration has model, grammar and seed, and no reserved names.

    Raises:
        IcyError: the configuration is invalid.
        TypeError: the job has no training function.
    """
    if type(job).train is Job.train and job_kind(job.kind).train is None:
        raise TypeError(f"The kind of job '{job.kind}' has no training function.")
    config = job.config(job.any_replicate)
    if missing := [name for name in IDENTITY[:3] if name not in config]:
        raise IcyError(f"The configuration of a job of kind '{job.kind}' lacks {listed(missing)}.")
    if wrong := sorted(RESERVED & set(config)):
        raise IcyError(f"A configuration of a job of kind '{job.kind}' cannot have the reserved names {listed(wrong)}.")
    if (fault := config_fault(config)) is not None:
        raise InvalidSettingError(f"The configuration of a job of kind '{job.kind}' cannot be stored: {fault}.")
