"""The replicate engine: all grammars and seeds of one model, trained in lockstep as one batched program."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from icy.config.protocols import BASELINE, decide, reached_at
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.representations.samples import UNCOUNTED, counted
from icy.core.types import State
from icy.records.record import FAILURES
from icy.training.language_job import LanguageJob
from icy.training.probe_settings import ProbeSettings

from .batches import EQUALLY, Batches
from .job import Outcome, Reading, Replicate, Report
from .learners import Learner, accuracy, make_learner, supervised_loss, warn_of_probabilities
from .lockstep import Course, Progress, seconds_of_update, train_courses
from .native import NativeLearner
from .task_models import make_model, representation_of
from .weights import pack_weights


@dataclass
class ProbeProgress(Progress):
    """The progress of one model.

    Attributes:
        checked: updates at the last check.
        reached: updates at which it reached the target; None if it has not.
        right: sum of the accuracies on training batches since the last check; None if there were none.
    """

    checked: int = 0
    reached: float | None = None
    right: float | None = None


def train(job: LanguageJob, report: Report | None = None) -> Iterator[Outcome]:
    """Train a job's replicates in lockstep; yield each when it finishes, and remove it from the stack.

    Replicates with checkpoints of different steps are trained as separate stacks.

    Args:
        job: the job. The baseline of each seed must be among its replicates or its baselines.
        report: called with the readings of every check.

    Raises:
        InvalidSettingError: a seed has no baseline.
        IncompatibleError: the scores of a model have the wrong shape.
    """
    return train_courses(job, Probes, report)


def rehearse(job: LanguageJob, updates: int) -> float:
    """Time some updates of a job's whole stack, and discard the results; see `seconds_of_update`."""
    return seconds_of_update(Probes(replace(job, baselines={r.seed: 1 for r in job.replicates})), updates)


class Probes(Course[ProbeProgress]):
    """Supervised training of models, each until the rules of its settings end it.

    Args:
        job: the models. If their settings have a `lesson`, they are parts of another training, without a baseline.
    """

    saved = ("checked", "curve", "seconds", "reached", "right")

    def __init__(self, job: LanguageJob) -> None:
        super().__init__(job, [ProbeProgress(replicate) for replicate in job.replicates])
        self.task, self.protocol, self.settings = job.settings, job.settings.rules, job.training
        self.baselines, self.has_baseline = dict(job.baselines), self.task.lesson is None
        for seed in {r.seed for r in job.replicates} - set(self.baselines) if self.has_baseline else ():
            if Replicate(BASELINE, seed) not in job.replicates:
                raise InvalidSettingError(f"Seed {seed} has no run of {BASELINE}, the baseline of all other grammars.")
        self.averages = self.settings.training_readings and self.has_baseline
        self.early: list[Outcome] = []  # outcomes that wait for their baseline
        self.draws = Batches(
            [job.language(r) for r in job.replicates],
            [r.seed for r in job.replicates],
            self.device,
            self.task.held_out_meanings,
            job.frequencies,
        )

    def make_learner(self) -> Learner:
        """Make the learner of the models."""
        task, settings, device = self.task, self.settings, self.device
        seeds = [one.replicate.seed for one in self.active]
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

    def next_check(self) -> int:
        """Return the number of updates at the next check."""
        return self.settings.next_check(self.active[0].checked)

    def at_once(self) -> int:
        """Return 1 if the accuracies on training batches are read before each update."""
        return 1 if self.averages else super().at_once()

    def update(self, count: int) -> None:
        """Make some updates."""
        if self.averages:
            for one, accuracy in zip(self.active, self._read("training", self.settings.batch_size), strict=True):
                one.right = (one.right or 0.0) + accuracy
        which = "training", self.updates, count, self.settings.batch_size
        noise, drawing = self.draws.noise(self.updates, count), self.draws.drawing(*which)
        if drawing is not None and isinstance(self.learner, NativeLearner):
            self.learner.train_on_draws(drawing, noise, self.task.side == "sender")
        else:
            self.learner.train(*self._batches(*which), noise)

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

    def read(self) -> list[Reading]:
        """Evaluate the models, or average their accuracies on training batches since the last check."""
        steps, size = self.settings.steps(self.updates), self.settings.check_size(self.updates)
        if self.averages:
            found = [(one.right or 0.0) / (self.updates - one.checked) for one in self.active]
        else:
            found = self._read("check", size)
        for one, now in zip(self.active, found, strict=True):
            one.curve.append((steps, now))
            one.checked, one.right = self.updates, None
        return [Reading(one.replicate, *one.curve[-1]) for one in self.active]

    def ended(self) -> dict[int, str]:
        """Return the models that end now; baselines first, because the others depend on baselines."""
        diverged, ended = self.diverged(), dict[int, str]()
        for place, one in sorted(enumerate(self.active), key=lambda item: item[1].replicate.condition != BASELINE):
            reached = one.reached = self._reached(one)
            replicate, limits = one.replicate, (self.settings.max_steps, self.settings.clock)
            rules_of = replicate.condition if self.has_baseline else BASELINE
            baseline = self.baselines.get(replicate.seed)
            verdict = decide(self.protocol, rules_of, reached, one.curve[-1][0], baseline, *limits)
            reason = "diverged" if diverged[place] else verdict
            if reason is not None:
                ended[place] = reason
                if replicate.condition == BASELINE:
                    self.baselines[replicate.seed] = reached if reason == "target" and reached is not None else reason
        return ended

    def _reached(self, one: ProbeProgress) -> float | None:
        """Return the updates at which a model first reached the target; on a fixed grid, the updates of a check."""
        if one.reached is not None:
            return one.reached
        before = one.curve[-2] if self.settings.interpolates and len(one.curve) > 1 else None
        return reached_at(self.protocol.target, before, one.curve[-1])

    def outcomes(self, ended: Mapping[int, str]) -> Iterator[Outcome]:
        """Yield the outcomes of some models, and of earlier ones that waited for a baseline."""
        places = sorted(ended)
        values = zip(places, self._measure(places), strict=True)
        return self._compared([self._outcome(place, ended[place], **measured) for place, measured in values])

    def keep(self, staying: list[int]) -> None:
        """Keep only the batches of these models."""
        self.draws.keep(staying)

    def _measure(self, places: list[int]) -> list[dict[str, float]]:
        """Return the measured values for the records of some models, on held-out meanings if there are any."""
        last = [self.active[i].curve[-1][1] for i in places]
        if not self.has_baseline:
            return [{"accuracy": one} for one in last]
        size, stopping = self.settings.evaluation_size, None if self.settings.fresh_reading else last
        if not self.protocol.holds_out:
            read = {"accuracy": stopping or self._read("report", size, places)}
        else:
            trained = stopping or self._read("report on training", size, places)
            read = {"accuracy": self._read("report", size, places), "train_accuracy": trained}
        if self.job.frequencies is not None:
            read["unweighted_accuracy"] = self._read(EQUALLY, size, places)
        return [dict(zip(read, of_one, strict=True)) for of_one in zip(*read.values(), strict=True)]

    def _outcome(self, place: int, reason: str, accuracy: float, **extra: float) -> Outcome:
        one, files = self.active[place], {}
        # With interpolation or a budget, training continues beyond the crossing.
        between = self.settings.interpolates or self.protocol.max_updates is not None
        if self.job.keep_models and reason not in FAILURES:
            files[self.job.model_file(one.replicate)] = pack_weights(self.learner.weights(place))
        found = self.outcome(
            *(place, reason, accuracy),
            extra={} if reason == "diverged" else extra,
            files=files,
            crossing=one.reached if reason == "target" and between else None,
        )
        return replace(found, steps=one.curve[-1][0])

    def _compared(self, ended: list[Outcome]) -> Iterator[Outcome]:
        """Yield outcomes with the updates of their baselines; hold outcomes until their baseline has ended."""
        if not self.has_baseline:
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

    # In checkpoints the curve is called `curves`.

    def own(self, place: int) -> State:
        """Return the state of a model for a checkpoint, in addition to the learner's state."""
        return {name.replace("curve", "curves"): value for name, value in super().own(place).items()}

    def resume(self, owns: Sequence[State]) -> None:
        """Resume from these states."""
        super().resume([{**own, "curve": own["curves"]} for own in owns])


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
