"""Jobs that train agents of the recall task: one task with several seeds."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

from torch import nn

from icy.core.errors import InvalidSettingError, require_known
from icy.core.fields import changed_fields
from icy.core.text import counted
from icy.core.types import Choices
from icy.records.record import Record
from icy.s2b.agents.agent_job import AgentJob, check_run, learner_options, run_options
from icy.s2b.agents.agent_run import FINAL_SEED, FLOOR_EPISODES, AgentRun
from icy.s2b.agents.agent_run import train as train_courses
from icy.s2b.agents.agent_task import SAME_PRESETS
from icy.s2b.agents.saved_networks import Weights, restored
from icy.s2b.recall import RecallSettings
from icy.s2b.stimuli import REPRESENTATIONS
from icy.training.combinations import jobs_of_each
from icy.training.job import Job, Outcome, Replicate, Report

from .floors import recall_floors
from .recall_task import LEARNERS, RecallTask, core_and_learner
from .spec import RecallSpec


@dataclass(frozen=True)
class RecallJob(AgentJob):
    """A job that trains one agent of the recall task with several seeds; see AgentJob."""

    kind = "recall"

    def config(self, replicate: Replicate) -> Choices:
        """Return the configuration of a replicate: all choices that can change its results.

        `options` has the settings that differ from their defaults, and `settings` all of them.
        """
        task = self.task
        return {
            "model": self.name,
            "grammar": replicate.condition,
            "seed": replicate.seed,
            "stimuli": replicate.condition,
            "options": {
                **_changes(cast(RecallSettings, task.game_settings())),
                **task.options,
                **task.changes(),
                **({"observations": task.observations} if task.observations else {}),
            },
            "settings": {"setup": task.config(), "episodes": self.episodes, "report_every": self.report_every},
        }

    def summary(self, record: Record) -> str:
        """Return a short text with the result of a replicate."""
        return f"second shot {record['accuracy']:.3f} after {counted(record['steps'], 'update')}"


def _changes(task: RecallSettings) -> Choices:
    """Return the shortest description of the task: a `compat`, if any, and the settings that differ from it."""
    candidates = []
    for compat in (None, *RecallSettings.compats):
        usual = RecallSettings.of(compat=compat, representation=task.representation, most=task.most)
        changed = {f"task.{name}": value for name, value in changed_fields(task, usual).items()}
        changed |= {} if task.most == RecallSettings.most else {"task.most": task.most}
        candidates.append(({"compat": compat} if compat else {}) | changed)
    return min(candidates, key=len)


# -- from a spec -------------------------------------------------------------------------------------------------------


def recall_jobs(spec: RecallSpec) -> list[RecallJob]:
    """Return the jobs of a spec, one per combination of its options' values.

    Raises:
        IcyError: an unknown name, a value that is not accepted, or settings that do not go together.
    """
    check_run(spec, "Agents of the recall task")
    if "representation" in spec.task:
        raise InvalidSettingError("representation is a separate option (--stimuli), not a setting of task.")
    return jobs_of_each(spec, _jobs)


def _jobs(spec: RecallSpec) -> list[RecallJob]:
    """Return the job of a spec with one value per option."""
    stimuli = str(spec.stimuli)
    require_known("representation of stimuli", stimuli, REPRESENTATIONS)
    core, learner = core_and_learner(str(spec.core))
    game = RecallSettings.of(compat=spec.compat or None, **{**spec.task, "representation": stimuli})
    how, preset = LEARNERS[learner], SAME_PRESETS.get(spec.preset, spec.preset)
    options = learner_options(spec, core, learner, how)
    settings = how.complete(core, options, str(spec.preset), cast(Any, game))
    task = RecallTask(
        core=core,
        learner=learner,
        game=asdict(game),
        options=dict(spec.options),
        settings=settings,
        preset=preset,
        observations=None if "observations" in settings else spec.observations,
    )
    return [RecallJob(task, **run_options(spec, task, stimuli))]


# -- training ----------------------------------------------------------------------------------------------------------


class RecallRun(AgentRun):
    """The run of one training in the recall task; see AgentRun."""

    def _extra(self, scores: Mapping[str, float]) -> dict[str, float]:
        task = cast(RecallSettings, self.job.task.game_settings())
        extra = {"first_shot": scores["support"], "chance": 1 / task.most}
        extra |= recall_floors(task, FLOOR_EPISODES, FINAL_SEED)
        return extra | {name: scores[name] for name in ("reconstructed",) if name in scores}


def train(job: Job, report: Report | None = None) -> Iterator[Outcome]:
    """Train the replicates of a job one after the other, and yield their outcomes; see Job.train."""
    yield from train_courses(job, report, RecallRun)


def kept_networks(record: Record, weights: Weights) -> nn.Module:
    """Load the trained networks of a record."""
    task = RecallTask.of_config(record["config"]["settings"]["setup"])
    return restored(task, record["seed"], weights).module
