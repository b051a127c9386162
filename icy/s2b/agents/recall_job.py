"""Jobs that train agents of the recall task: one task with several seeds."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from icy.core.entry import CORE
from icy.core.errors import InvalidSettingError, require_known
from icy.core.fields import changed_fields, checked
from icy.core.registry import registry
from icy.core.streams import stream_key
from icy.core.text import counted
from icy.core.types import Choices
from icy.records.record import Record
from icy.s2b.evaluation import episode_seeds
from icy.s2b.recall import BatchedRecall, RecallDeal, RecallSettings
from icy.s2b.stimuli import REPRESENTATIONS
from icy.training.combinations import jobs_of_each
from icy.training.job import Job, Outcome, Replicate, Report

from .agent_job import AgentJob, check_run, learner_options, run_options
from .agent_run import FINAL_SEED, FLOOR_EPISODES, AgentRun
from .agent_run import train as train_courses
from .agent_task import SAME_PRESETS, AgentTask, LearningMethod, exact_name, memory_settings, network_settings
from .networks.network import ReconstructionSettings
from .r2d2.r2d2_settings import PRESETS as R2D2_PRESETS
from .r2d2.r2d2_settings import R2D2Settings
from .recall_learning import RecallLearningSettings, RecallMemory, RecallMemoryLearning, RecallR2D2
from .saved_networks import Weights, restored
from .spec import RecallSpec

MEMORY = "pairs"
OBSERVATIONS = 1_000_000  # as in the authors' scripts; the papers do not give the number
# Every learning agent of the papers has the reconstruction loss (MetaRG22 and MetaRG24, section 4).
PRESETS = MappingProxyType(
    {
        name: replace(settings, observations=OBSERVATIONS, reconstruction=ReconstructionSettings())
        for name, settings in {**R2D2_PRESETS, "default": R2D2_PRESETS["metarg22"]}.items()
    }
)
TRAINING_EPISODES, TRAINING_SEED = 4000, 77  # for estimating the best answer to a number; not used in evaluations
BINS = 400  # bins of numbers from -1 to 1


@dataclass(frozen=True, kw_only=True)
class RecallTask(AgentTask):
    """Everything except the seed that can change the results of a training in the recall task; see AgentTask.

    The field `game` has the settings of the task.
    """

    speaker: str = ""

    @property
    def how(self) -> LearningMethod:
        """The learning method."""
        return LEARNERS[self.learner]

    def game_settings(self) -> Any:
        """Return the settings of the task."""
        return RecallSettings(**checked(RecallSettings, self.game, "setting of the recall task"))


def core_and_learner(given: str) -> tuple[str, str]:
    """Find a core by name, ignoring case; return its exact name and its learner. Raises the errors of `exact_name`."""
    core = exact_name("core", given, [MEMORY, *(entry.name for entry in registry.entries(CORE))])
    return core, "ppo" if core == MEMORY else "r2d2"


def make_memory(task: AgentTask, seed: int) -> RecallMemoryLearning:
    """Create a task's training of the attention memory by PPO."""
    game: Any = task.game_settings()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_key(seed, "weights") % 2**63)
        model = RecallMemory(game, memory_settings(task))
    settings: RecallLearningSettings = task.learner_settings()
    return RecallMemoryLearning(model, game, settings, seed)


def make_r2d2(task: AgentTask, seed: int) -> RecallR2D2:
    """Create a task's training of a core by R2D2."""
    settings, game = task.learner_settings(), task.game_settings()
    network = network_settings(task, settings.network)
    return RecallR2D2(game, replace(settings, network=network), seed)


LEARNERS = {
    "ppo": LearningMethod(
        "From the rewards of its own answers only.", make_memory,
        RecallLearningSettings, {"learner": "ppo"}, ("query", "alignment_rate"), cores=False,
    ),
    "r2d2": LearningMethod(
        "By action values learned from a replay buffer, step by step.", make_r2d2,
        R2D2Settings, {"players": "listener", "sad": False},
        ("network", "speaker", "shared"), presets=PRESETS, memories=False,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class RecallJob(AgentJob):
    """A job that trains one agent of the recall task with several seeds; see AgentJob."""

    kind = "recall"

    def of_game(self, replicate: Replicate) -> tuple[Choices, Choices]:
        """Return the stimuli, and the settings of the task that differ from their defaults."""
        return {"stimuli": replicate.condition}, _changes(self.task.game_settings())

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
    return nn.ModuleDict(restored(task, record["seed"], weights).networks()).eval()


# -- floors -----------------------------------------------------------------------------------------------------------


@functools.cache
def recall_floors(settings: RecallSettings, episodes: int = 250, seed: int = 123) -> dict[str, float]:
    """Return the accuracies in the last shot of two agents that do not remember earlier games.

    Args:
        settings: settings of the task.
        episodes: number of episodes.
        seed: seed of the evaluation, see `icy.s2b.evaluate`.

    Returns:
        `no_memory`: an agent that does not remember the current stimulus either, and always gives the most frequent
        right
            answer; `one_game`: an agent that remembers the current stimulus, and gives the answer that is most often
            right for the stimulus's number in the queried dimension.

    Example:
        >>> floors = recall_floors(RecallSettings(representation="ohe"), episodes=50)
        >>> round(floors["no_memory"], 2), floors["one_game"]
        (0.34, 1.0)
    """
    evaluation = _deal(settings, episodes, seed)
    constant = np.stack([evaluation.answers == value for value in range(settings.most)])
    floors = {"no_memory": float(_mean(constant, evaluation).max())}
    if settings.representation == "ohe":
        return floors | {"one_game": 1.0}
    training = _deal(replace(settings, shots=1), TRAINING_EPISODES, TRAINING_SEED)
    counts = np.zeros((BINS, settings.most))
    weight = (training.there / training.there.sum(1, keepdims=True))[training.there]
    np.add.at(counts, (_bins(training)[training.there], training.answers[training.there]), weight)
    right = counts.argmax(1)[_bins(evaluation)] == evaluation.answers
    return floors | {"one_game": float(_mean(right, evaluation))}


def _deal(settings: RecallSettings, episodes: int, seed: int) -> RecallDeal:
    task = BatchedRecall(settings, episodes=episodes)
    task.reset(seeds=episode_seeds(seed, episodes))
    return task.dealt()


def _bins(dealt: RecallDeal) -> np.ndarray:
    return np.clip((dealt.numbers[..., 0] + 1) * BINS / 2, 0, BINS - 1).astype(np.int64)


def _mean(right: np.ndarray, dealt: RecallDeal) -> np.ndarray:
    """Return the fraction of right answers in the last shot, averaged over episodes."""
    return np.asarray(((right & dealt.last).sum(-1) / dealt.last.sum(-1)).mean(-1))
