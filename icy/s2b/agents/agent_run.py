"""The training of agents of S2B in the loop of all trainings, one replicate after the other."""

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from icy.core.checks import FIRST_SEED
from icy.core.errors import IncompatibleError
from icy.core.types import Choices, State
from icy.training.job import Job, Outcome, Reading, Report
from icy.training.lockstep import Course, Progress, seconds_of_update, train_courses

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
    for replicate in job.replicates:
        yield from train_courses(replace(job, replicates=(replicate,)), Agents, report)


@dataclass
class AgentProgress(Progress):
    """The progress of a training.

    Attributes:
        loss: the last loss.
        cpu_seconds: processor time of the updates.
    """

    loss: float = 0.0
    cpu_seconds: float = 0.0


@dataclass
class AgentLearner:
    """The learner of a stack of one training."""

    training: AgentTraining
    engine = "pytorch"

    def state(self, place: int) -> State:
        """Return the state of the training, for `resume`."""
        return self.training.state()

    def resume(self, states: Sequence[State]) -> None:
        """Resume from the `state` of a training."""
        self.training.load(states[0])


class Agents(Course[AgentProgress]):
    """The training of one replicate: a stack of one.

    Args:
        job: the job of the replicate.
    """

    saved = ("curve", "loss", "seconds", "cpu_seconds")
    learner: AgentLearner

    def __init__(self, job: Job) -> None:
        (self.replicate,) = job.replicates
        super().__init__(job, [AgentProgress(self.replicate)])
        self.settings, (self.progress,) = job.settings, self.active

    def make_learner(self) -> AgentLearner:
        """Make the training."""
        return AgentLearner(self.settings.training(self.replicate.seed))

    @property
    def training(self) -> AgentTraining:
        """The training."""
        return self.learner.training

    def next_check(self) -> int | None:
        """Return the number of the next update, since any may be the last; None if training has ended."""
        if not self.progress.curve:
            return 0
        return None if self.over else self.updates + 1

    @property
    def over(self) -> bool:
        """Whether training has ended."""
        limit = self.settings.observations
        return self.training.done or (limit is not None and self.training.observations >= limit)

    def update(self, count: int) -> None:
        """Make some updates."""
        used = time.process_time()
        self.progress.loss = self.training.run(count)
        self.progress.cpu_seconds += time.process_time() - used

    def read(self) -> list[Reading]:
        """Evaluate and add a point to the curve, at the updates of the curve and at the end."""
        updates = self.updates
        if updates % self.settings.report_every and not self.over:
            return []
        scores = self.training.read(READ_EPISODES, READ_SEED, self.training.practice)
        point = [updates, scores["zsct"], scores["support"], self.training.observations, scores.get("reconstructed")]
        self.progress.curve.append(point)
        return [Reading(self.replicate, updates, scores["zsct"])]

    def ended(self) -> dict[int, str]:
        """Return whether training has ended, and why."""
        if not math.isfinite(self.progress.loss):
            return {0: "diverged"}
        return {0: "steps" if self.training.done else "budget"} if self.over else {}

    def keep(self, staying: list[int]) -> None:
        """Keep all."""

    def outcomes(self, ended: Mapping[int, str]) -> Iterator[Outcome]:
        """Yield the outcome, with a final evaluation if the training did not diverge."""
        found = {"accuracy": math.nan} if ended[0] == "diverged" else self._evaluated()
        yield self.outcome(0, ended[0], **found)

    def _evaluated(self) -> Choices:
        """Return the accuracy, further numbers and files."""
        job, settings, training = self.job, self.settings, self.training
        scores = training.read(settings.episodes, FINAL_SEED)
        extra = {settings.early: scores["support"], **settings.floors()}
        extra |= {name: scores[name] for name in ("reconstructed",) if name in scores}
        extra["observations"] = training.observations
        extra |= training.language() | self._acquired()
        files = {}
        if job.keep_models:
            files[job.model_file(self.replicate)] = packed_networks(job, self.replicate, training, scores | extra)
        extra["cpu_seconds"] = round(self.progress.cpu_seconds, 2)  # not on the card: the file is reproducible
        return {"accuracy": scores["zsct"], "extra": extra, "files": files}

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


def rehearse(job: Job, updates: int) -> float:
    """Return the seconds of an update of all agents, which train one after another, with its share of evaluations."""
    settings = job.settings
    if hasattr(settings.learning, "learning_starts"):  # no replay buffer to fill
        settings = replace(settings, learning=replace(settings.learning, learning_starts=0))
    course = Agents(replace(job, settings=settings, replicates=job.replicates[:1]))
    update = seconds_of_update(course, updates)
    began = time.perf_counter()
    course.training.read(REHEARSED_EPISODES, READ_SEED, course.training.practice)
    evaluation = (time.perf_counter() - began) / REHEARSED_EPISODES
    evaluations = settings.updates / settings.report_every + 1
    share = evaluation * (evaluations * READ_EPISODES + settings.episodes) / settings.updates
    return float((update + share) * len(job.replicates))
