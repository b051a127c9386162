"""The course of a training: updates, readings, checkpoints, and the evaluation at its end."""

import functools
import logging
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, cast

from icy.core.errors import IncompatibleError
from icy.s2b.evaluation import NEVER_LISTENING, never_listening
from icy.s2b.settings import GameSettings
from icy.training.checkpoints import Checkpoint, sweep_checkpoints
from icy.training.job import Job, Outcome, Reading, Replicate, Report

from .acquisition import ease_of_acquisition
from .agent_job import AgentJob
from .saved_networks import packed_networks
from .training import AgentTraining

log = logging.getLogger(__name__)
FLOOR_EPISODES = 250  # at most, of the evaluation at the end, for those who never listen
READ_SEED = 99  # of the episodes of readings
READ_EPISODES = 200
FINAL_SEED = 123  # of the episodes of the evaluation at the end, those of `evaluate` with one seed
REHEARSED_SECONDS = 1.0
REHEARSED_EPISODES = 50  # of a reading
SLOW = 0.5  # seconds of an update beyond which readings are not timed, as these would take as long
READING_SHARE = 0.2  # of the time of these updates, which readings add


def train(job: Job, report: Report | None = None, course_class: Any = None) -> Iterator[Outcome]:
    """Train the agents of a job one after the other; see Job."""
    job = cast(AgentJob, job)
    if job.checkpoints:
        sweep_checkpoints(job.folder)
    for replicate in job.replicates:
        course = (course_class or AgentRun)(job, replicate)
        yield course.outcome(report)
        course.checkpoint.forget()  # only now, as its record is on file


class AgentRun:
    """One training from its beginning, or from its last checkpoint, to its end."""

    def __init__(self, job: AgentJob, replicate: Replicate) -> None:
        self.job, self.replicate = job, replicate
        self.training = job.task.training(replicate.seed)
        label = f"{job.name}, seed {replicate.seed}"
        self.checkpoint = Checkpoint(job.folder, job.key(replicate), label, job.checkpoints)
        self.curve: list[list[float | None]] = []  # as `JobKind.curve` of this kind says
        self.seconds = self.cpu_seconds = 0.0  # of all sessions
        self.loss = 0.0
        self._resume()

    def outcome(self, report: Report | None) -> Outcome:
        """Train to the end, and evaluate."""
        if not self.curve:
            self._read(report)
        while not self.over and math.isfinite(self.loss):
            began, used = time.perf_counter(), time.process_time()
            self.loss = self.training.run(1)
            self.seconds += time.perf_counter() - began
            self.cpu_seconds += time.process_time() - used
            if self.training.updates % self.job.report_every == 0 or self.over:
                self._read(report)
            if self.checkpoint.due:
                self.save()
        return self._evaluated() if math.isfinite(self.loss) else self._diverged()

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        limit = self.job.task.observations
        return self.training.done or (limit is not None and self.training.observations >= limit)

    def _read(self, report: Report | None) -> None:
        """Read the accuracies, and tell."""
        updates = self.training.updates
        found = self.training.read(READ_EPISODES, READ_SEED, self.training.practice)
        point = [updates, found["zsct"], found["support"], self.training.observations, found.get("reconstructed")]
        self.curve.append(point)
        if report is not None:
            report([Reading(self.replicate, updates, found["zsct"])])

    def _evaluated(self) -> Outcome:
        job, training = self.job, self.training
        began = time.perf_counter()
        scores = training.read(job.episodes, FINAL_SEED)
        extra = {**self._extra(scores), "observations": training.observations}
        self.seconds += time.perf_counter() - began
        extra |= training.language() | self._acquired()
        files = {}
        if job.keep_models:
            files[job.model_file(self.replicate)] = packed_networks(job, self.replicate, training, scores | extra)
        extra["cpu_seconds"] = round(self.cpu_seconds, 2)  # not on the card: its bytes are the same every time
        reason = "steps" if training.done else "budget"
        return self._outcome(reason, scores["zsct"], extra=extra, files=files)

    def _extra(self, scores: Mapping[str, float]) -> dict[str, float]:
        """Return the further numbers of the evaluation at the end, by their names in the record."""
        found = {"support": scores["support"], "floor": deaf_floor(self.training.game, self.job.episodes)}
        return found | {name: scores[name] for name in ("reconstructed",) if name in scores}

    def _acquired(self) -> dict[str, float]:
        """Return the ease of acquisition of the speaker that has learned, if it is asked for."""
        if not self.job.eoa:
            return {}
        training = self.training
        try:
            found = ease_of_acquisition(training.speaker(), training.game, episodes=self.job.eoa, seed=FINAL_SEED)
        except IncompatibleError as error:  # the training itself is not lost
            log.warning("No ease of acquisition: %s", error)
            return {}
        return {"ease_of_acquisition": float(found["zsct"].mean())}

    def _diverged(self) -> Outcome:
        return self._outcome("diverged", math.nan)

    def _outcome(self, reason: str, accuracy: float, **more: Any) -> Outcome:
        updates = self.training.updates
        return Outcome(
            self.replicate, reason, updates, accuracy, self.curve, engine="pytorch", seconds=self.seconds, **more
        )

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Leave a checkpoint."""
        state = {"training": self.training.state(), "curve": self.curve, "loss": self.loss}
        self.checkpoint.save(state | {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds})

    def _resume(self) -> None:
        """Go on from the last checkpoint, if there is one that can be read."""
        state = self.checkpoint.load()
        if state is None:
            return
        try:
            self.training.load(state["training"])
        except Exception as error:  # as when it cannot be read at all
            self.checkpoint.refuse(error)
            self.training = self.job.task.training(self.replicate.seed)
            return
        self.curve, self.loss = state["curve"], state["loss"]
        self.seconds, self.cpu_seconds = state["seconds"], state["cpu_seconds"]
        log.info("%s, seed %s: going on after update %s.", self.job.name, self.replicate.seed, self.training.updates)


# -- floors and times --------------------------------------------------------------------------------------------------


def deaf_floor(game: GameSettings, episodes: int) -> float:
    """Return the query of the best of those who never listen, in the first episodes of the evaluation at the end."""
    return _floor(tuple(sorted(asdict(game).items())), min(episodes, FLOOR_EPISODES))


@functools.cache
def _floor(game: tuple[tuple[str, Any], ...], episodes: int) -> float:
    found = never_listening(GameSettings(**dict(game)), episodes=episodes, seeds=[FINAL_SEED])
    scores = [float(found[name].iloc[0]) for name in NEVER_LISTENING]
    return max((score for score in scores if math.isfinite(score)), default=math.nan)


def seconds_per_update(job: AgentJob, updates: int) -> float:
    """Return the seconds of an update of one agent with its share of readings; the first, which deals, is left out."""
    settings = {**job.task.settings, **({"least": 0} if "least" in job.task.settings else {})}  # no replay to fill
    training: AgentTraining = replace(job.task, settings=settings).training(0)
    began, done = time.perf_counter(), 1
    training.run(1)
    if time.perf_counter() - began < REHEARSED_SECONDS:
        began, done = time.perf_counter(), 0
    while done < max(updates, 1) and time.perf_counter() - began < REHEARSED_SECONDS:
        training.run(1)
        done += 1
    update = (time.perf_counter() - began) / done
    if update > SLOW:
        return update * (1 + READING_SHARE)
    began = time.perf_counter()
    training.read(REHEARSED_EPISODES, READ_SEED, training.practice)
    reading = (time.perf_counter() - began) / REHEARSED_EPISODES
    readings = job.task.updates / job.report_every + 1
    return update + reading * (readings * READ_EPISODES + job.episodes) / job.task.updates
