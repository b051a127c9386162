"""Tasks, the complete configuration of a training of agents, and jobs, which train one task with several seeds."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache, partial
from typing import Any, Self, cast

import torch

from icy.config.settings import OLD_PRESETS
from icy.core.checks import seed_list, whole_number
from icy.core.code import short_hash
from icy.core.entry import CORE, Entry
from icy.core.errors import IcyError, InvalidSettingError, require_known, unknown
from icy.core.fields import changed_fields, checked, stored_names
from icy.core.registry import SPEAKER, registry
from icy.core.streams import stream_key
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.records.record import Record
from icy.s2b.evaluation import CONSTANT, NEVER_LISTENING, evaluate, never_listening
from icy.s2b.settings import GameSettings
from icy.training.combinations import jobs_of_each
from icy.training.job import Job, Replicate
from icy.training.task_models import ROWS, behavior_of, fixed_randomness, sums_of

from .cores.core import made_of, takes
from .memories.attention import MemoryListener, MemorySettings
from .memories.dealt_learning import DealtLearning, DealtLearningSettings
from .memories.pair_learning import PairLearning, PairSettings
from .memories.speaker import SpeakerSettings
from .networks.listener import DEFAULTS, CoreLearning, CoreLearningSettings, CoreListener, SupervisedCoreSettings
from .networks.network import NetworkSettings
from .r2d2.r2d2_learning import PRESETS, R2D2Learning, R2D2Settings
from .spec import RecallSpec, S2BSpec
from .training import AgentTraining

# -- tasks: the complete configuration of a training of agents, as stored in records -----------------------------------


MEMORIES = ("pairs", "joint")  # cores that are attention memories of whole games
SAME_PRESETS = {"metarg24": "metarg22"}  # alias of a preset: the name that records use


@dataclass(frozen=True)
class LearningMethod:
    """A learning algorithm, which creates the training of a task.

    Attributes:
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

    def learner_settings(self, options: Fields | None = None) -> Any:
        """Return the settings of the learner; or with `options` its preset with these changes.

        Raises:
            IcyError: an unknown preset or setting, or a value that is not accepted.
        """
        how = self.how
        cls = how.settings_class(self.core)
        defaults = cls.usual(self.game_settings()) if hasattr(cls, "usual") else cls()
        presets = {"default": defaults, **how.presets}
        require_known("preset of this learner", self.preset, presets)
        given = self.settings if options is None else options
        own = checked(cls, given, "setting of the learner", {*how.fixed, *how.hidden})
        return replace(presets[self.preset], **how.fixed, **own)

    def completed(self) -> Self:
        """Return the task as records have it: with all settings of the learner, and one name for equal presets.

        Settings that follow from other fields of the task are left out. Raises the errors of `learner_settings`.
        """
        settings, excluded = self.learner_settings(), {*self.how.fixed, *self.how.hidden}
        shown = {f.name: getattr(settings, f.name) for f in fields(settings) if f.name not in excluded}
        whole = stored_names(type(settings), shown)
        length = None if "observations" in whole else self.observations
        return replace(self, settings=whole, preset=SAME_PRESETS.get(self.preset, self.preset), observations=length)

    def changes(self) -> Choices:
        """Return the learner's settings that differ from the preset, by their names in records.

        Of nested settings, only the fields that differ from the defaults are returned.
        """
        settings = self.learner_settings()
        changed = stored_names(type(settings), changed_fields(settings, self.learner_settings({})))
        return {n: changed_fields(v, cast(Any, type(v))()) if is_dataclass(v) else v for n, v in changed.items()}

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
OF_PAIR = ("speaker", "listener", "seed")
LEARNERS: dict[str, LearningMethod] = {
    "ppo": LearningMethod(make_dealt, DealtLearningSettings, {"learner": "ppo"}, of_cores=CoreLearningSettings),
    "supervised": LearningMethod(
        make_dealt, DealtLearningSettings, {"learner": "supervised"}, of_cores=SupervisedCoreSettings
    ),
    "r2d2": LearningMethod(
        make_r2d2, R2D2Settings, {"players": "listener", "sad": False}, ("network", "speaker", "shared"), PRESETS,
        memories=False,
    ),
    "vdn": LearningMethod(
        make_r2d2, R2D2Settings, {"players": "both"}, ("network", "speaker"), PRESETS, memories=False, both=True
    ),
    "pair": LearningMethod(make_pair, PairSettings, {"estimator": "reinforce"}, OF_PAIR, cores=False, both=True),
    "pair-gumbel": LearningMethod(make_pair, PairSettings, {"estimator": "gumbel"}, OF_PAIR, cores=False, both=True),
}  # fmt: skip


def find_learner(name: str) -> LearningMethod:
    """Find a learner by name.

    Raises:
        UnknownNameError: no learner has this name.
    """
    require_known("learner", name, LEARNERS)
    return LEARNERS[name]


def exact_name(what: str, core: str, known: Sequence[str]) -> str:
    """Return the exact name of a core among known names. Upper and lower case are not distinguished.

    Raises:
        UnknownNameError: no core has this name.
    """
    for name in known:
        if name.lower() == core.lower():
            return name
    raise unknown(what, core, known, registry.plugin_hint(CORE))


# -- jobs that train agents of S2B: one task with several seeds --------------------------------------------------------


QUICK_OBSERVATIONS = 20_000  # for learners with a length in observations
FINAL_SEED = 123  # seed of the final evaluation episodes, the same as in `evaluate` with one seed
FLOOR_EPISODES = 250  # largest number of final evaluation episodes that floors are computed on
READINGS = 20  # default number of evaluations during a training
ON_AXES = ("shots", "samples", "distractors", "most")
NAMED = (*ON_AXES, "least")  # settings of the game that have their own option
WIDTH, STEPS, EPISODES = 10, 3, 4  # of the run that shows the behavior of a core or speaker


@dataclass(frozen=True)
class AgentJob(Job):
    """A job that trains one task with several seeds, one after the other.

    Attributes:
        task: the core, the learner and the game.
        episodes: number of episodes of the final evaluation.
        report_every: number of updates between evaluations during training.
        eoa: number of episodes in the final measurement of ease of acquisition; 0 for none.
    """

    task: AgentTask
    episodes: int = 1000
    report_every: int = 20
    checkpoints: bool = field(default=True, kw_only=True)
    eoa: int = 0

    kind = "s2b"
    early = "support"  # key of the accuracy in the support, or in the recall task in the first shot

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "device", "cpu")  # the learners' networks are small, and most of the time is dealing

    @property
    def name(self) -> str:
        """Names of the core and the learner."""
        return self.task.model + (" (deaf)" if self.task.deaf else "")

    @property
    def entries(self) -> list[Entry]:
        """Registry entries of the core and the speaker."""
        return [*super().entries, *_registered(self.task)]

    def config(self, replicate: Replicate) -> Choices:
        """Return the configuration of a replicate: all choices that can change its results.

        `options` has the settings that differ from their defaults, and `settings` all of them.
        """
        task = self.task
        facts, changed = self.of_game(replicate)
        return {
            "model": self.name,
            "grammar": replicate.condition,
            "seed": replicate.seed,
            **facts,
            "options": {
                **changed,
                **task.options,
                **{f"speaker.{name}": value for name, value in task.speaker_options.items()},
                **task.changes(),
                **({"observations": task.observations} if task.observations else {}),
            },
            "settings": {
                "setup": task.config(),
                "episodes": self.episodes,
                "report_every": self.report_every,
                **({"eoa": self.eoa} if self.eoa else {}),
            },
        }

    def of_game(self, replicate: Replicate) -> tuple[Choices, Choices]:
        """Return the settings of the game that have their own columns, and the others that differ from defaults."""
        game = self.task.game
        usual = asdict(GameSettings(most=game["most"], dimensions=game["dimensions"]))
        own = {f"game.{name}": v for name, v in game.items() if name not in NAMED and v != usual[name]}
        return {"values": f"{game['least']}-{game['most']}", **{n: game[n] for n in ON_AXES if n != "most"}}, own

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Return the versions of the kind of job, the core and the speaker."""
        return super().versions(replicate) | {e.kind: e.full_version for e in _registered(self.task)}

    def behavior(self) -> dict[str, Fields]:
        """Return the behavior of the core and of the speaker by qualified name, if they are code of users.

        A core runs some steps, and a speaker plays some episodes with a listener of icy.
        """
        task, found = self.task, {}
        for entry in _registered(task):
            if entry.is_users and entry.kind == CORE:
                xs = torch.linspace(-1, 1, STEPS * ROWS * WIDTH, dtype=torch.float32, device="cpu")
                made = partial(made_of, entry, WIDTH, **task.options)
                found[entry.qualified] = behavior_of(
                    made, xs.view(STEPS, ROWS, WIDTH), run=lambda made, xs: made.unroll(xs, made.start(ROWS))
                )
            elif entry.is_users:
                with fixed_randomness():
                    scores = evaluate(task.speaker, "binding", task.game_settings(), episodes=EPISODES, seeds=1).scores
                numbers = sums_of([scores.zsct, scores.support, scores.yes])
                found[entry.qualified] = {"tensors": short_hash(entry.name), "numbers": numbers}
        return found

    def length(self, baseline: float | None) -> int | None:
        """Return the number of updates of a training."""
        return self.task.updates

    def limit_text(self) -> str:
        """Return the word before an estimate of time: "at most" if training may end early."""
        return "at most" if self.task.observations else "about"

    def floors(self) -> dict[str, float]:
        """Return the scores that agents reach without messages, or in the recall task without a memory."""
        return deaf_floors(self.task.game_settings(), min(self.episodes, FLOOR_EPISODES))

    def summary(self, record: Record) -> str:
        """Return a short text with the result of a replicate."""
        return (
            f"query {record['accuracy']:.3f}, support {record.get('support', 0):.3f} after "
            f"{counted(record['steps'], 'update')}"
        )


def _registered(task: AgentTask) -> list[Entry]:
    """Return the registered entries of the core and the speaker."""
    found = (registry.find(CORE, task.core), registry.find(SPEAKER, task.speaker))
    return [entry for entry in found if entry is not None]


@cache
def deaf_floors(game: GameSettings, episodes: int) -> dict[str, float]:
    """Return two query accuracies without messages, in episodes of the final evaluation.

    `floor` is the best of listeners that remember stimuli, and `constant_floor` the best of constant answers.
    """
    table = never_listening(game, episodes=episodes, seeds=[FINAL_SEED])
    groups = {"floor": NEVER_LISTENING, "constant_floor": CONSTANT}
    return {key: float(table[list(names)].iloc[0].max()) for key, names in groups.items()}


# -- from a spec -------------------------------------------------------------------------------------------------------


def agent_jobs(spec: S2BSpec) -> list[AgentJob]:
    """Return the jobs of a spec, one per combination of its options' values.

    Raises:
        IcyError: an unknown name, a value that is not accepted, or settings that do not go together.
    """
    check_run(spec, "Agents of S2B")
    whole_number("number of episodes of languages to acquire (eoa)", spec.eoa, least=0)
    jobs = jobs_of_each(spec, _jobs, {"speaker": [entry.name for entry in registry.entries(SPEAKER)]})
    if spec.eoa and not any(job.eoa for job in jobs):
        raise InvalidSettingError(
            "Training measures ease of acquisition (eoa) only for a speaker that learns, as with the learner 'pair'; "
            "for other speakers run `icy s2b eoa`."
        )
    return jobs


def check_run(spec: S2BSpec | RecallSpec, agents: str) -> None:
    """Check the options that S2B and recall have in common.

    Raises:
        InvalidSettingError: the device is not the CPU, or a number is not accepted.
    """
    if spec.device not in ("auto", "cpu"):
        raise InvalidSettingError(f"{agents} train on the CPU; leave out device (--device).")
    whole_number("number of episodes", spec.episodes)
    for name, value in (("observations", spec.observations), ("updates between evaluations", spec.report_every)):
        if value is not None:
            whole_number(f"number of {name}", value)


def run_options(spec: S2BSpec | RecallSpec, task: AgentTask, condition: str) -> Choices:
    """Return the fields of a job that follow from its spec and task.

    Raises:
        IcyError: the task has no updates, or its training cannot be created.
    """
    if not task.updates:
        raise InvalidSettingError(f"{task.model} makes no update with so few observations; raise `observations`.")
    return {
        "episodes": int(spec.episodes),
        "report_every": spec.report_every or max(1, task.updates // READINGS),
        "replicates": tuple(Replicate(condition, seed) for seed in seed_list(spec.seeds)),
        "parameters": count_parameters(task),
        "preset": task.preset,
    }


def _jobs(spec: S2BSpec) -> list[AgentJob]:
    """Return the jobs of a spec with one value per option: the agent, its deaf twin, or both."""
    learner = str(spec.learner)
    how = find_learner(learner)
    known = [*(MEMORIES if how.memories else ()), *(entry.name for entry in registry.entries(CORE) if how.cores)]
    core = exact_name(f"core of the learner '{learner}'", str(spec.core), known)
    if twice := sorted(set(spec.game) & set(NAMED)):
        raise InvalidSettingError(f"{twice[0]} is a separate option (--{twice[0]}), not a setting of game.")
    game: Choices = {**{name: getattr(spec, name) for name in NAMED}, **spec.game}
    task = AgentTask(
        core=core,
        learner=learner,
        game=asdict(GameSettings.of(**game)),
        speaker="learned" if how.both else registry.get(str(spec.speaker), SPEAKER).name,
        options=dict(spec.options),
        speaker_options=dict(spec.speaker_options),
        settings=learner_options(spec, core, learner, how),
        preset=str(spec.preset),
        observations=spec.observations,
    ).completed()
    twins = [deaf for deaf, wanted in ((False, spec.hearing), (True, spec.deaf or not spec.hearing)) if wanted]
    tasks = [replace(task, deaf=deaf) for deaf in twins]
    eoa = spec.eoa if how.both else 0
    return [AgentJob(each, eoa=eoa, **run_options(spec, each, each.speaker)) for each in tasks]


def learner_options(spec: S2BSpec | RecallSpec, core: str, learner: str, how: LearningMethod) -> Choices:
    """Return the learner's settings from a spec, including the training's length if the learner has this setting."""
    known = [setting.name for setting in fields(how.settings_class(core))]
    lengths = {"updates": spec.updates, "observations": spec.observations}
    if spec.updates is not None and "updates" not in known:
        if "updates" in spec.given:
            raise InvalidSettingError(f"Set the length of learner '{learner}' with `observations`, not `updates`.")
        lengths["observations"] = spec.observations or QUICK_OBSERVATIONS
    for name in sorted(set(lengths) & set(spec.settings) & spec.given):
        raise InvalidSettingError(f"{name} was given twice: as an option and as a setting of the learner.")
    return {**{n: value for n, value in lengths.items() if value is not None and n in known}, **spec.settings}


def count_parameters(task: AgentTask) -> dict[str, int]:
    """Count the parameters. This also checks that the networks of the task can be created.

    Raises:
        IcyError: the networks cannot be created.
    """
    try:
        networks = task.training(0).networks().values()
    except IcyError:
        raise
    except (TypeError, ValueError) as error:
        raise IcyError(f"{task.model} cannot be created: {error}.") from error
    count = sum(weights.numel() for network in networks for weights in network.parameters())
    return {"true": count, "published": count}
