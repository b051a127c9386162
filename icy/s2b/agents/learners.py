"""Learners of agents: each is declared once, with its settings, their defaults, and the training that it creates."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from icy.core.entry import CORE
from icy.core.errors import require_known, unknown
from icy.core.fields import checked
from icy.core.registry import registry
from icy.core.streams import stream_key
from icy.core.types import Fields
from icy.s2b.settings import GameSettings

from .cores.core import takes
from .memories.attention import MemoryListener, MemorySettings
from .memories.dealt_learning import DealtLearning, DealtLearningSettings
from .memories.pair_learning import PairLearning, PairSettings
from .memories.speaker import SpeakerSettings
from .networks.listener import DEFAULTS, SUPERVISED, CoreLearning, CoreListener
from .networks.network import NetworkSettings, ReconstructionSettings
from .r2d2.r2d2_learning import PRESETS, R2D2Learning, R2D2Settings
from .recall_learning import RECALL, RecallMemory, RecallMemoryLearning, RecallR2D2
from .training import AgentTraining


@dataclass(frozen=True)
class Learner:
    """A learning algorithm for some cores, which creates the training of an agent.

    Attributes:
        name: name of the learner. One name may stand for several algorithms, for different cores.
        make: a function from the settings of a row (`icy.s2b.agents.kinds.AgentSettings`) and a seed to an
            `AgentTraining`.
        usual: a function from the settings of the game to the default settings of the learner, a dataclass with the
            number of `updates`.
        fixed: settings that follow from the learner's name.
        hidden: settings that follow from other fields of the row, or have no effect.
        presets: settings by the name of the preset, in addition to "default".
        memories: the attention memories that it trains; by default it trains registered cores.
        both: whether the speaker learns as well.
    """

    name: str
    make: Callable[[Any, int], AgentTraining]
    usual: Callable[[Any], Any]
    fixed: Fields
    hidden: Sequence[str]
    presets: Mapping[str, Any] = field(default_factory=dict)
    memories: Sequence[str] = ()
    both: bool = False

    @property
    def derived(self) -> set[str]:
        """Names of the settings that follow from the rest of the row."""
        return {*self.fixed, *self.hidden}

    def settings(self, game: Any, preset: str, changes: Fields) -> Any:
        """Return the settings of a preset with changes.

        Raises:
            IcyError: an unknown preset or setting, or a value that is not accepted.
        """
        presets = {"default": self.usual(game), **self.presets}
        require_known("preset of this learner", preset, presets)
        own = checked(type(presets[preset]), changes, "setting of the learner", self.derived)
        return replace(presets[preset], **self.fixed, **own)


def learners_called(kind: str, name: str) -> list[Learner]:
    """Return the learners of a name in a kind of job.

    Raises:
        UnknownNameError: no learner has this name.
    """
    require_known("learner", name, list(dict.fromkeys(learner.name for learner in LEARNERS[kind])))
    return [learner for learner in LEARNERS[kind] if learner.name == name]


def learner_of(core: str, learners: Sequence[Learner]) -> Learner:
    """Return the one of some learners that trains a core; the last one trains registered cores."""
    return next((learner for learner in learners if core in learner.memories), learners[-1])


def find_core(learners: Sequence[Learner], what: str, core: str) -> str:
    """Return the exact name of a core that one of the learners trains. Upper and lower case are not distinguished.

    Raises:
        UnknownNameError: no core has this name.
    """
    cores = [entry.name for entry in registry.entries(CORE)]
    known = [name for learner in learners for name in learner.memories or cores]
    for name in known:
        if name.lower() == core.lower():
            return name
    raise unknown(what, core, known, registry.plugin_hint(CORE))


# -- trainings ---------------------------------------------------------------------------------------------------------


@contextmanager
def _initial_weights(seed: int) -> Iterator[None]:
    """Within the block, the weights of new networks are those of the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_key(seed, "weights") % 2**63)
        yield


def make_memory(settings: Any, seed: int) -> DealtLearning:
    """Create the training of an attention memory on dealt episodes."""
    with _initial_weights(seed):
        model = MemoryListener(settings.game, memory_settings(settings))
    return DealtLearning(model, settings.game, settings.learning, seed, settings.speaker)


def make_core(settings: Any, seed: int) -> CoreLearning:
    """Create the training of a network with a core on dealt episodes."""
    with _initial_weights(seed):
        model = CoreListener(settings.game, network_settings(settings, DEFAULTS))
    return CoreLearning(model, settings.game, settings.learning, seed=seed, speaker=settings.speaker)


def make_r2d2(settings: Any, seed: int) -> R2D2Learning:
    """Create the training of a listener, or of both players, by R2D2."""
    learning = replace(settings.learning, network=network_settings(settings, settings.learning.network))
    if learning.players == "listener":
        learning = replace(learning, speaker=settings.speaker)
    return R2D2Learning(settings.game, learning, seed)


def make_pair(settings: Any, seed: int) -> PairLearning:
    """Create the training of a speaker and a listener that both learn."""
    speaker = SpeakerSettings(**checked(SpeakerSettings, settings.speaker_options, "setting of the speaker"))
    learning = replace(settings.learning, speaker=speaker, listener=memory_settings(settings), seed=seed)
    return PairLearning(settings.game, learning)


def make_recall_memory(settings: Any, seed: int) -> RecallMemoryLearning:
    """Create the training of the recall task's attention memory by PPO."""
    with _initial_weights(seed):
        model = RecallMemory(settings.game, memory_settings(settings))
    return RecallMemoryLearning(model, settings.game, settings.learning, seed)


def make_recall_r2d2(settings: Any, seed: int) -> RecallR2D2:
    """Create the training of a core in the recall task by R2D2."""
    network = network_settings(settings, settings.learning.network)
    return RecallR2D2(settings.game, replace(settings.learning, network=network), seed)


def network_settings(settings: Any, usual: NetworkSettings) -> NetworkSettings:
    """Return the settings of a network with the core of a row.

    A core with `raw` reads stimuli and messages directly, so the network has no encoding layers. A core that takes
    `parts` needs stimuli and messages in separate parts of its input, so the network has no joint layers.
    """
    network = replace(usual, core=settings.core, options=dict(settings.options), deaf=settings.deaf)
    entry = registry.get(settings.core, CORE)
    if getattr(entry.load(), "raw", False):
        return replace(network, stimulus=(), message=(), joint=())
    return replace(network, joint=()) if takes(entry, "parts") else network


def memory_settings(settings: Any) -> MemorySettings:
    """Return the settings of an attention memory."""
    options = checked(MemorySettings, settings.options, "option of an attention memory", ("kind", "deaf"))
    return MemorySettings(kind=settings.core, deaf=settings.deaf, **options)


# -- the learners. A new learner needs an entry here and a function that creates its `AgentTraining` -------------------


MEMORIES = ("pairs", "joint")  # attention memories of whole games
OF_CORES = ("baseline", "discount", "trace", "value_weight")  # settings of PPO that attention memories do not have
OF_RECALL = ("games_per_shot",)
FROM_REWARDS, FROM_ANSWERS = {"learner": "ppo"}, {"learner": "supervised"}
OF_LISTENER = {"players": "listener", "sad": False}  # settings of R2D2 if only the listener learns
OF_PLAYERS = ("network", "speaker")  # settings of R2D2 that follow from the row
OBSERVATIONS = 1_000_000  # as in the authors' scripts of the recall task; the papers do not give the number
# Every learning agent of the papers has the reconstruction loss (MetaRG22 and MetaRG24, section 4).
RECALL_PRESETS = {
    name: replace(settings, observations=OBSERVATIONS, reconstruction=ReconstructionSettings())
    for name, settings in {**PRESETS, "default": PRESETS["metarg22"]}.items()
}


def of_cores(game: GameSettings) -> DealtLearningSettings:
    """Return the default settings of supervised learning with a core."""
    return replace(DealtLearningSettings.usual(game), **SUPERVISED)


def of_r2d2(game: Any) -> R2D2Settings:
    """Return the default settings of R2D2."""
    return R2D2Settings()


HIDDEN_IN_RECALL = ("query", "alignment_rate", *OF_CORES)
OF_MEMORIES: Any = {"hidden": (*OF_CORES, *OF_RECALL), "memories": MEMORIES}
PAIR: Any = {"hidden": ("speaker", "listener", "seed"), "memories": MEMORIES, "both": True}
LEARNERS: Mapping[str, Sequence[Learner]] = {  # by kind of job
    "s2b": (
        Learner("ppo", make_memory, DealtLearningSettings.usual, FROM_REWARDS, **OF_MEMORIES),
        Learner("ppo", make_core, DealtLearningSettings.usual, FROM_REWARDS, OF_RECALL),
        Learner("supervised", make_memory, DealtLearningSettings.usual, FROM_ANSWERS, **OF_MEMORIES),
        Learner("supervised", make_core, of_cores, FROM_ANSWERS, OF_RECALL),
        Learner("r2d2", make_r2d2, of_r2d2, OF_LISTENER, (*OF_PLAYERS, "shared"), PRESETS),
        Learner("vdn", make_r2d2, of_r2d2, {"players": "both"}, OF_PLAYERS, PRESETS, both=True),
        Learner("pair", make_pair, lambda game: PairSettings(), {"estimator": "reinforce"}, **PAIR),
        Learner("pair-gumbel", make_pair, lambda game: PairSettings(), {"estimator": "gumbel"}, **PAIR),
    ),
    "recall": (
        Learner("ppo", make_recall_memory, lambda game: RECALL, FROM_REWARDS, HIDDEN_IN_RECALL, memories=("pairs",)),
        Learner("r2d2", make_recall_r2d2, of_r2d2, OF_LISTENER, (*OF_PLAYERS, "shared"), RECALL_PRESETS),
    ),
}
