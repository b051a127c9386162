"""What is trained: a task, its replicates, the job that holds them, and the record each leaves."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from icy.config.protocols import BASELINE, Protocol
from icy.config.settings import ENGINES, TrainingSettings
from icy.core.errors import InvalidSettingError, unknown, what_and_where
from icy.core.provenance import device_name, git_revision, now, software
from icy.core.registry import Entry
from icy.grammars import grammar_version
from icy.languages.meanings import MeaningSpace
from icy.languages.splits import Split
from icy.records.record import FAILURES, Record, RowKey, _row_key, record_key

Report = Callable[[list["Reading"]], None]


@dataclass(frozen=True)
class Task:
    """What one row trains: a model, over a space, in a representation.

    Attributes:
        entry: the model's registry entry.
        space: the meanings.
        vocab_size: V.
        word_length: w; a message has A*w tokens.
        hidden_size: E.
        representation: its name.
        options: further arguments of the model.
        paired: whether it is one of a pair, whose sides must not start from the same random numbers.
    """

    entry: Entry
    space: MeaningSpace
    vocab_size: int = 4
    word_length: int = 4
    hidden_size: int = 128
    representation: str = "soft"
    options: Mapping[str, Any] = field(default_factory=dict)
    paired: bool = False

    @property
    def side(self) -> str:
        """ "sender" or "receiver"."""
        return self.entry.kind

    @property
    def message_length(self) -> int:
        """L."""
        return self.space.attributes * self.word_length


@dataclass(frozen=True, order=True)
class Replicate:
    """One model of a stack: a grammar at a seed."""

    grammar: str
    seed: int


@dataclass(frozen=True)
class Reading:
    """What one check of one replicate saw; `phase` says which part of a training in several parts it was."""

    replicate: Replicate
    steps: int
    accuracy: float
    phase: str = ""


@dataclass
class Outcome:
    """How one replicate ended.

    Attributes:
        replicate: which.
        reason: "target", "cap", "budget" or, of a game, "steps" for a result; for a failure one of FAILURES.
        steps: updates made (or the published count of them).
        accuracy: at the end; NaN if it diverged.
        curve: (steps, accuracy) at every check.
        engine: how the stack was run.
        seconds: this replicate's share of the time its stacks took.
        baseline_steps: concat's steps at the same seed, if it reached the target.
        extra: further measures, by their names in the record.
    """

    replicate: Replicate
    reason: str
    steps: int
    accuracy: float
    curve: list[tuple[int, float]]
    engine: str
    seconds: float
    baseline_steps: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether there is no result."""
        return self.reason in FAILURES


@dataclass(frozen=True)
class Job:
    """Replicates of one row, for one process.

    Attributes:
        task: the model and its setting.
        protocol: when to stop, and what is measured.
        settings: how to train.
        replicates: what to train.
        baselines: concat's steps by seed, where they are known already; for one that failed, the reason.
        device: "cpu", "cuda", ...
        engine: "auto", "broadcast", "vmap" or "loop".
        folder: the results folder.
        parameters: the model's number of parameters by convention, for the record.
        preset: the name that the settings started from, for the record.
        split: which meanings are held out, where the protocol holds out any.
    """

    task: Task
    protocol: Protocol
    settings: TrainingSettings
    replicates: tuple[Replicate, ...]
    baselines: Mapping[int, int | str] = field(default_factory=dict)
    device: str = "cpu"
    engine: str = "auto"
    folder: str = "."
    parameters: Mapping[str, int] = field(default_factory=dict)
    preset: str = "default"
    split: Split | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise unknown("engine", self.engine, ENGINES)
        if self.engine.endswith("+graph") and self.device == "cpu":
            raise InvalidSettingError("Updates can be captured as a graph only on a GPU; leave out '+graph'.")
        if self.protocol.holds_out != (self.split is not None):
            needs = "needs a split" if self.split is None else "holds out no meanings and takes no split"
            raise InvalidSettingError(f"The protocol '{self.protocol.name}' {needs}.")

    @property
    def row(self) -> RowKey:
        """What tells this job's row from the others of a plan."""
        any_replicate = Replicate(self.replicates[0].grammar if self.replicates else BASELINE, 0)
        return _row_key(self.config(any_replicate), paired=self.task.side == "pair")

    def config(self, replicate: Replicate) -> dict[str, Any]:
        """Everything the user chose that can move the numbers of a replicate."""
        return {
            **self.setting(replicate),
            "protocol": self.protocol.name,
            "target": self.protocol.target,
            "cap": self.protocol.cap,
            **({"held_out": self.split.share, "split": self.split.kind} if self.split else {}),
            "settings": self.settings.under(self.task.representation),
        }

    def setting(self, replicate: Replicate) -> dict[str, Any]:
        """What is trained, on what: the part of the configuration that every kind of job has."""
        task = self.task
        return {
            "model": task.entry.qualified,
            "options": dict(task.options),
            "grammar": replicate.grammar,
            "seed": replicate.seed,
            "meanings": str(task.space),
            "vocab_size": task.vocab_size,
            "word_length": task.word_length,
            "hidden_size": task.hidden_size,
            "representation": task.representation,
        }

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Versions of the parts of icy, or of a plug-in, that determine the numbers."""
        return {
            "model": self.task.entry.full_version,
            "grammar": grammar_version(replicate.grammar),
            "protocol": str(self.protocol.version),
        }

    def length(self, baseline: int | None) -> int | None:
        """The most updates of a replicate, given concat's at the same seed; None while that is not known."""
        return None if baseline is None else self.protocol.limit(baseline)

    def train(self, report: Report | None = None) -> Iterator[Outcome]:
        """Train the replicates in lockstep; each is yielded when it ends. `report` gets the readings of every check."""
        from .engine import train  # imports torch

        return train(self, report)

    def key(self, replicate: Replicate) -> str:
        """What the result of a replicate is filed under."""
        return record_key(self.config(replicate), self.versions(replicate))

    def record(self, outcome: Outcome) -> Record:
        """The full record of a replicate that ended."""
        return self._record(
            outcome.replicate,
            failed=outcome.failed,
            reason=outcome.reason,
            error=self._explain(outcome) if outcome.failed else None,
            steps=outcome.steps,
            accuracy=outcome.accuracy if math.isfinite(outcome.accuracy) else None,  # JSON has no word for NaN
            baseline_steps=outcome.baseline_steps,
            curve=[list(point) for point in outcome.curve],  # as JSON gives it back
            engine=outcome.engine,
            seconds=round(outcome.seconds, 2),
            **outcome.extra,
        )

    def failure(self, replicate: Replicate, error: BaseException) -> Record:
        """The record of a replicate that raised."""
        sentence = what_and_where(error)
        trace = "".join(traceback.format_exception(error))
        return self._record(replicate, failed=True, reason="error", error=sentence, traceback=trace)

    def _explain(self, outcome: Outcome) -> str:
        return {
            "max_steps": f"concat did not reach {self.protocol.target} within {self.settings.max_steps} updates",
            "no_baseline": "concat failed at this seed, so there is nothing to compare with",
            "diverged": "the loss is no longer a finite number",
        }[outcome.reason]

    def _record(self, replicate: Replicate, **result: Any) -> Record:
        config = self.config(replicate)
        return {
            "key": self.key(replicate),
            **{name: value for name, value in config.items() if name not in ("settings", "options")},
            "side": self.task.side,
            "measure": self.protocol.measure,
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
