"""Jobs: replicates of one row that are trained in one process, the readings and outcomes they give, and their records.

`Job` is all that planning, the store, runners, displays and trackers know of what they run. A subclass says what is
trained: `icy.training.probe_job.ProbeJob` one model alone, `icy.training.pairs.job.PairJob` a sender and a receiver.
"""

from __future__ import annotations

import contextlib
import math
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from icy.config.protocols import BASELINE
from icy.config.settings import ENGINES
from icy.core.errors import InvalidSettingError, unknown, what_and_where
from icy.core.lazy import load_object
from icy.core.provenance import device_name, git_revision, now, software
from icy.core.registry import Entry
from icy.records.kinds import RowKey, job_kind
from icy.records.record import FAILURES, Record, record_key, value_of

Report = Callable[[list["Reading"]], None]
ASSUMED_STEPS = 500  # of a baseline, in estimates, where none is on file


@dataclass(frozen=True, order=True)
class Replicate:
    """One model of a stack: a grammar at a seed. In other kinds of jobs `grammar` names a condition of theirs."""

    grammar: str
    seed: int


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
        baseline_steps: the baseline's steps at the same seed, if it reached the target.
        extra: further measures, by their names in the record.
        files: files to keep with the record, by their path in the results folder.
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
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether there is no result."""
        return self.reason in FAILURES


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
    """

    replicates: tuple[Replicate, ...] = ()
    baselines: Mapping[int, int | str] = field(default_factory=dict)
    device: str = "cpu"
    engine: str = "auto"
    folder: str = "."
    parameters: Mapping[str, int] = field(default_factory=dict)
    preset: str = "default"

    kind: ClassVar[str]
    trainer: ClassVar[str] = ""  # "module:function" of (job, report), for `train`

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise unknown("engine", self.engine, ENGINES)
        if self.engine.endswith("+graph") and self.device == "cpu":
            raise InvalidSettingError("Updates can be captured as a graph only on a GPU; leave out '+graph'.")

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
        return {}

    @property
    def entries(self) -> list[Entry]:
        """Registry entries that it needs where it is trained."""
        return []

    @abstractmethod
    def config(self, replicate: Replicate) -> dict[str, Any]:
        """Return all choices that can change the numbers of a replicate: `model`, `grammar`, `seed` and others."""

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Return the versions of the parts that determine the numbers."""
        return {self.kind: str(job_kind(self.kind).version)}

    def key(self, replicate: Replicate) -> str:
        """Return the name that the result of a replicate is filed under."""
        return record_key(self.config(replicate), self.versions(replicate))

    @property
    def row(self) -> RowKey:
        """What tells this job's row from the others of a plan."""
        any_replicate = Replicate(self.replicates[0].grammar if self.replicates else BASELINE, 0)
        return job_kind(self.kind).row_key(self.config(any_replicate))

    # -- training ----------------------------------------------------------------------------------------------------

    def train(self, report: Report | None = None) -> Iterator[Outcome]:
        """Train the replicates; yield each when it ends. `report` gets the readings of every evaluation."""
        train = cast("Callable[[Job, Report | None], Iterator[Outcome]]", load_object(self.trainer))
        return train(self, report)

    def is_baseline(self, replicate: Replicate) -> bool:
        """Whether the other replicates of its seed are measured relative to this one, and need its steps."""
        return False

    def baselines_in(self, records: Iterable[Record]) -> dict[int, int | str]:
        """Return the steps of the baseline by seed, as far as they are among records; for one that failed, why."""
        # A pair may fail in the game, after its pre-training gave the steps.
        return {
            r["seed"]: r["reason"] if (steps := r.get("baseline_steps")) is None else steps
            for r in records
            if self.is_baseline(Replicate(r["grammar"], r["seed"]))
        }

    def length(self, baseline: int | None) -> int | None:
        """Return the most updates of a replicate, given the baseline's at the same seed; None if not known."""
        return None

    # -- cost --------------------------------------------------------------------------------------------------------

    @property
    def update_cost(self) -> float:
        """Relative cost of one update of one replicate; orders the rows of a plan."""
        return float(self.parameters.get("true", 1))

    def rehearse(self, updates: int) -> float:
        """Train some updates, keep nothing, and return the seconds that one took: those between two evaluations."""
        seen: list[tuple[float, int]] = []

        def report(readings: list[Reading]) -> None:
            seen.append((time.perf_counter(), max(r.steps for r in readings)))
            if len(seen) == 2:
                raise _EnoughError

        with contextlib.suppress(_EnoughError):
            for _ in self.train(report):
                pass
        if len(seen) < 2 or seen[1][1] == seen[0][1]:
            return math.nan
        (began, first), (ended, last) = seen
        return (ended - began) / (last - first)

    @property
    def rehearsal(self) -> Job:
        """The job that is rehearsed in its place for an estimate."""
        return self

    @property
    def alike(self) -> str:
        """What jobs have in common whose updates cost the same; the default tells all rows apart."""
        return f"{self.row} {self.engine} {len(self.replicates)}"

    def expected_steps(self, baseline: float | None) -> ExpectedSteps:
        """Return how many updates replicates may take, given the mean of the baselines on file, if there are any."""
        return ExpectedSteps(ASSUMED_STEPS, False, 1)

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

    def summary(self, record: Record) -> str:
        """Return the result of a replicate in a few words."""
        return f"{record['measure']} {value_of(record):.3f} after {record['steps']} steps"

    def explain(self, outcome: Outcome) -> str:
        """Return why a replicate failed, in a sentence."""
        return {
            "no_baseline": f"{BASELINE} failed at this seed, so there is nothing to compare with",
            "diverged": "the loss is no longer a finite number",
        }.get(outcome.reason, outcome.reason)

    # -- records -----------------------------------------------------------------------------------------------------

    def record(self, outcome: Outcome) -> Record:
        """Return the record of a replicate that ended."""
        return self._record(
            outcome.replicate,
            failed=outcome.failed,
            reason=outcome.reason,
            error=self.explain(outcome) if outcome.failed else None,
            steps=outcome.steps,
            accuracy=outcome.accuracy if math.isfinite(outcome.accuracy) else None,  # JSON has no word for NaN
            baseline_steps=outcome.baseline_steps,
            curve=[list(point) for point in outcome.curve],  # as JSON gives it back
            engine=outcome.engine,
            seconds=round(outcome.seconds, 2),
            **outcome.extra,
        )

    def failure(self, replicate: Replicate, error: BaseException) -> Record:
        """Return the record of a replicate that raised."""
        sentence = what_and_where(error)
        trace = "".join(traceback.format_exception(error))
        return self._record(replicate, failed=True, reason="error", error=sentence, traceback=trace)

    def _record(self, replicate: Replicate, **result: Any) -> Record:
        config = self.config(replicate)
        record = {
            "key": self.key(replicate),
            **{name: value for name, value in config.items() if name not in ("settings", "options")},
            "kind": self.kind,
            "side": self.side,
            "measure": self.measure,
            "preset": self.preset,
            "parameters": dict(self.parameters),
            **result,
            "config": config,
            "versions": {**software(), **self.versions(replicate)},
            "git": git_revision(),
            "device": self.device,
            "device_name": device_name(self.device),
            "finished": now(),
        }
        return cast(Record, record)


@dataclass(frozen=True)
class ExpectedSteps:
    """How many updates replicates may take.

    Attributes:
        steps: of the baseline, or of every replicate where there is none.
        known: whether results on file say so.
        cap: the longest another replicate is trained, as a multiple of these.
    """

    steps: float
    known: bool
    cap: float


class _EnoughError(Exception):
    """Two evaluations have been made."""
