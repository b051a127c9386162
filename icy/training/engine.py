"""The replicate engine: all grammars and seeds of one model, trained in lockstep as one batched program."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from icy.config.protocols import BASELINE, decide, reached_at
from icy.core import gpu
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.representations.samples import UNCOUNTED, counted
from icy.core.types import State
from icy.records.record import FAILURES
from icy.training.language_job import LanguageJob
from icy.training.probe_settings import ProbeSettings

from .batches import EQUALLY, Batches
from .job import Outcome, Reading, Replicate
from .learners import Learner, accuracy, make_learner, supervised_loss, warn_of_probabilities
from .lockstep import Checkpoints, Lockstep, in_groups
from .native import NativeLearner
from .stack import WARM_UP
from .task_models import make_model, representation_of
from .weights import pack_weights

RESUMED = ("curves", "seconds", "reached", "right")  # attributes of `Run` by replicate, saved in checkpoints


def train(job: LanguageJob, report: Callable[[list[Reading]], None] | None = None) -> Iterator[Outcome]:
    """Train a job's replicates in lockstep; yield each when it finishes, and remove it from the stack.

    Replicates with checkpoints of different steps are trained as separate stacks.

    Args:
        job: the job. The baseline of each seed must be among its replicates or its baselines.
        report: called with the readings of every check.

    Raises:
        InvalidSettingError: a seed has no baseline.
        IncompatibleError: the scores of a model have the wrong shape.
    """
    yield from in_groups(job, lambda part, checkpoints: Run(part, checkpoints).go(report))


def rehearse(job: LanguageJob, updates: int) -> float:
    """Time some updates of a job's whole stack, and discard the results; see `Run.seconds_of_update`."""
    return Run(replace(job, baselines={r.seed: 1 for r in job.replicates})).seconds_of_update(updates)


class Run(Lockstep):
    """Trains a stack of replicates, from the beginning or from checkpoints, until all are finished.

    Args:
        job: the job. Checkpoints of its replicates, if there are any, are after the same update.
        checkpoints: the checkpoints to save and to resume from; by default none.
    """

    needs_baseline = True

    def __init__(self, job: LanguageJob, checkpoints: Checkpoints | None = None) -> None:
        super().__init__(checkpoints)
        gpu.make_current(job.device)
        self.job, self.task, self.protocol, self.settings = job, job.settings, job.settings.rules, job.training
        replicates = list(job.replicates)
        self.active, self.baselines = replicates, dict(job.baselines)
        for seed in {r.seed for r in replicates} - set(self.baselines) if self.needs_baseline else ():
            if Replicate(BASELINE, seed) not in replicates:
                raise InvalidSettingError(f"Seed {seed} has no run of {BASELINE}, the baseline of all other grammars.")
        self.averages = self.settings.training_readings and self.needs_baseline  # not in pre-training or in chains
        self.checked = 0  # updates at the last check
        self.reached: dict[Replicate, float] = {}  # updates at which replicates reached the target
        self.curves: dict[Replicate, list[tuple[int, float]]] = {r: [] for r in replicates}
        self.seconds = dict.fromkeys(replicates, 0.0)
        self.right: dict[Replicate, float] = {}  # sums of accuracies on training batches since the last check
        self.early: list[Outcome] = []  # outcomes that wait for their baseline
        self.draws = Batches(
            [job.language(r) for r in replicates],
            [r.seed for r in replicates],
            torch.device(job.device),
            job.settings.held_out_meanings,
            job.frequencies,
        )
        self._resume()

    def _make_learner(self) -> Learner:
        task, settings, device = self.task, self.settings, torch.device(self.job.device)
        seeds = [r.seed for r in self.active]
        models = {seed: make_model(task, seed, settings) for seed in sorted(set(seeds))}
        inputs, targets = self._batches("check", 0, 1, 2)
        _check_shape(task, models[seeds[0]].to(device), inputs[0, 0], targets[0, 0])
        return make_learner(
            [models[s] for s in seeds],
            seeds,
            supervised_loss(representation_of(task, settings), task.side, bool(task.word_lengths)),
            settings,
            device,
            inputs[0],
            self.job.engine,
        )

    def _batches(
        self, purpose: str, first: int, count: int, size: int, which: list[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        meanings, messages = self.draws.batches(purpose, first, count, size, which)
        return (meanings, messages) if self.task.side == "sender" else (messages, meanings)

    def go(self, report: Callable[[list[Reading]], None] | None) -> Iterator[Outcome]:
        """Train blocks of updates with an evaluation after each, until every replicate is finished."""
        while self.active:
            self.advance(self.settings.next_check(self.checked))
            with self.timed():
                readings = self._check()
            if report is not None:
                report(readings)
            finished = self._finished(readings)
            if finished:
                yield from self._retire(finished)
            self.save_if_due()

    def rehearse(self, updates: int, look: bool = True) -> None:
        """Train some updates and, if `look` is true, evaluate. No replicate ends, even at its target."""
        self.advance(self.updates + updates)
        if look:
            self._check()

    def seconds_of_update(self, updates: int) -> float:
        """Time some updates of the stack, which cannot be trained afterwards.

        Args:
            updates: number of timed updates. As many updates run before them, because the first updates are slower.

        Returns:
            Seconds for one update of the stack.
        """
        device = self.job.device
        self.rehearse(updates)
        if device != "cpu":
            self.rehearse(WARM_UP + 1)  # captures an update
        gpu.wait(device)
        started = time.perf_counter()
        self.rehearse(updates, look=False)
        gpu.wait(device)
        return (time.perf_counter() - started) / updates

    def _few(self) -> int:
        return 1 if self.averages else super()._few()

    def _update(self, count: int) -> None:
        if self.averages:
            for r, accuracy in zip(self.active, self._read("training", self.settings.batch_size), strict=True):
                self.right[r] = self.right.get(r, 0.0) + accuracy
        which = "training", self.updates, count, self.settings.batch_size
        noise, drawing = self.draws.noise(self.updates, count), self.draws.drawing(*which)
        if drawing is not None and isinstance(self.learner, NativeLearner):
            self.learner.train_on_draws(drawing, noise, self.task.side == "sender")
        else:
            self.learner.train(*self._batches(*which), noise)
        self.updates += count

    def _share(self, seconds: float) -> None:
        for r in self.active:
            self.seconds[r] += seconds / len(self.active)

    def _read(self, purpose: str, size: int, which: list[int] | None = None) -> list[float]:
        one_batch = purpose, self.updates, 1, size, which
        masked = bool(self.task.word_lengths) and self.task.side == "sender"
        drawing = None if masked else self.draws.drawing(*one_batch)
        if drawing is not None and isinstance(self.learner, NativeLearner):
            right = self.learner.right_of_draws(drawing, self.task.side == "sender", which)
            places = self.task.message_length if self.task.side == "sender" else self.task.space.attributes
            found = right.double() / (size * places)
        else:
            inputs, targets = self._batches(*one_batch)
            if masked:
                targets = targets.masked_fill(~counted(targets, self.task.vocab_size), UNCOUNTED)
            found = accuracy(self.learner, inputs[0], targets[0], which)
        readings: list[float] = found.tolist()
        return readings

    def _check(self) -> list[Reading]:
        steps, size = self.settings.steps(self.updates), self.settings.check_size(self.updates)
        if self.averages:
            found = [self.right.pop(r) / (self.updates - self.checked) for r in self.active]
        else:
            found = self._read("check", size)
        readings = [Reading(r, steps, a) for r, a in zip(self.active, found, strict=True)]
        for reading in readings:
            self.curves[reading.replicate].append((steps, reading.accuracy))
        self.checked = self.updates
        return readings

    def _finished(self, readings: list[Reading]) -> dict[Replicate, str]:
        """Return the replicates that end now, with reasons; baselines first, because the others depend on baselines."""
        losses = self.learner.losses()
        diverged = [False] * len(readings) if losses is None else (~torch.isfinite(losses)).tolist()
        finished: dict[Replicate, str] = {}
        for i, reading in sorted(enumerate(readings), key=lambda item: item[1].replicate.condition != BASELINE):
            replicate = reading.replicate
            if (reached := self._reached(reading)) is not None:
                self.reached[replicate] = reached
            reason = "diverged" if diverged[i] else self._verdict(reading, reached)
            if reason is not None:
                finished[replicate] = reason
                if replicate.condition == BASELINE:
                    self.baselines[replicate.seed] = self.reached[replicate] if reason == "target" else reason
        return finished

    def _verdict(self, reading: Reading, reached: float | None) -> str | None:
        replicate = reading.replicate
        baseline = self.baselines.get(replicate.seed)
        limits = baseline, self.settings.max_steps, self.settings.clock
        return decide(self.protocol, replicate.condition, reached, reading.steps, *limits)

    def _reached(self, reading: Reading) -> float | None:
        """Return the updates at which a replicate first reached the target; on a fixed grid, those of a check."""
        if reading.replicate in self.reached:
            return self.reached[reading.replicate]
        curve = self.curves[reading.replicate]
        before = curve[-2] if self.settings.interpolates and len(curve) > 1 else None
        return reached_at(self.protocol.target, before, (reading.steps, reading.accuracy))

    def _retire(self, finished: dict[Replicate, str]) -> Iterator[Outcome]:
        places = [i for i, r in enumerate(self.active) if r in finished]
        steps = self.settings.steps(self.updates)
        ended = [
            self._outcome(self.active[i], finished[self.active[i]], steps, **values)
            for i, values in zip(places, self._measure(places), strict=True)
        ]
        staying = [i for i, r in enumerate(self.active) if r not in finished]
        self.active = [self.active[i] for i in staying]
        if staying:
            self.learner.keep(staying)
            self.draws.keep(staying)
        yield from self._compared(ended)

    def _measure(self, places: list[int]) -> list[dict[str, float]]:
        """Return the measured values for the records of some replicates, on held-out meanings if there are any."""
        size = self.settings.evaluation_size
        stopping = None if self.settings.fresh_reading else [self.curves[self.active[i]][-1][1] for i in places]
        if not self.protocol.holds_out:
            read = {"accuracy": stopping or self._read("report", size, places)}
        else:
            trained = stopping or self._read("report on training", size, places)
            read = {"accuracy": self._read("report", size, places), "train_accuracy": trained}
        if self.job.frequencies is not None:
            read["unweighted_accuracy"] = self._read(EQUALLY, size, places)
        return [dict(zip(read, of_one, strict=True)) for of_one in zip(*read.values(), strict=True)]

    def _outcome(self, replicate: Replicate, reason: str, steps: int, accuracy: float, **extra: float) -> Outcome:
        curve, seconds = self.curves.pop(replicate), self.seconds.pop(replicate)
        if reason == "diverged":
            accuracy, extra = math.nan, {}
        # With interpolation or a budget, training continues beyond the crossing.
        between = self.settings.interpolates or self.protocol.max_updates is not None
        crossing = self.reached.get(replicate) if reason == "target" and between else None
        files = {}
        if self.job.keep_models and reason not in FAILURES:
            weights = self.learner.weights(self.active.index(replicate))
            files[self.job.model_file(replicate)] = pack_weights(weights)
        return Outcome(
            *(replicate, reason, steps, accuracy, curve, self.learner.engine, seconds),
            extra=extra,
            files=files,
            crossing=crossing,
        )

    def _compared(self, ended: list[Outcome]) -> Iterator[Outcome]:
        """Yield outcomes with the updates of their baselines; hold outcomes until their baseline has ended."""
        if not self.needs_baseline:
            yield from ended
            return
        waiting, self.early = [*self.early, *ended], []
        for outcome in waiting:
            baseline = self.baselines.get(outcome.replicate.seed)
            if isinstance(baseline, str):
                # After its baseline failed, a record must not depend on whether that was trained in the same stack or
                # was on file, so it has no results of the replicate's training.
                replicate, about = outcome.replicate, ((), outcome.engine, outcome.seconds)
                is_baseline = replicate.condition == BASELINE
                yield outcome if is_baseline else Outcome(replicate, "no_baseline", 0, math.nan, *about)
            elif baseline is None:
                self.early.append(outcome)
            elif self.settings.interpolates:
                steps = self.settings.checks_around(baseline)[1]
                yield replace(outcome, baseline_steps=steps, baseline_crossing=baseline)
            else:
                yield replace(outcome, baseline_steps=int(baseline))

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def _own(self) -> dict[Replicate, State]:
        return {r: {"checked": self.checked, **{n: getattr(self, n).get(r) for n in RESUMED}} for r in self.active}

    def _resume(self) -> None:
        """Make the learner, and resume from checkpoints if there are any."""
        names = "checked", *RESUMED
        self.learner, self.updates, owns = self.checkpoints.resumed(self.active, self._make_learner, names)
        for replicate, own in zip(self.active, owns, strict=bool(owns)):
            self.checked = own["checked"]
            for name in RESUMED:
                if own[name] is not None:
                    getattr(self, name)[replicate] = own[name]


def _check_shape(task: ProbeSettings, model: nn.Module, inputs: Tensor, targets: Tensor) -> None:
    """Raise if the scores of a model do not have the shape that its side needs."""
    choices = task.vocab_size + 1 if task.side == "sender" else task.space.values
    expected = (*targets.shape, choices)
    was_training = model.training
    with torch.no_grad():
        scores = model.eval()(inputs)
    model.train(was_training)
    shape = tuple(scores.shape)
    if shape != expected:
        raise IncompatibleError(
            f"{task.entry.qualified} outputs scores of shape {shape} for a batch of {len(inputs)}; "
            f"a {task.side} must output {expected}."
        )
    warn_of_probabilities(task.entry, model, scores)
