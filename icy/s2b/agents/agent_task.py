"""Tasks: the complete configuration of a training of agents, as stored in records."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, Self, cast

import torch

from icy.config.settings import OLD_PRESETS
from icy.core.entry import CORE
from icy.core.errors import InvalidSettingError, require_known, unknown
from icy.core.fields import changed_fields, checked, stored_names
from icy.core.registry import SPEAKER, registry
from icy.core.streams import stream_key
from icy.core.types import Choices, Fields
from icy.s2b.settings import GameSettings

from .cores.core import takes
from .memories.attention import MemoryListener, MemorySettings
from .memories.dealt_learning import DealtLearning, DealtLearningSettings
from .memories.pair_learning import PairLearning, PairSettings
from .memories.speaker import SpeakerSettings
from .networks.listener import DEFAULTS, CoreLearning, CoreLearningSettings, CoreListener, SupervisedCoreSettings
from .networks.network import NetworkSettings
from .r2d2.r2d2_learning import R2D2Learning
from .r2d2.r2d2_settings import PRESETS, R2D2Settings
from .training import AgentTraining

MEMORIES = ("pairs", "joint")  # cores that are attention memories of whole games
SAME_PRESETS = {"metarg24": "metarg22"}  # alias of a preset: the name that records use


@dataclass(frozen=True)
class LearningMethod:
    """A learning algorithm, which creates the training of a task.

    Attributes:
        description: one line.
        make: a function that maps a task and a seed to an `AgentTraining`.
        settings: the class of its settings, a dataclass with the number of `updates`. If the defaults depend on the
            game, the class method `usual(game)` returns them.
        fixed: settings that follow from the learner's name.
        hidden: settings that follow from other fields of the task.
        presets: settings by the name of the preset, in addition to "default".
        of_cores: the class of its settings with registered cores, if it differs from `settings`.
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
        """Return the class of the learner's settings for a core."""
        return self.settings if core in MEMORIES or self.of_cores is None else self.of_cores

    def make_settings(self, core: str, options: Fields, preset: str, game: GameSettings) -> Any:
        """Return the learner's settings in a game.

        Raises:
            IcyError: an unknown preset or setting, or a value that is not accepted.
        """
        cls = self.settings_class(core)
        defaults = cls.usual(game) if hasattr(cls, "usual") else cls()
        same = {alias: self.presets[name] for alias, name in SAME_PRESETS.items() if name in self.presets}
        presets = {"default": defaults, **self.presets, **same}
        require_known("preset of this learner", preset, presets)
        own = checked(cls, options, "setting of the learner", {*self.fixed, *self.hidden})
        return replace(presets[preset], **self.fixed, **own)

    def complete(self, core: str, options: Fields, preset: str, game: GameSettings) -> Choices:
        """Return all settings by their names in records, except those that follow from other fields of the task.

        Raises the errors of `make_settings`.
        """
        settings, excluded = self.make_settings(core, options, preset, game), {*self.fixed, *self.hidden}
        shown = {f.name: getattr(settings, f.name) for f in fields(settings) if f.name not in excluded}
        return stored_names(type(settings), shown)

    def changes(self, core: str, options: Fields, preset: str, game: GameSettings) -> Choices:
        """Return the settings that differ from the preset, by their names in records.

        Of nested settings, only the fields that differ from the defaults are returned.

        Raises the errors of `make_settings`.
        """
        settings, usual = self.make_settings(core, options, preset, game), self.make_settings(core, {}, preset, game)
        changed = stored_names(type(settings), changed_fields(settings, usual))
        return {n: changed_fields(v, cast(Any, type(v))()) if is_dataclass(v) else v for n, v in changed.items()}


@dataclass(frozen=True, kw_only=True)
class AgentTask:
    """Everything that can change the results of a training, except its seed.

    Attributes:
        core: name of the listener's core, its memory of an episode.
        learner: name of the learner.
        game: settings of the game, as a dictionary.
        speaker: name of the speaker; "learned" if it learns as well.
        deaf: whether the listener ignores messages.
        options: further arguments of the core.
        speaker_options: further arguments of a speaker that learns.
        settings: all settings of the learner.
        preset: name of the preset that the settings are based on.
        observations: number of observations after which training ends, unless all updates are made earlier.
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
        """Return the task of a stored configuration. Old names of presets are accepted.

        Raises:
            IcyError: the configuration was written by another version of icy.
        """
        preset = config.get("preset", "default")
        return cls(**checked(cls, {**config, "preset": OLD_PRESETS.get(preset, preset)}, "part of a training"))

    def config(self) -> Choices:
        """Return the task as a dictionary for JSON."""
        return asdict(self)

    @property
    def how(self) -> LearningMethod:
        """The learning method."""
        return find_learner(self.learner)

    @property
    def model(self) -> str:
        """Names of the core and the learner."""
        return f"{self.core}+{self.learner}"

    @property
    def updates(self) -> int:
        """Number of updates, unless the limit of observations ends training earlier."""
        return int(self.learner_settings().updates)

    def learner_settings(self) -> Any:
        """Return the settings of the learner."""
        return self.how.make_settings(self.core, self.settings, self.preset, self.game_settings())

    def changes(self) -> Choices:
        """Return the settings of the learner that differ from the preset."""
        return self.how.changes(self.core, self.settings, self.preset, self.game_settings())

    def game_settings(self) -> Any:
        """Return the settings of the game."""
        return GameSettings(**checked(GameSettings, self.game, "setting of the game"))

    def training(self, seed: int) -> AgentTraining:
        """Return a new training of the task.

        Raises:
            IcyError: settings that cannot be combined.
        """
        return self.how.make(self, seed)


# -- trainings of tasks ----------------------------------------------------------------------------------------------


def make_dealt(task: AgentTask, seed: int) -> DealtLearning:
    """Create the training of a listener on dealt episodes: an attention memory, or a network with a core."""
    _check_no_speaker_options(task)
    game, settings = task.game_settings(), task.learner_settings()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_key(seed, "weights") % 2**63)
        if task.core in MEMORIES:
            return DealtLearning(MemoryListener(game, memory_settings(task)), game, settings, seed, task.speaker)
        listener = CoreListener(game, network_settings(task, DEFAULTS))
        return CoreLearning(listener, game, settings, seed=seed, speaker=task.speaker)


def make_r2d2(task: AgentTask, seed: int) -> R2D2Learning:
    """Create the training of a listener, or of both players, by R2D2."""
    _check_no_speaker_options(task)
    settings = task.learner_settings()
    network = network_settings(task, settings.network)
    beside = {} if task.how.both else {"speaker": task.speaker}
    return R2D2Learning(task.game_settings(), replace(settings, network=network, **beside), seed)


def make_pair(task: AgentTask, seed: int) -> PairLearning:
    """Create the training of a speaker and a listener that both learn."""
    options = checked(SpeakerSettings, task.speaker_options, "setting of the speaker")
    players = {"speaker": SpeakerSettings(**options), "listener": memory_settings(task)}
    return PairLearning(task.game_settings(), replace(task.learner_settings(), **players, seed=seed))


def _check_no_speaker_options(task: AgentTask) -> None:
    if task.speaker_options:
        raise InvalidSettingError("speaker_options are for a speaker that learns, as with the learner 'pair'.")


def network_settings(task: AgentTask, usual: NetworkSettings) -> NetworkSettings:
    """Return the settings of a network with the core of a task.

    A core with `raw` reads stimuli and messages directly, so the network has no encoding layers. A core that takes
    `parts` needs stimuli and messages in separate parts of its input, so the network has no joint layers.
    """
    network = replace(usual, core=task.core, options=dict(task.options), deaf=task.deaf)
    entry = registry.get(task.core, CORE)
    if getattr(entry.load(), "raw", False):
        return replace(network, stimulus=(), message=(), joint=())
    return replace(network, joint=()) if takes(entry, "parts") else network


def memory_settings(task: AgentTask) -> MemorySettings:
    options: Choices = checked(MemorySettings, task.options, "option of an attention memory", ("kind", "deaf"))
    return MemorySettings(kind=task.core, deaf=task.deaf, **options)


# A new learner needs an entry here and a function that creates its `AgentTraining`.
LEARNERS: dict[str, LearningMethod] = {
    "ppo": LearningMethod(
        "From the rewards of its own decisions only.", make_dealt, DealtLearningSettings, {"learner": "ppo"},
        of_cores=CoreLearningSettings,
    ),
    "supervised": LearningMethod(
        "From the right decisions.",
        make_dealt, DealtLearningSettings, {"learner": "supervised"}, of_cores=SupervisedCoreSettings,
    ),
    "r2d2": LearningMethod(
        "By action values learned from a replay buffer, step by step.",
        make_r2d2, R2D2Settings, {"players": "listener", "sad": False}, ("network", "speaker", "shared"),
        presets=PRESETS, memories=False,
    ),
    "vdn": LearningMethod(
        "Speaker and listener together by R2D2, with summed values; with sad=true, each sees the other's choices.",
        make_r2d2, R2D2Settings, {"players": "both"}, ("network", "speaker"),
        presets=PRESETS, memories=False, both=True,
    ),
    "pair": LearningMethod(
        "Speaker and listener together, from rewards only.",
        make_pair, PairSettings, {"estimator": "reinforce"}, ("speaker", "listener", "seed"), cores=False, both=True,
    ),
    "pair-gumbel": LearningMethod(
        "Speaker and listener together, with gradients through the messages.",
        make_pair, PairSettings, {"estimator": "gumbel"}, ("speaker", "listener", "seed"), cores=False, both=True,
    ),
}  # fmt: skip


def find_learner(name: str) -> LearningMethod:
    """Find a learner by name.

    Raises:
        UnknownNameError: no learner has this name.
    """
    require_known("learner", name, LEARNERS)
    return LEARNERS[name]


def core_name(core: str, learner: str) -> str:
    """Return the exact name of a core that a learner can train. Upper and lower case are not distinguished.

    Raises:
        UnknownNameError: the learner cannot train a core of this name.
    """
    how = find_learner(learner)
    known = [*(MEMORIES if how.memories else ()), *(e.name for e in registry.entries(CORE) if how.cores)]
    return exact_name(f"core of the learner '{learner}'", core, known)


def exact_name(what: str, core: str, known: Sequence[str]) -> str:
    """Return the exact name of a core among known names. Upper and lower case are not distinguished.

    Raises:
        UnknownNameError: no core has this name.
    """
    for name in known:
        if name.lower() == core.lower():
            return name
    raise unknown(what, core, known, registry.plugin_hint(CORE))


def speaker_name(speaker: str, learner: str) -> str:
    """Return the name of a speaker, or "learned" if the learner trains its own speaker.

    Raises:
        UnknownNameError: no speaker has this name.
    """
    return "learned" if find_learner(learner).both else registry.get(speaker, SPEAKER).name
