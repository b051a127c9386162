"""The training of a stack: updates, evaluations, checkpoints, and the final outcomes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import cast

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from icy.config.settings import TrainingSettings
from icy.core.gpu import make_current
from icy.core.machine import require_allocation
from icy.core.noise import counter_hash
from icy.core.streams import stream_key
from icy.core.types import State
from icy.training.gradient import GradientLearner
from icy.training.job import Job, Outcome, Reading, Replicate, Report
from icy.training.learners import Learner, make_learner
from icy.training.lockstep import Checkpoints, Lockstep, in_groups

from .evaluation import matching, similarity
from .model import GameModel, game_loss, make_game_model
from .native_game import NativeGame
from .playing import GameProgress, evaluate_replicate, make_spoken, observe_objects, pack_objects
from .settings import GamesSettings
from .turns import TEST, TRAINING, VALIDATION, Turns

RESUMED = tuple(f.name for f in fields(GameProgress) if f.name != "replicate")  # replicate's fields in a checkpoint
NUMBERS = 340  # numbers in memory at the peak of an update, per pixel of each perceived image; measured with conv4
FINAL_PLAYS = 3  # evaluations of the final weights: held-out rules, seen rules, and relaxed messages
SCORING = 2e-3  # seconds to score a turn of the last evaluation, on one core of a server
FORWARD = 1 / 3  # time of a forward pass / time of an update
# Turns of an evaluation in one call of compiled code, if the numbers of a turn do not depend on other turns.
TURNS_AT_ONCE = 128


def train(job: Job, report: Report | None = None) -> Iterator[Outcome]:
    """Train the replicates of a job as a stack, or as one stack per step of their checkpoints."""
    make_current(job.device)
    return in_groups(job, lambda part, checkpoints: GameStack(part, part.replicates, checkpoints).outcomes(report))


class GameStack(Lockstep):
    """Training of a stack of replicates, from the beginning or from the last checkpoint.

    Args:
        job: the job of the replicates.
        replicates: the replicates to train. Their checkpoints, if any, must be of the same step.
        checkpoints: checkpoints of the job.
    """

    learner: GradientLearner  # or a NativeGame, which has the methods that are called here

    def __init__(self, job: Job, replicates: Sequence[Replicate], checkpoints: Checkpoints | None = None) -> None:
        super().__init__(checkpoints)
        settings: GamesSettings = job.settings
        self.job, self.settings = job, settings
        self.world, self.device = settings.made_world, torch.device(job.device)
        self.runners = [GameProgress(replicate) for replicate in replicates]
        seeds = [r.seed for r in replicates]
        self.turns = Turns(self.world, [settings.of_turns(r.condition) for r in replicates], seeds, self.device)
        keys = [stream_key(seed, "games", "noise") for seed in seeds]
        self.keys = torch.tensor(keys, device=self.device, dtype=torch.int64)
        self._require_memory(len(seeds))
        self._resume()

    def _require_memory(self, replicates: int) -> None:
        """Check that updates of conv4 fit in memory, because otherwise a CPU process would be killed."""
        if self.device.type != "cpu" or self.settings.perception != "conv4":
            return
        images = (2 * self.settings.turns.targets + self.settings.turns.distractors) * self.settings.learning.batch_size
        require_allocation(
            4 * NUMBERS * images * math.prod(self.world.shape[1:]) * replicates,
            f"An update of {self.job.name} on images",
            "take a smaller batch (--set batch_size=8), fewer targets, a smaller canvas, or a GPU",
        )

    def _make_learner(self) -> GradientLearner:
        seeds = [runner.replicate.seed for runner in self.runners]
        learning = self.settings.learning
        training = TrainingSettings(
            batch_size=learning.batch_size,
            learning_rate=learning.learning_rate,
            clip_norm=learning.clip_norm,
            tf32=learning.tf32,
        )
        models = {seed: make_game_model(self.settings, seed) for seed in sorted(set(seeds))}
        sample = observe_objects(self._objects(VALIDATION, 0, 1, 2)[0], self.world)
        how = training, self.device, sample, self.job.engine, partial(observe_objects, world=self.world)

        def by_native(models: Sequence[GameModel], *_: object) -> Learner:
            return cast(Learner, NativeGame(models, training, self.device, self.world))

        found = make_learner([models[s] for s in seeds], seeds, game_loss, *how, by_native=by_native)
        return cast(GradientLearner, found)

    def _objects(self, purpose: str, first: int, count: int, size: int) -> Tensor:
        return pack_objects(self.turns.batch(purpose, first, count, size))

    # -- training ------------------------------------------------------------------------------------------------------

    def outcomes(self, report: Report | None) -> Iterator[Outcome]:
        """Train to the end, and yield the outcome of each replicate when it ends."""
        if not self.updates:
            self._evaluate(report)
        epoch = self.settings.learning.epoch
        while self.runners and self.updates < self.settings.updates:
            self.advance(min(self.settings.updates, (self.updates // epoch + 1) * epoch))
            yield from self._diverged()
            if self.runners:
                self._evaluate(report)
                self.save_if_due()
        for runner in self.runners:
            yield evaluate_replicate(self.job, runner, self.learner.engine, self.updates)

    def _update(self, count: int) -> None:
        size = self.settings.learning.batch_size
        objects = self._objects(TRAINING, self.updates, count, size)
        steps = torch.arange(self.updates, self.updates + count, device=self.device)
        keys = counter_hash(self.keys, steps[:, None])
        self.learner.train(objects, self.labels(size).expand(count, len(self.runners), -1, -1), keys)
        self.updates += count

    def labels(self, size: int) -> Float[Tensor, "turn candidate"]:
        """Return the labels of the candidates, 1 for targets and 0 for distractors."""
        turns = self.settings.turns
        targets = torch.arange(turns.targets + turns.distractors, device=self.device) < turns.targets
        return targets.float().expand(size, -1)

    def _share(self, seconds: float) -> None:
        for runner in self.runners:
            runner.seconds += seconds / len(self.runners)

    # -- evaluations ---------------------------------------------------------------------------------------------------

    def _evaluate(self, report: Report | None) -> None:
        """Evaluate every replicate, and store the weights with the best accuracy so far."""
        selected_on = TEST if self.settings.learning.selected_on == "test" else VALIDATION
        with self.timed():
            read = zip(self.runners, *self._read(selected_on), strict=True)
            for place, (runner, accuracy, language) in enumerate(read):
                runner.curve.append([self.updates, accuracy, runner.loss, *language])
                if accuracy > runner.best:
                    runner.best, runner.best_step = accuracy, self.updates
                    runner.weights = self.learner.weights(place)
        if report is not None:
            report([Reading(r.replicate, self.updates, r.curve[-1][1]) for r in self.runners])

    def _read(self, purpose: str) -> tuple[list[float], list[list[float]]]:
        """Return the accuracy of each replicate, and its language's CBM, topsim and number of different words."""
        size, turns = self.settings.learning.batch_size, self.settings.learning.turns
        right: list[Tensor] = []
        words: list[Tensor] = []
        numbers: list[Tensor] = []
        steps = max(1, turns // size)
        alone = isinstance(self.learner, NativeGame) and not self.learner.whole  # turns do not depend on each other
        at_once = max(1, TURNS_AT_ONCE // size) if alone else 1
        for step in range(0, steps, at_once):
            batch = self.turns.batch(purpose, step, min(at_once, steps - step), min(size, turns))
            logits, _, message = self.learner.run(_as_one(pack_objects(batch)))[:3]
            is_target = self.labels(logits.shape[-2]).bool()
            right.append(((logits > 0) == is_target).flatten(1).sum(1))
            words.append(message.cpu())
            numbers.append(_as_one(batch.numbers).cpu())
        total = sum(len(n[0]) for n in numbers) * self.labels(1).shape[-1]
        accuracy = (torch.stack(right).sum(0).double() / total).tolist()
        rows = zip(torch.cat(numbers, 1), torch.cat(words, 1), strict=True)
        spoken = [make_spoken(self.turns, *row) for row in rows]
        return accuracy, [[matching(one).value, similarity(one).value, one.unique_words] for one in spoken]

    def _diverged(self) -> Iterator[Outcome]:
        """Remove replicates with an infinite or NaN loss from the stack, and yield their outcomes."""
        for runner, loss in zip(self.runners, cast(Tensor, self.learner.losses()).tolist(), strict=True):
            runner.loss = loss
        lost = [not math.isfinite(runner.loss) for runner in self.runners]
        if not any(lost):
            return
        ended = [r for r, is_lost in zip(self.runners, lost, strict=True) if is_lost]
        staying = [i for i, is_lost in enumerate(lost) if not is_lost]
        self.runners = [self.runners[i] for i in staying]
        if staying:
            self.learner.keep(staying)
            self.turns.keep(staying)
            self.keys = self.keys[staying]
        for runner in ended:
            about = self.learner.engine, runner.seconds
            yield Outcome(runner.replicate, "diverged", self.updates, math.nan, runner.curve, *about)

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def _own(self) -> dict[Replicate, State]:
        return {r.replicate: {name: getattr(r, name) for name in RESUMED} for r in self.runners}

    def _resume(self) -> None:
        """Create the learner, and load the checkpoints, if any."""
        replicates = [runner.replicate for runner in self.runners]
        self.learner, self.updates, owns = self.checkpoints.resumed(replicates, self._make_learner, RESUMED)
        if owns:
            self.runners = [GameProgress(r.replicate, **own) for r, own in zip(self.runners, owns, strict=True)]


def _as_one(batches: Shaped[Tensor, "step replicate turn *rest"]) -> Shaped[Tensor, "replicate turns *rest"]:
    """Return the batches of several steps as one batch."""
    return batches.transpose(0, 1).flatten(1, 2)


def seconds_per_update(job: Job, updates: int) -> float:
    """Measure the seconds per update for all replicates, including an update's share of the evaluations."""
    course = GameStack(job, job.replicates)
    course.advance(1)
    began = time.perf_counter()
    course.advance(1 + max(updates, 1))
    update = (time.perf_counter() - began) / max(updates, 1)
    learning, steps = course.settings.learning, course.settings.updates
    scoring = SCORING * learning.turns * len(job.replicates)
    plays = steps / learning.epoch + FINAL_PLAYS
    evaluations = plays * learning.turns / learning.batch_size * FORWARD  # in updates; they have only forward passes
    return update * (1 + evaluations / steps) + scoring / steps
