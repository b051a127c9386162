"""The replicate engine: all grammars and seeds of one model, trained in lockstep as one batched program."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from icy.errors import IncompatibleError, InvalidSettingError
from icy.grammars import make_language
from icy.meanings import MeaningSpace
from icy.models.making import create
from icy.registry import Entry
from icy.representations import get_representation
from icy.streams import stream_key

from .data import Draws
from .learners import Learner, accuracy, make_learner, supervised_loss
from .protocols import BASELINE, Protocol, decide
from .settings import TrainingSettings


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
    """

    entry: Entry
    space: MeaningSpace
    vocab_size: int = 4
    word_length: int = 4
    hidden_size: int = 128
    representation: str = "soft"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def side(self) -> str:
        """ "sender" or "receiver"."""
        return self.entry.kind

    @property
    def message_length(self) -> int:
        """L."""
        return self.space.attributes * self.word_length

    def make_model(self, seed: int, settings: TrainingSettings) -> nn.Module:
        """The model with the initial weights of a seed, the same whatever was drawn before."""
        published = self.entry.published if settings.published_models else {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(stream_key(seed, "weights"))
            return create(
                self.entry,
                self.space,
                self.message_length,
                self.vocab_size,
                self.hidden_size,
                **{"representation": self.representation, **published, **self.options},
            )


@dataclass(frozen=True, order=True)
class Replicate:
    """One model of a stack: a grammar at a seed."""

    grammar: str
    seed: int


@dataclass(frozen=True)
class Reading:
    """What one check of one replicate saw."""

    replicate: Replicate
    steps: int
    accuracy: float


@dataclass
class Outcome:
    """How one replicate ended.

    Attributes:
        replicate: which.
        reason: "target", "cap" or "budget" for a result; "max_steps", "no_baseline" or "diverged" for a failure.
        steps: updates made (or the published count of them).
        accuracy: at the end; NaN if it diverged.
        curve: (steps, accuracy) at every check.
        engine: how the stack was run.
        seconds: this replicate's share of the time its stacks took.
    """

    replicate: Replicate
    reason: str
    steps: int
    accuracy: float
    curve: list[tuple[int, float]]
    engine: str
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether there is no result."""
        return self.reason in ("max_steps", "no_baseline", "diverged")


def train(
    task: Task,
    replicates: Sequence[Replicate],
    protocol: Protocol,
    settings: TrainingSettings,
    device: str = "cpu",
    baselines: Mapping[int, int | str] | None = None,
    report: Callable[[list[Reading]], None] | None = None,
    engine: str = "auto",
) -> Iterator[Outcome]:
    """Train replicates in lockstep; each is yielded when it finishes, and costs nothing from then on.

    Args:
        task: the model and its setting.
        replicates: grammars x seeds. The baseline of each seed must be among them or in `baselines`.
        protocol: when to stop.
        settings: how to train.
        device: "cpu", "cuda", ...
        baselines: steps of the concat runs that are finished already, by seed; a word for one that failed.
        report: called with the readings of every check.
        engine: "auto", "broadcast", "vmap" or "loop".

    Raises:
        InvalidSettingError: a seed has no baseline.
        IncompatibleError: a model whose scores are not of the agreed shape.
    """
    yield from _Run(task, list(replicates), protocol, settings, torch.device(device), dict(baselines or {}), engine).go(
        report
    )


class _Run:
    """The state of one call of `train`."""

    def __init__(
        self,
        task: Task,
        replicates: list[Replicate],
        protocol: Protocol,
        settings: TrainingSettings,
        device: torch.device,
        baselines: dict[int, int | str],
        engine: str,
    ) -> None:
        for seed in {r.seed for r in replicates} - set(baselines):
            if Replicate(BASELINE, seed) not in replicates:
                raise InvalidSettingError(f"Seed {seed} has no run of {BASELINE}, which every other grammar is compared to.")
        self.task, self.protocol, self.settings = task, protocol, settings
        self.active, self.baselines = replicates, baselines
        self.updates = 0
        self.curves: dict[Replicate, list[tuple[int, float]]] = {r: [] for r in replicates}
        self.seconds = dict.fromkeys(replicates, 0.0)
        seeds = [r.seed for r in replicates]
        languages = [
            make_language(r.grammar, task.space, task.vocab_size, task.word_length, r.seed) for r in replicates
        ]
        self.draws = Draws(languages, seeds, device)
        models = {seed: task.make_model(seed, settings) for seed in sorted(set(seeds))}
        inputs, targets = self._batches("check", 0, 1, 2)
        _check_shape(task, models[seeds[0]].to(device), inputs[0, 0], targets[0, 0])
        self.learner: Learner = make_learner(
            [models[s] for s in seeds],
            seeds,
            supervised_loss(get_representation(task.representation), task.side),
            settings,
            device,
            inputs[0],
            engine,
        )

    def _batches(self, purpose: str, first: int, count: int, size: int) -> tuple[Tensor, Tensor]:
        meanings, messages = self.draws.batches(purpose, first, count, size)
        return (meanings, messages) if self.task.side == "sender" else (messages, meanings)

    def go(self, report: Callable[[list[Reading]], None] | None) -> Iterator[Outcome]:
        """Blocks of updates with a check between, until every replicate is finished."""
        next_check = self.settings.first_check
        while self.active:
            started = time.perf_counter()
            self._update(next_check - self.updates)
            readings = self._check()
            share = (time.perf_counter() - started) / len(self.active)
            for r in self.active:
                self.seconds[r] += share
            if report is not None:
                report(readings)
            finished = self._finished(readings)
            if finished:
                yield from self._retire(finished)
            next_check += self.settings.check_every

    def _update(self, count: int) -> None:
        inputs, targets = self._batches("training", self.updates, count, self.settings.batch_size)
        for x, y in zip(inputs, targets, strict=True):
            self.learner.update(x, y)
        self.updates += count

    def _read(self, purpose: str) -> list[float]:
        inputs, targets = self._batches(purpose, self.updates, 1, self.settings.evaluation_size)
        return [float(a) for a in accuracy(self.learner, inputs[0], targets[0])]

    def _check(self) -> list[Reading]:
        steps = self.settings.steps(self.updates)
        readings = [Reading(r, steps, a) for r, a in zip(self.active, self._read("check"), strict=True)]
        for reading in readings:
            self.curves[reading.replicate].append((steps, reading.accuracy))
        return readings

    def _finished(self, readings: list[Reading]) -> dict[Replicate, str]:
        """Which replicates end at this check, and why: the baselines first, since the others depend on them."""
        losses = self.learner.losses()
        diverged = [False] * len(readings) if losses is None else (~torch.isfinite(losses)).tolist()
        finished: dict[Replicate, str] = {}
        for i, reading in sorted(enumerate(readings), key=lambda item: item[1].replicate.grammar != BASELINE):
            replicate = reading.replicate
            reason = "diverged" if diverged[i] else self._verdict(reading)
            if reason is not None:
                finished[replicate] = reason
                if replicate.grammar == BASELINE:
                    self.baselines[replicate.seed] = reading.steps if reason == "target" else reason
        return finished

    def _verdict(self, reading: Reading) -> str | None:
        replicate = reading.replicate
        baseline = self.baselines.get(replicate.seed)
        return decide(
            self.protocol, replicate.grammar, reading.accuracy, reading.steps, baseline, self.settings.max_steps
        )

    def _retire(self, finished: dict[Replicate, str]) -> Iterator[Outcome]:
        readings = self._read("report") if self.settings.fresh_reading else [self.curves[r][-1][1] for r in self.active]
        steps = self.settings.steps(self.updates)
        ended = []
        for replicate, reading in zip(self.active, readings, strict=True):
            if replicate in finished:
                reason = finished[replicate]
                final = math.nan if reason == "diverged" else reading
                curve, seconds = self.curves.pop(replicate), self.seconds.pop(replicate)
                ended.append(Outcome(replicate, reason, steps, final, curve, self.learner.engine, seconds))
        staying = [i for i, r in enumerate(self.active) if r not in finished]
        self.active = [self.active[i] for i in staying]
        if staying:
            self.learner.keep(staying)
            self.draws.keep(staying)
        yield from ended


def _check_shape(task: Task, model: nn.Module, inputs: Tensor, targets: Tensor) -> None:
    """Stop at once, with a sentence, if a model does not put out what its side must."""
    choices = task.vocab_size + 1 if task.side == "sender" else task.space.values
    expected = (*targets.shape, choices)
    was_training = model.training
    with torch.no_grad():
        found = tuple(model.eval()(inputs).shape)
    model.train(was_training)
    if found != expected:
        raise IncompatibleError(
            f"{task.entry.qualified} puts out scores of shape {found} for a batch of {len(inputs)}; "
            f"a {task.side} must put out {expected}."
        )
