"""The run of one training: updates, evaluations, checkpoints, and the final evaluation."""

import logging
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from icy.core.checks import FIRST_SEED
from icy.core.errors import IncompatibleError
from icy.training.job import Job, Outcome, Reading, Replicate, Report
from icy.training.lockstep import Checkpoint, sweep_checkpoints

from .acquisition import ease_of_acquisition
from .saved_networks import packed_networks
from .training import AgentTraining, GameTraining

log = logging.getLogger(__name__)
FINAL_SEED = FIRST_SEED  # seed of the final evaluation episodes, the same as in `evaluate` with one seed
READ_SEED = 99  # seed of the evaluation episodes during training
READ_EPISODES = 200
REHEARSED_EPISODES = 20  # episodes of an evaluation that is timed


def train(job: Job, report: Report | None = None) -> Iterator[Outcome]:
    """Train the replicates of a job one after the other, and yield their outcomes; see Job.train."""
    if job.checkpoints:
        sweep_checkpoints(job.folder)
    for replicate in job.replicates:
        course = AgentRun(job, replicate)
        yield course.outcome(report)
        course.checkpoint.forget()  # only after the record has been saved


class AgentRun:
    """One training, from its start or its last checkpoint to its end."""

    def __init__(self, job: Job, replicate: Replicate) -> None:
        self.job, self.settings, self.replicate = job, job.settings, replicate
        self.training: AgentTraining = self.settings.training(replicate.seed)
        label = f"{job.name}, seed {replicate.seed}"
        self.checkpoint = Checkpoint(job.folder, job.key(replicate), label, job.checkpoints)
        self.curve: list[list[float | None]] = []  # columns: `JobKind.curve`
        self.seconds = self.cpu_seconds = 0.0  # of all sessions together
        self.loss = 0.0
        self._resume()

    def outcome(self, report: Report | None) -> Outcome:
        """Train to the end, evaluate, and return the outcome."""
        if not self.curve:
            self._read(report)
        while not self.over and math.isfinite(self.loss):
            began, used = time.perf_counter(), time.process_time()
            self.loss = self.training.run(1)
            self.seconds += time.perf_counter() - began
            self.cpu_seconds += time.process_time() - used
            if self.training.updates % self.settings.report_every == 0 or self.over:
                self._read(report)
            if self.checkpoint.due:
                self.save()
        if math.isfinite(self.loss):
            return self._evaluated()
        return self._outcome("diverged", math.nan)

    @property
    def over(self) -> bool:
        """Whether training has ended."""
        limit = self.settings.observations
        return self.training.done or (limit is not None and self.training.observations >= limit)

    def _read(self, report: Report | None) -> None:
        """Evaluate, add a point to the curve, and report the accuracy."""
        updates = self.training.updates
        scores = self.training.read(READ_EPISODES, READ_SEED, self.training.practice)
        point = [updates, scores["zsct"], scores["support"], self.training.observations, scores.get("reconstructed")]
        self.curve.append(point)
        if report is not None:
            report([Reading(self.replicate, updates, scores["zsct"])])

    def _evaluated(self) -> Outcome:
        job, settings, training = self.job, self.settings, self.training
        began = time.perf_counter()
        scores = training.read(settings.episodes, FINAL_SEED)
        extra = {settings.early: scores["support"], **settings.floors()}
        extra |= {name: scores[name] for name in ("reconstructed",) if name in scores}
        extra["observations"] = training.observations
        self.seconds += time.perf_counter() - began
        extra |= training.language() | self._acquired()
        files = {}
        if job.keep_models:
            files[job.model_file(self.replicate)] = packed_networks(job, self.replicate, training, scores | extra)
        extra["cpu_seconds"] = round(self.cpu_seconds, 2)  # not on the card, so that the file is reproducible
        reason = "steps" if training.done else "budget"
        return self._outcome(reason, scores["zsct"], extra=extra, files=files)

    def _acquired(self) -> dict[str, float]:
        """Return the ease of acquisition of the trained speaker, if requested."""
        if not self.settings.eoa or not self.settings.how.both:
            return {}
        training = cast(GameTraining, self.training)
        try:
            table = ease_of_acquisition(training.speaker(), training.game, episodes=self.settings.eoa, seed=FINAL_SEED)
        except IncompatibleError as error:  # keep the other results of the training
            log.warning("Ease of acquisition was not measured: %s", error)
            return {}
        return {"ease_of_acquisition": float(table["zsct"].mean())}

    def _outcome(self, reason: str, accuracy: float, **more: Any) -> Outcome:
        updates = self.training.updates
        return Outcome(
            self.replicate, reason, updates, accuracy, self.curve, engine="pytorch", seconds=self.seconds, **more
        )

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Save a checkpoint."""
        state = {"training": self.training.state(), "curve": self.curve, "loss": self.loss}
        self.checkpoint.save(state | {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds})

    def _resume(self) -> None:
        """Resume from the last checkpoint, if there is a readable one."""
        state = self.checkpoint.load()
        if state is None:
            return
        try:
            self.training.load(state["training"])
        except Exception as error:  # treated like an unreadable checkpoint
            self.checkpoint.refuse(error)
            self.training = self.settings.training(self.replicate.seed)
            return
        self.curve, self.loss = state["curve"], state["loss"]
        self.seconds, self.cpu_seconds = state["seconds"], state["cpu_seconds"]
        log.info("%s, seed %s: resumed after update %s.", self.job.name, self.replicate.seed, self.training.updates)


def seconds_per_update(job: Job, updates: int) -> float:
    """Return the seconds of an update of all agents, which train one after another, with its share of evaluations."""
    settings = job.settings
    if hasattr(settings.learning, "learning_starts"):  # no replay buffer to fill
        settings = replace(settings, learning=replace(settings.learning, learning_starts=0))
    training: AgentTraining = settings.training(0)
    training.run(1)  # also deals the episodes
    began = time.perf_counter()
    for _ in range(updates):
        training.run(1)
    update = (time.perf_counter() - began) / updates
    began = time.perf_counter()
    training.read(REHEARSED_EPISODES, READ_SEED, training.practice)
    evaluation = (time.perf_counter() - began) / REHEARSED_EPISODES
    evaluations = job.settings.updates / job.settings.report_every + 1
    share = evaluation * (evaluations * READ_EPISODES + settings.episodes) / job.settings.updates
    return float((update + share) * len(job.replicates))
