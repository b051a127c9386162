"""What tells one training of agents from another, as a configuration that a record holds and a training is made of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, Self, cast

from icy.config.presets import OLD_PRESETS
from icy.core.entry import CORE
from icy.core.errors import unknown
from icy.core.fields import checked, differing
from icy.core.lazy import load_object
from icy.core.registry import SPEAKER, registry
from icy.s2b.settings import GameSettings

from .training import AgentTraining

MEMORIES = ("pairs", "joint")  # cores that are attention memories of whole games
SAME_PRESETS = {"metarg24": "metarg22"}  # names of one preset, and the one that records have


@dataclass(frozen=True)
class LearningMethod:
    """A way to learn, which turns a setup into a training.

    Attributes:
        description: one line.
        make: "module:function" of a setup and a seed, which returns the `AgentTraining`.
        settings: "module:class" of its settings, a dataclass with the number of `updates`. Where its defaults depend on
            the game, `usual(game)` of the class makes them.
        fixed: settings that its name stands for.
        hidden: settings that stand elsewhere in a setup.
        presets: "module:object" of a mapping from names to such settings; "" for none.
        of_cores: "module:class" of its settings where a registered core learns, if they are others.
        memories: whether it trains attention memories.
        cores: whether it trains registered cores.
        both: whether the speaker learns as well.
    """

    description: str
    make: str
    settings: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    hidden: Sequence[str] = ()
    presets: str = ""
    of_cores: str = ""
    memories: bool = True
    cores: bool = True
    both: bool = False

    def settings_class(self, core: str) -> Any:
        """Return the class of its settings beside a core."""
        return load_object(self.settings if core in MEMORIES or not self.of_cores else self.of_cores)

    def made(self, core: str, given: Mapping[str, Any], preset: str, game: GameSettings) -> Any:
        """Return its settings in a game.

        Raises:
            IcyError: an unknown preset or setting, or a value that cannot be.
        """
        of = self.settings_class(core)
        usual = of.usual(game) if hasattr(of, "usual") else of()
        presets = {"default": usual, **(load_object(self.presets) if self.presets else {})}
        if preset not in presets:
            raise unknown("preset of this learner", preset, list(presets))
        own = checked(of, given, "setting of the learner", {*self.fixed, *self.hidden})
        return replace(presets[preset], **self.fixed, **own)

    def complete(self, core: str, given: Mapping[str, Any], preset: str, game: GameSettings) -> dict[str, Any]:
        """Return all of its settings that stand nowhere else, by name. Errors as for `made`."""
        made, left_out = self.made(core, given, preset, game), {*self.fixed, *self.hidden}
        return {f.name: getattr(made, f.name) for f in fields(made) if f.name not in left_out}

    def changes(self, core: str, given: Mapping[str, Any], preset: str, game: GameSettings) -> dict[str, Any]:
        """Return the settings that differ from the preset's; of one that is several, those that differ from the usual.

        Errors as for `made`.
        """
        made, usual = self.made(core, given, preset, game), self.made(core, {}, preset, game)
        changed = differing(made, usual)
        return {n: differing(v, cast(Any, type(v))()) if is_dataclass(v) else v for n, v in changed.items()}


_DEALT, _PAIR = f"{__package__}.makers:make_dealt", f"{__package__}.makers:make_pair"
_OF_DEALT, _OF_PAIR = (
    f"{__package__}.memories.dealt_learning:DealtLearningSettings",
    f"{__package__}.memories.pair_learning:PairSettings",
)
_SIDES = ("speaker", "listener", "seed")
_R2D2, _OF_R2D2 = f"{__package__}.makers:make_r2d2", f"{__package__}.r2d2.r2d2_learning:R2D2Settings"
_CORES = f"{__package__}.networks.core_learning:"

# A learner comes in with a line here and a function that makes its `AgentTraining`.
LEARNERS: dict[str, LearningMethod] = {
    "ppo": LearningMethod(
        "By the rewards of its own decisions alone.", _DEALT, _OF_DEALT, {"learner": "ppo"},
        of_cores=f"{_CORES}CoreLearningSettings",
    ),
    "supervised": LearningMethod(
        "On the right decisions.",
        _DEALT, _OF_DEALT, {"learner": "supervised"}, of_cores=f"{_CORES}SupervisedCoreSettings",
    ),
    "r2d2": LearningMethod(
        "By values learned from a replay, step by step.",
        _R2D2, _OF_R2D2, {"players": "listener", "sad": False}, ("network", "speaker", "shared"),
        presets=f"{__package__}.r2d2.r2d2_learning:PRESETS", memories=False,
    ),
    "vdn": LearningMethod(
        "Speaker and listener together by R2D2, with summed values; with sad=true, each is told the other's choices.",
        _R2D2, _OF_R2D2, {"players": "both"}, ("network", "speaker"),
        presets=f"{__package__}.r2d2.r2d2_learning:PRESETS", memories=False, both=True,
    ),
    "pair": LearningMethod(
        "Speaker and listener together, by reward alone.",
        _PAIR, _OF_PAIR, {"estimator": "reinforce"}, _SIDES, cores=False, both=True,
    ),
    "pair-gumbel": LearningMethod(
        "Speaker and listener together, with gradients through the messages.",
        _PAIR, _OF_PAIR, {"estimator": "gumbel"}, _SIDES, cores=False, both=True,
    ),
}  # fmt: skip


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
    game: Mapping[str, Any]
    speaker: str = "posdis"
    deaf: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    speaker_options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    preset: str = "default"
    observations: int | None = None

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a setup by what `config` gave, also in an older version that named a preset otherwise.

        Raises:
            IcyError: it is of another version of icy.
        """
        preset = config.get("preset", "default")
        return cls(**checked(cls, {**config, "preset": OLD_PRESETS.get(preset, preset)}, "part of a training"))

    def config(self) -> dict[str, Any]:
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

    def changes(self) -> dict[str, Any]:
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
        make = cast("Callable[[AgentTask, int], AgentTraining]", load_object(self.how.make))
        return make(self, seed)


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
