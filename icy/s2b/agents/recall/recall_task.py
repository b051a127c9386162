"""Learners of the recall task, and the complete configurations of trainings."""

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import torch

from icy.core.entry import CORE
from icy.core.errors import unknown
from icy.core.fields import checked
from icy.core.registry import registry
from icy.core.streams import stream_key
from icy.s2b.agents.agent_task import AgentTask, LearningMethod, memory_settings, network_settings
from icy.s2b.agents.networks.reconstruction import ReconstructionSettings
from icy.s2b.agents.r2d2.r2d2_settings import PRESETS as R2D2_PRESETS
from icy.s2b.agents.r2d2.r2d2_settings import R2D2Settings
from icy.s2b.recall import RecallSettings

from .learning import RecallLearningSettings, RecallMemory, RecallMemoryLearning, RecallR2D2

MEMORY = "pairs"
OBSERVATIONS = 1_000_000  # as in the authors' scripts; the papers do not give the number
# Every learning agent of the papers has the reconstruction loss (MetaRG22 and MetaRG24, section 4).
PRESETS = MappingProxyType(
    {
        name: replace(settings, observations=OBSERVATIONS, reconstruction=ReconstructionSettings())
        for name, settings in {**R2D2_PRESETS, "default": R2D2_PRESETS["metarg22"]}.items()
    }
)


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
    """Find a core by name, ignoring case; return its exact name and its learner.

    Raises:
        UnknownNameError: no core has this name.
    """
    known = [MEMORY, *(entry.name for entry in registry.entries(CORE))]
    core = next((name for name in known if name.lower() == given.lower()), None)
    if core is None:
        raise unknown("core", given, known, registry.plugin_hint(CORE))
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
