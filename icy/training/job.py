"""Jobs: replicates of one row that are trained in one process, the readings and outcomes they give, and their records.

`Job` is all that planning, the store, runners, displays and trackers know of what they run. A subclass says what is
trained: `icy.training.probe_job.ProbeJob` one model alone, `icy.training.pairs.pair_job.PairJob` a sender and a receiver.
"""

from __future__ import annotations

import contextlib
import math
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any, ClassVar, Self, cast

from icy.config.settings import ENGINES
from icy.core import native
from icy.core.entry import JOB, Entry
from icy.core.errors import IcyError, InvalidSettingError, SurroundingsError, unknown, what_and_where
from icy.core.lazy import load_object
from icy.core.memory import out_of_memory
from icy.core.provenance import device_name, git_revision, now, software
from icy.core.registry import registry
from icy.core.text import counted, listed
from icy.records.check import config_fault
from icy.records.kinds import STEPS_AND_ACCURACY, RowKey, job_kind
from icy.records.record import CROSSINGS, FAILURES, INTERRUPTED, MODELS, Record, as_json, record_key, value_of
from icy.records.versions import Part, versions_of

from .work import Work

CORES = "icy.models.native"  # the package of the native cores, which need not be imported to know of its library

Report = Callable[[list["Reading"]], None]
ASSUMED_STEPS = 500  # of a baseline, in estimates, where none is on file
IDENTITY = ("model", "grammar", "seed", "settings", "options")  # of a configuration: what no fact tells
# Fields of records that neither a configuration nor the extra numbers of an outcome may overwrite.
RESERVED = {
    *("key", "config", "kind", "side", "measure", "value", "preset", "parameters", "failed", "reason", "error"),
    *("traceback", "accuracy", "baseline_steps", "curve", "engine", "seconds", "versions", "git", "device"),
    *("device_name", "finished", "measures", "points", "files", *CROSSINGS),
}


@dataclass(frozen=True, order=True)
class Replicate:
    """One model of a stack: a condition at a seed. Records have the condition in the column `grammar`.

    Attributes:
        condition: in probes and pairs, the grammar that is learned; in games, the kind of distractors; in S2B, the
            speaker; in the recall task, the stimuli; in the study, the grammar of a game.
        seed: of the initial weights and of all other random numbers; in the study, the number of an instance.
    """

    condition: str
    seed: int

    @property
    def grammar(self) -> str:
        """The condition, as versions before 0.3 called it."""
        warnings.warn("Replicate.grammar is now Replicate.condition.", DeprecationWarning, stacklevel=2)
        return self.condition


@dataclass(frozen=True)
class Reading:
    """One replicate's accuracy at one evaluation; `phase` names the part of a training that has several."""

    replicate: Replicate
    steps: int
    accuracy: float
    phase: str = ""


@dataclass
class Outcome:
    """How one replicate ended.

    Attributes:
        replicate: which.
        reason: "target", "cap", "budget" or "steps" for a result; for a failure one of FAILURES.
        steps: updates made (or the published count of them).
        accuracy: at the end; NaN if it diverged.
        curve: a point per evaluation, in the order of `JobKind.curve`: (steps, accuracy), unless it says otherwise.
        engine: how the stack was trained.
        seconds: this replicate's share of the time its stacks took.
        baseline_steps: updates that the baseline was trained for at the same seed, if it reached the target.
        extra: further numbers, by their names in the record; see `JobKind.measures`.
        error: why there is no result, in a sentence, for a reason of one's own.
        files: files to keep with the record, by their path in the results folder.
        crossing: the step at which it reached the target, if that was interpolated between two checks.
        baseline_crossing: the same of the baseline.
    """

    replicate: Replicate
    reason: str
    steps: int
    accuracy: float
    curve: Sequence[Sequence[Any]] = ()
    engine: str = ""
    seconds: float = 0.0
    baseline_steps: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    crossing: float | None = None
    baseline_crossing: float | None = None

    @property
    def failed(self) -> bool:
        """Whether there is no result."""
        return self.error is not None or self.reason in FAILURES


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """Replicates of one row, for one process. All that differs between kinds of jobs is in the methods below.

    A subclass names its `kind`, gives each replicate's configuration and versions, and trains; the other methods have
    a default.

    Attributes:
        replicates: what to train.
        baselines: steps of the baseline by seed, where they are known; for a baseline that failed, the reason.
        device: "cpu", "cuda", ...
        engine: how replicates are stacked; one of ENGINES.
        folder: the results folder.
        parameters: numbers of parameters by convention, for the record.
        preset: name that the settings started from, for the record.
        keep_models: whether the weights of every replicate are kept beside its record.
        checkpoints: whether trainings leave checkpoints in the results folder and go on from them, so that what was
            killed loses seconds; a kind whose trainer does so has True as its default.
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

    kind: ClassVar[str]
    trainer: ClassVar[str] = ""  # "module:function" of (job, report), for `train`

    def __post_init__(self) -> None:
        check_engine(self.engine, self.device)
        if not self.trainer and type(self).train is Job.train:
            raise TypeError(f"{type(self).__name__} has neither a method `train` nor a `trainer`.")

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the row: of the model, with its side."""

    @property
    def short_name(self) -> str:
        """The same where the side is clear."""
        return self.name

    @property
    def side(self) -> str:
        """What is trained: "sender", "receiver", "pair" or another word. Tables group rows by it."""
        return self.kind

    @property
    def measure(self) -> str:
        """What `value` is in tables."""
        return "accuracy"

    @property
    def facts(self) -> dict[str, str]:
        """What rows of one name may differ in."""
        config = self.config(self._any_replicate)
        return {name: str(value) for name, value in config.items() if name not in IDENTITY}

    @property
    def entries(self) -> list[Entry]:
        """Registry entries that it needs where it is trained."""
        return [registry.get(self.kind, JOB)]

    @abstractmethod
    def config(self, replicate: Replicate) -> dict[str, Any]:
        """Return all choices that can change the numbers of a replicate: `model`, `grammar`, `seed` and others."""

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Return the versions of the parts that determine the numbers."""
        return {self.kind: registry.get(self.kind, JOB).full_version}

    def parts(self, replicate: Replicate) -> dict[Part, str]:
        """Return the versions of `versions`, each by what it is the version of."""
        about = {"kind": self.kind, "side": self.side, "versions": self.versions(replicate)}
        found = versions_of({**self.config(replicate), **about})
        return {part: version for part, version in found.items() if version is not None}

    def key(self, replicate: Replicate) -> str:
        """Return the name that the result of a replicate is filed under."""
        return record_key(self.config(replicate), self.versions(replicate))

    @property
    def row(self) -> RowKey:
        """What tells this job's row from the others of a plan."""
        return job_kind(self.kind).row_key(self.config(self._any_replicate))

    @property
    def _any_replicate(self) -> Replicate:
        return Replicate(self.replicates[0].condition if self.replicates else "", 0)

    def check_config(self) -> None:
        """Check that the configuration can be filed: it names model, grammar and seed, and uses no name of a result.

        Raises:
            IcyError: it cannot.
        """
        config = self.config(self._any_replicate)
        if missing := [name for name in IDENTITY[:3] if name not in config]:
            raise IcyError(f"The configuration of a job of kind '{self.kind}' lacks {listed(missing)}.")
        if wrong := sorted(RESERVED & set(config)):
            raise IcyError(f"The configuration of a job of kind '{self.kind}' cannot hold {listed(wrong)}.")
        if (fault := config_fault(config)) is not None:
            raise InvalidSettingError(f"The configuration of a job of kind '{self.kind}' cannot be filed: {fault}.")

    # -- training ----------------------------------------------------------------------------------------------------

    def train(self, report: Report | None = None) -> Iterator[Outcome]:
        """Train the replicates; yield each when it ends. `report` gets the readings of every evaluation."""
        train = cast("Callable[[Job, Report | None], Iterator[Outcome]]", load_object(self.trainer))
        return train(self, report)

    def for_travel(self) -> Job:
        """Return the job as another machine needs it, where nobody would find its checkpoints."""
        return replace(self, checkpoints=False) if self.checkpoints else self

    def joined(self, other: Job) -> Self:
        """Return the job with the replicates of another of the same row too."""
        return replace(self, replicates=tuple(dict.fromkeys((*self.replicates, *other.replicates))))

    def remarks(self) -> list[str]:
        """Return warnings about the results to expect, shown once before training."""
        return []

    def own_files(self, replicate: Replicate) -> Mapping[str, bytes]:
        """Return files to keep with a replicate's record, besides its outcome's, by path in the results folder."""
        return {}

    def is_baseline(self, replicate: Replicate) -> bool:
        """Whether the other replicates of its seed are measured relative to this one, and need its steps."""
        return False

    def baselines_in(self, records: Iterable[Record]) -> dict[int, float | str]:
        """Return the steps of the baseline by seed, as far as they are among records; for one that failed, why."""
        # A pair may fail in the game, after its pre-training gave the steps.
        return {r["seed"]: _steps_or_reason(r) for r in records if self.is_baseline(Replicate(r["grammar"], r["seed"]))}

    def length(self, baseline: float | None) -> int | None:
        """Return the most updates of a replicate, given the baseline's at the same seed; None if not known."""
        return None

    # -- cost --------------------------------------------------------------------------------------------------------

    @property
    def update_cost(self) -> float:
        """Relative cost of one update of one replicate; orders the rows of a plan."""
        return float(self.parameters.get("true", 1))

    def work(self) -> Work | None:
        """Return what an update of one replicate consists of, in any unit; None where only timing tells."""
        return Work(0.0, self.update_cost, 0.0, self.update_cost)

    def rehearse(self, updates: int) -> float:
        """Return the seconds of one update of all replicates: those between two evaluations. Nothing is kept."""
        seen: list[tuple[float, list[Reading]]] = []

        def report(readings: list[Reading]) -> None:
            seen.append((time.perf_counter(), readings))
            if len(seen) == 2:
                raise _Enough

        with contextlib.suppress(_Enough):
            for _ in replace(self, checkpoints=False).train(report):
                pass
        if len(seen) < 2:
            return math.nan
        (began, first), (ended, last) = seen
        steps = max(r.steps for r in last) - max(r.steps for r in first)
        together = len({r.replicate for r in last})  # of those that are trained one after another, one
        return (ended - began) / steps * len(self.replicates) / together if steps > 0 else math.nan

    @property
    def rehearsal(self) -> Job:
        """The job that is rehearsed in its place for an estimate: with baselines, as it may need them."""
        return replace(self, baselines={r.seed: 1 for r in self.replicates})

    @property
    def alike(self) -> str:
        """What jobs have in common whose updates cost the same; the default tells all rows apart."""
        return f"{self.row} {self.engine} {len(self.replicates)}"

    def expected_steps(self, baseline: float | None) -> ExpectedSteps:
        """Return how many updates replicates may take, given the mean of the baselines on file, if there are any."""
        own = self.length(None if baseline is None else round(baseline))
        return ExpectedSteps(ASSUMED_STEPS if own is None else own, baseline is not None)

    # -- words -------------------------------------------------------------------------------------------------------

    def phase_text(self, phase: str) -> str | None:
        """Return what a phase of the training is called; None for the one whose length `length` knows."""
        return phase or None

    def waiting_text(self) -> str:
        """Return what it is doing while its length is not known."""
        return "training"

    def limit_text(self) -> str:
        """Return the word before the time left: "at most" where a replicate may end early."""
        return "about"

    def estimate_text(self, steps: str) -> str:
        """Return what an estimate rests on, given the steps that it supposes."""
        return f"This is an estimate for {steps} updates of every replicate."

    def conditions_text(self) -> str | None:
        """Return a sentence on what its replicates are trained on, if it says more than the row's name."""
        return None

    def summary(self, record: Record) -> str:
        """Return the result of a replicate in a few words."""
        return f"{record['measure']} {value_of(record):.3f} after {counted(record['steps'], 'step')}"

    def explain(self, outcome: Outcome) -> str:
        """Return why a replicate failed, in a sentence."""
        known = {
            "no_baseline": "the baseline failed at this seed, so there is nothing to compare with",
            "diverged": "the loss is no longer a finite number",
        }
        return outcome.error or known.get(outcome.reason, outcome.reason)

    # -- records -----------------------------------------------------------------------------------------------------

    def record(self, outcome: Outcome) -> Record:
        """Return the record of a replicate that ended."""
        return self._record(
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

    def model_file(self, replicate: Replicate) -> str:
        """Return the path of a replicate's kept model in the results folder."""
        return f"{MODELS}/{self.key(replicate)}.safetensors"

    def failure(self, replicate: Replicate, error: BaseException) -> Record:
        """Return the record of a replicate that raised."""
        sentence = what_and_where(error)
        trace = "".join(traceback.format_exception(error))
        outside = out_of_memory(error) or isinstance(error, SurroundingsError)
        reason = INTERRUPTED if outside else "error"
        return self._record(replicate, failed=True, reason=reason, error=sentence, traceback=trace)

    def _record(self, replicate: Replicate, extra: Mapping[str, Any] | None = None, **result: Any) -> Record:
        kind, config, extra = job_kind(self.kind), self.config(replicate), extra or {}
        if wrong := sorted(({*RESERVED, "steps"} - set(kind.measures)) & set(extra)):
            raise IcyError(f"A result of a job of kind '{self.kind}' cannot hold {listed(wrong)} beside the outcome.")
        for name in kind.measures:
            if not isinstance(extra.get(name), (Number, type(None))):
                raise IcyError(f"The measure '{name}' of a job of kind '{self.kind}' is a number, not {extra[name]!r}.")
        points = {} if kind.curve == STEPS_AND_ACCURACY else {"points": list(kind.curve)}
        record = {
            "key": self.key(replicate),
            **{name: value for name, value in config.items() if name not in ("settings", "options")},
            "kind": self.kind,
            "side": self.side,
            "measure": self.measure,
            "preset": self.preset,
            "parameters": dict(self.parameters),
            **result,
            **extra,
            **({"measures": kind.own_measures} if kind.own_measures else {}),
            **points,
            "config": config,
            "versions": {**software(), **self.versions(replicate)},
            "git": git_revision(),
            "device": self.device,
            "device_name": device_name(self.device),
            "finished": now(),
        }
        return cast(Record, as_json(record))


def check_engine(engine: str, device: str) -> None:
    """Check the name of an engine.

    Raises:
        UnknownNameError: no such engine.
        InvalidSettingError: a CUDA graph without a GPU, native cores where there are none, or a variant of them that
            this processor does not run.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if engine.endswith("+graph") and device == "cpu":
        raise InvalidSettingError("Updates can be captured as a graph only on a GPU; leave out '+graph'.")
    why_not = native.why_not(CORES) if device == "cpu" else "they run on the CPU only" if device == "cuda" else None
    if engine == "native" and why_not is not None:
        raise InvalidSettingError(f"There are no native cores here ({why_not}); choose another engine, or 'auto'.")


def _steps_or_reason(record: Record) -> float | str:
    """Return the steps that a baseline gives the others of its seed, or why it gives none."""
    steps: float | None = record.get("baseline_crossing")
    steps = record.get("baseline_steps") if steps is None else steps
    if steps is None and not record["failed"]:
        steps = record["steps"]
    return record["reason"] if steps is None else steps


@dataclass(frozen=True)
class ExpectedSteps:
    """How many updates replicates may take.

    Attributes:
        steps: of the baseline, or of every replicate where there is none.
        known: whether results on file say so.
        cap: the longest another replicate is trained, as a multiple of these.
        apart: whether baselines are trained for as long as `steps`, and others up to the cap.
    """

    steps: float
    known: bool
    cap: float = 1
    apart: bool = False


class _Enough(BaseException):  # no Exception: a `train` that catches those lets it pass
    """Two evaluations have been made."""
