"""The training of a stack: updates, evaluations, checkpoints, and the final outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import cast

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from icy.config.settings import TrainingSettings
from icy.core.machine import require_allocation
from icy.core.noise import counter_hash
from icy.core.streams import stream_key
from icy.training.gradient import GradientLearner
from icy.training.job import Job, Outcome, Reading, Report
from icy.training.learners import Learner, make_learner
from icy.training.lockstep import Course, seconds_of_update, train_courses

from .evaluation import Spoken, matching, similarity
from .model import GameModel, game_loss, make_game_model
from .native_game import NativeGame
from .playing import GameProgress, final_results, make_spoken, observe_objects, pack_objects
from .settings import GamesSettings
from .turns import TEST, TRAINING, VALIDATION, Turns

NUMBERS = 340  # numbers in memory at the peak of an update, per pixel of each perceived image; measured with conv4
FINAL_PLAYS = 3  # evaluations of the final weights: held-out rules, seen rules, and relaxed messages
SCORING = 2e-3  # seconds to score a turn of the last evaluation, on one core of a server
FORWARD = 1 / 3  # time of a forward pass / time of an update
# Turns of an evaluation in one call of compiled code, if the numbers of a turn do not depend on other turns.
TURNS_AT_ONCE = 128


def train(job: Job, report: Report | None = None) -> Iterator[Outcome]:
    """Train the replicates of a job as a stack, or as one stack per step of their checkpoints."""
    return train_courses(job, Games, report)


class Games(Course[GameProgress]):
    """Training of the agents of games.

    Args:
        job: the job of the replicates.
    """

    saved = tuple(f.name for f in fields(GameProgress) if f.name != "replicate")
    learner: GradientLearner  # or a NativeGame, which has the methods that are called here

    def __init__(self, job: Job) -> None:
        super().__init__(job, [GameProgress(replicate) for replicate in job.replicates])
        self.settings: GamesSettings = job.settings
        self.world, seeds = self.settings.made_world, [r.seed for r in job.replicates]
        kinds = [self.settings.of_turns(r.condition) for r in job.replicates]
        self.turns = Turns(self.world, kinds, seeds, self.device)
        keys = [stream_key(seed, "games", "noise") for seed in seeds]
        self.keys = torch.tensor(keys, device=self.device, dtype=torch.int64)
        self._require_memory(len(seeds))

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

    def make_learner(self) -> GradientLearner:
        """Make the learner of the agents."""
        seeds = [runner.replicate.seed for runner in self.active]
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

    def next_check(self) -> int | None:
        """Return the number of updates at the next evaluation; None if all updates were made."""
        epoch, last = self.settings.learning.epoch, self.settings.updates
        if not self.active[0].curve:
            return 0
        return min(last, (self.updates // epoch + 1) * epoch) if self.updates < last else None

    def update(self, count: int) -> None:
        """Make some updates."""
        size = self.settings.learning.batch_size
        objects = self._objects(TRAINING, self.updates, count, size)
        steps = torch.arange(self.updates, self.updates + count, device=self.device)
        keys = counter_hash(self.keys, steps[:, None])
        self.learner.train(objects, self.labels(size).expand(count, len(self.active), -1, -1), keys)

    def labels(self, size: int) -> Float[Tensor, "turn candidate"]:
        """Return the labels of the candidates, 1 for targets and 0 for distractors."""
        turns = self.settings.turns
        targets = torch.arange(turns.targets + turns.distractors, device=self.device) < turns.targets
        return targets.float().expand(size, -1)

    # -- evaluations ---------------------------------------------------------------------------------------------------

    def read(self) -> list[Reading]:
        """Evaluate every replicate that has not diverged, and store the weights with the best accuracy so far."""
        if self.updates:
            for runner, loss in zip(self.active, cast(Tensor, self.learner.losses()).tolist(), strict=True):
                runner.loss = loss
        readings = []
        for place, (runner, accuracy, said) in enumerate(zip(self.active, *self._read(), strict=True)):
            if self._lost(runner):
                continue
            language = matching(said).value, similarity(said).value, said.unique_words
            runner.curve.append([self.updates, accuracy, runner.loss, *language])
            if accuracy > runner.best:
                runner.best, runner.best_step = accuracy, self.updates
                runner.weights = self.learner.weights(place)
            readings.append(Reading(runner.replicate, self.updates, accuracy))
        return readings

    def _lost(self, runner: GameProgress) -> bool:
        """Return whether the last loss of a replicate is not finite."""
        return self.updates > 0 and not math.isfinite(runner.loss)

    def _read(self) -> tuple[list[float], list[Spoken]]:
        """Return the accuracy and the messages of each replicate in an evaluation."""
        purpose = TEST if self.settings.learning.selected_on == "test" else VALIDATION
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
        return accuracy, [make_spoken(self.turns, *row) for row in rows]

    # -- results -------------------------------------------------------------------------------------------------------

    def ended(self) -> dict[int, str]:
        """Return the replicates that diverged, and at the end all."""
        over = self.updates >= self.settings.updates
        lost = [self._lost(runner) for runner in self.active]
        return {i: "diverged" if is_lost else "steps" for i, is_lost in enumerate(lost) if is_lost or over}

    def outcomes(self, ended: Mapping[int, str]) -> Iterator[Outcome]:
        """Yield the outcomes of some replicates, evaluated with their best weights outside the stack."""
        for place, reason in ended.items():
            found = {} if reason == "diverged" else final_results(self.job, self.active[place], self.updates)
            yield self.outcome(place, reason, **{"accuracy": math.nan, **found})

    def keep(self, staying: list[int]) -> None:
        """Keep only the turns and noise of these replicates."""
        self.turns.keep(staying)
        self.keys = self.keys[staying]


def _as_one(batches: Shaped[Tensor, "step replicate turn *rest"]) -> Shaped[Tensor, "replicate turns *rest"]:
    """Return the batches of several steps as one batch."""
    return batches.transpose(0, 1).flatten(1, 2)


def rehearse(job: Job, updates: int) -> float:
    """Measure the seconds per update for all replicates, including an update's share of the evaluations."""
    update = seconds_of_update(Games(job), updates)
    learning, steps = job.settings.learning, job.settings.updates
    scoring = SCORING * learning.turns * len(job.replicates)
    plays = steps / learning.epoch + FINAL_PLAYS
    evaluations = plays * learning.turns / learning.batch_size * FORWARD  # in updates; they have only forward passes
    return float(update * (1 + evaluations / steps) + scoring / steps)
