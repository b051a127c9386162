"""What tells one training of agents from another, as a configuration that a record holds and a training is made of."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, Self, cast

import torch

from icy.config.presets import OLD_PRESETS
from icy.core.entry import CORE
from icy.core.errors import InvalidSettingError, unknown
from icy.core.fields import changed_fields, checked
from icy.core.registry import SPEAKER, registry
from icy.core.streams import stream_key
from icy.core.types import Choices, Fields
from icy.s2b.settings import GameSettings

from .cores.core import takes
from .memories.attention import MemoryListener, MemorySettings
from .memories.dealt_learning import DealtLearning, DealtLearningSettings
from .memories.pair_learning import PairLearning, PairSettings
from .memories.speaker import SpeakerSettings
from .networks.core_learning import CoreLearning, CoreLearningSettings, SupervisedCoreSettings
from .networks.listener import DEFAULTS, CoreListener
from .networks.network import NetworkSettings
from .r2d2.r2d2_learning import PRESETS, R2D2Learning, R2D2Settings
from .training import AgentTraining

MEMORIES = ("pairs", "joint")  # cores that are attention memories of whole games
SAME_PRESETS = {"metarg24": "metarg22"}  # names of one preset, and the one that records have


@dataclass(frozen=True)
class LearningMethod:
    """A way to learn, which turns a task into a training.

    Attributes:
        description: one line.
        make: a function of a task and a seed that returns the `AgentTraining`.
        settings: the class of its settings, a dataclass with the number of `updates`. Where its defaults depend on the
            game, `usual(game)` of the class makes them.
        fixed: settings that its name stands for.
        hidden: settings that stand elsewhere in a setup.
        presets: such settings by name, besides "default".
        of_cores: the class of its settings where a registered core learns, if it is another one.
        memories: whether it trains attention memories.
        cores: whether it trains registered cores.
        both: whether the speaker learns as well.
    """

    description: str
    make: Callable[..., AgentTraining]
    settings: type[Any]
    fixed: Fields = field(default_factory=dict)
    hidden: Sequence[str] = ()
    presets: Fields = field(default_factory=dict)
    of_cores: type[Any] | None = None
    memories: bool = True
    cores: bool = True
    both: bool = False

    def settings_class(self, core: str) -> Any:
        """Return the class of its settings beside a core."""
        return self.settings if core in MEMORIES or self.of_cores is None else self.of_cores

    def made(self, core: str, given: Fields, preset: str, game: GameSettings) -> Any:
        """Return its settings in a game.

        Raises:
            IcyError: an unknown preset or setting, or a value that cannot be.
        """
        of = self.settings_class(core)
        usual = of.usual(game) if hasattr(of, "usual") else of()
        presets = {"default": usual, **self.presets}
        if preset not in presets:
            raise unknown("preset of this learner", preset, list(presets))
        own = checked(of, given, "setting of the learner", {*self.fixed, *self.hidden})
        return replace(presets[preset], **self.fixed, **own)

    def complete(self, core: str, given: Fields, preset: str, game: GameSettings) -> Choices:
        """Return all of its settings that stand nowhere else, by name. Errors as for `made`."""
        made, left_out = self.made(core, given, preset, game), {*self.fixed, *self.hidden}
        return {f.name: getattr(made, f.name) for f in fields(made) if f.name not in left_out}

    def changes(self, core: str, given: Fields, preset: str, game: GameSettings) -> Choices:
        """Return the settings that differ from the preset's; of one that is several, those that differ from the usual.

        Errors as for `made`.
        """
        made, usual = self.made(core, given, preset, game), self.made(core, {}, preset, game)
        changed = changed_fields(made, usual)
        return {n: changed_fields(v, cast(Any, type(v))()) if is_dataclass(v) else v for n, v in changed.items()}


@dataclass(frozen=True, kw_only=True)
class AgentTask:
    """All that can change the numbers of a training, but its seed.

    Attributes:
        core: what the listener remembers an episode with.
        learner: how it learns.
        game: settings of the game, as a dictionary.
        speaker: the speaker beside it; "learned" where it learns as well.
        deaf: whether the listener is given no messages.
        options: further arguments of the core.
        speaker_options: further arguments of a speaker that learns.
        settings: all settings of the learner.
        preset: that they started from.
        observations: after how many training ends, if the updates are not over before.
    """

    core: str
    learner: str
    game: Fields
    speaker: str = "posdis"
    deaf: bool = False
    options: Fields = field(default_factory=dict)
    speaker_options: Fields = field(default_factory=dict)
    settings: Fields = field(default_factory=dict)
    preset: str = "default"
    observations: int | None = None

    @classmethod
    def of_config(cls, config: Fields) -> Self:
        """Return a task by what `config` gave, also in an older version that named a preset otherwise.

        Raises:
            IcyError: it is of another version of icy.
        """
        preset = config.get("preset", "default")
        return cls(**checked(cls, {**config, "preset": OLD_PRESETS.get(preset, preset)}, "part of a training"))

    def config(self) -> Choices:
        """Return it as JSON has it."""
        return asdict(self)

    @property
    def how(self) -> LearningMethod:
        """How it learns."""
        return find_learner(self.learner)

    @property
    def model(self) -> str:
        """Core and learner."""
        return f"{self.core}+{self.learner}"

    @property
    def updates(self) -> int:
        """Number of updates, if the observations are not over before."""
        return int(self.learner_settings().updates)

    def learner_settings(self) -> Any:
        """Return the settings of the learner."""
        return self.how.made(self.core, self.settings, self.preset, self.game_settings())

    def changes(self) -> Choices:
        """Return the settings of the learner that differ from the usual ones."""
        return self.how.changes(self.core, self.settings, self.preset, self.game_settings())

    def game_settings(self) -> GameSettings:
        """Return the settings of the game."""
        return GameSettings(**checked(GameSettings, self.game, "setting of the game"))

    def training(self, seed: int) -> AgentTraining:
        """Return the training that it says, at its beginning.

        Raises:
            IcyError: what does not go together.
        """
        return self.how.make(self, seed)


# -- trainings of tasks ----------------------------------------------------------------------------------------------


def make_dealt(task: AgentTask, seed: int) -> DealtLearning:
    """Make the training of a listener on dealt episodes: an attention memory, or a network with a core."""
    _check_no_speaker_options(task)
    game, settings = task.game_settings(), task.learner_settings()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_key(seed, "weights") % 2**63)
        if task.core in MEMORIES:
            return DealtLearning(MemoryListener(game, memory_settings(task)), game, settings, seed, task.speaker)
        listener = CoreListener(game, network_settings(task, DEFAULTS))
        return CoreLearning(listener, game, settings, seed=seed, speaker=task.speaker)


def make_r2d2(task: AgentTask, seed: int) -> R2D2Learning:
    """Make the training of a listener, or of both players, by R2D2."""
    _check_no_speaker_options(task)
    settings = task.learner_settings()
    network = network_settings(task, settings.network)
    beside = {} if task.how.both else {"speaker": task.speaker}
    return R2D2Learning(task.game_settings(), replace(settings, network=network, **beside), seed)


def make_pair(task: AgentTask, seed: int) -> PairLearning:
    """Make the training of a pair that learns both sides."""
    of_speaker = checked(SpeakerSettings, task.speaker_options, "setting of the speaker")
    players = {"speaker": SpeakerSettings(**of_speaker), "listener": memory_settings(task)}
    return PairLearning(task.game_settings(), replace(task.learner_settings(), **players, seed=seed))


def _check_no_speaker_options(task: AgentTask) -> None:
    if task.speaker_options:
        raise InvalidSettingError("speaker_options are for a speaker that learns, as with the learner 'pair'.")


def network_settings(task: AgentTask, usual: NetworkSettings) -> NetworkSettings:
    """Return the settings of a network with the core of a task.

    Layers that its core cannot read are left out: all for a core of raw inputs, and the joint layers, which mix stimuli
    and messages, for a core that takes `parts`.
    """
    network = replace(usual, core=task.core, options=dict(task.options), deaf=task.deaf)
    entry = registry.get(task.core, CORE)
    if getattr(entry.load(), "raw", False):
        return replace(network, stimulus=(), message=(), joint=())
    return replace(network, joint=()) if takes(entry, "parts") else network


def memory_settings(task: AgentTask) -> MemorySettings:
    given: Choices = checked(MemorySettings, task.options, "option of an attention memory", ("kind", "deaf"))
    return MemorySettings(kind=task.core, deaf=task.deaf, **given)


# A learner comes in with a line here and a function that makes its `AgentTraining`.
LEARNERS: dict[str, LearningMethod] = {
    "ppo": LearningMethod(
        "By the rewards of its own decisions alone.", make_dealt, DealtLearningSettings, {"learner": "ppo"},
        of_cores=CoreLearningSettings,
    ),
    "supervised": LearningMethod(
        "On the right decisions.",
        make_dealt, DealtLearningSettings, {"learner": "supervised"}, of_cores=SupervisedCoreSettings,
    ),
    "r2d2": LearningMethod(
        "By values learned from a replay, step by step.",
        make_r2d2, R2D2Settings, {"players": "listener", "sad": False}, ("network", "speaker", "shared"),
        presets=PRESETS, memories=False,
    ),
    "vdn": LearningMethod(
        "Speaker and listener together by R2D2, with summed values; with sad=true, each is told the other's choices.",
        make_r2d2, R2D2Settings, {"players": "both"}, ("network", "speaker"),
        presets=PRESETS, memories=False, both=True,
    ),
    "pair": LearningMethod(
        "Speaker and listener together, by reward alone.",
        make_pair, PairSettings, {"estimator": "reinforce"}, ("speaker", "listener", "seed"), cores=False, both=True,
    ),
    "pair-gumbel": LearningMethod(
        "Speaker and listener together, with gradients through the messages.",
        make_pair, PairSettings, {"estimator": "gumbel"}, ("speaker", "listener", "seed"), cores=False, both=True,
    ),
}  # fmt: skip


def find_learner(name: str) -> LearningMethod:
    """Return a learner by its name.

    Raises:
        UnknownNameError: there is none.
    """
    if name not in LEARNERS:
        raise unknown("learner", name, list(LEARNERS))
    return LEARNERS[name]


def core_name(given: str, learner: str) -> str:
    """Return the name of a core, however its letters are written, that a learner can train.

    Raises:
        UnknownNameError: there is none.
    """
    how = find_learner(learner)
    known = [*(MEMORIES if how.memories else ()), *(e.name for e in registry.entries(CORE) if how.cores)]
    if (found := next((name for name in known if name.lower() == given.lower()), None)) is not None:
        return str(found)
    raise unknown(f"core of the learner '{learner}'", given, known, registry.plugin_hint(CORE))


def speaker_name(given: str, learner: str) -> str:
    """Return the name of a speaker, or "learned" where a learner has its own.

    Raises:
        UnknownNameError: there is none.
    """
    return "learned" if find_learner(learner).both else registry.get(given, SPEAKER).name
