"""The kinds of jobs that train agents: "s2b", in the referential game, and "recall", in the recall task."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from icy.config.kinds import Settings, request_of, values_for
from icy.config.requests import RunRequest
from icy.config.settings import OLD_PRESETS, Numbers
from icy.core.checks import FIRST_SEED, seed_list
from icy.core.code import short_hash
from icy.core.entry import CORE, Entry
from icy.core.errors import InvalidSettingError
from icy.core.fields import changed_fields, checked, setting, stored_names
from icy.core.registry import SPEAKER, registry
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.records.kinds import JobKind
from icy.s2b.recall import RecallSettings
from icy.s2b.settings import GameSettings, WithCompat
from icy.training.job import Job, Replicate

if TYPE_CHECKING:
    pass


# -- agents in the referential game ------------------------------------------------------------------------------------

ON_AXES = ("shots", "samples", "distractors", "most")
NAMED = (*ON_AXES, "least")  # settings of the game that have their own option
SAME_PRESETS = {"metarg24": "metarg22"}  # alias of a preset: the name that records use
QUICK_OBSERVATIONS = 20_000  # for learners with a length in observations
FLOOR_EPISODES = 250  # largest number of final evaluation episodes that floors are computed on
READINGS = 20  # default number of evaluations during a training
WIDTH, STEPS, EPISODES = 10, 3, 4  # of the run that shows the behavior of a core or speaker


@dataclass(frozen=True, kw_only=True)
class AgentSettings(Settings):
    """The agents of a row: everything that can change the results of a training, except its seed.

    Attributes:
        game: settings of the game.
        learning: all settings of the learner.
        deaf: whether the listener ignores messages.
        core: the listener's memory of an episode: "pairs" or "joint", attention memories, or a core of
            `icy list cores`.
        learner: "ppo": from rewards only; "supervised": from the right decisions; "r2d2": by action values learned from
            a replay buffer, as in the papers; "vdn": speaker and listener together by R2D2; "pair": speaker and
            listener together, from rewards only; "pair-gumbel": both with gradients through the messages.
        speaker: speakers that do not learn, as in `icy list players`; not used if the learner trains the speaker.
        preset: set of defaults for the learner's settings: "metarg22" or "metarg24", which print the same settings;
            "near32", of the authors' later program; or "default".
        observations: number of observations after which training ends, unless all updates are made earlier.
        report_every: number of updates between two evaluations; by default a twentieth of all updates.
        episodes: number of episodes of the final evaluation.
        eoa: number of episodes of the final measurement of ease of acquisition (`icy s2b eoa`), if the speaker
            learns; 0 for none.
        options: further arguments of the core, for example heads=4.
        speaker_options: further arguments of a speaker that learns.
    """

    kind = "s2b"
    on_cpu = True  # the learners' networks are small, and most of the time is dealing
    game_class: ClassVar[type[WithCompat]] = GameSettings
    early: ClassVar[str] = "support"  # name of the accuracy in the support, or in the recall task in the first shot

    game: Any = setting(asked=False)
    learning: Any = setting(asked=False)
    deaf: bool = setting(False, asked=False)
    core: str = setting("pairs", axis=True)
    learner: str = setting("ppo", axis=True)
    speaker: str = setting("posdis", axis=True, every=lambda: [entry.name for entry in registry.entries(SPEAKER)])
    preset: str = setting("default", axis=True)
    observations: int | None = setting(None, "number of observations", least=1)
    report_every: int | None = setting(None, "number of updates between evaluations", least=1)
    episodes: int = setting(1000, "number of episodes", least=1)
    eoa: int = setting(
        0, "number of episodes of languages to acquire (eoa)", least=0, idle=lambda row: _why_no_eoa(row), refused=True
    )
    options: Mapping[str, Any] = setting({})
    speaker_options: Mapping[str, Any] = setting({})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.report_every is None:
            object.__setattr__(self, "report_every", max(1, self.updates // READINGS))

    @classmethod
    def of_config(cls, setup: Fields, **others: Any) -> Self:
        """Return the settings of a stored configuration. Old names of presets are accepted.

        Args:
            setup: the part "setup" of the configuration.
            **others: further settings by name.

        Raises:
            IcyError: the configuration was written by another version of icy.
        """
        preset = OLD_PRESETS.get(setup.get("preset", "default"), setup.get("preset", "default"))
        names = {"game": dict(setup["game"]), "learning": setup.get("settings", {}), "preset": preset}
        given = checked(cls, {n: v for n, v in setup.items() if n != "settings"} | names, "part of a training")
        game = cls.game_class(**checked(cls.game_class, given["game"], f"setting of {cls.game_class.called}"))
        learner = _find_learner(cls.kind, given["learner"], given["core"])
        learning = learner.settings(game, preset, given["learning"])
        return cls(**{**given, "game": game, "learning": learning, **others})

    @property
    def how(self) -> Any:
        """The learner."""
        return _find_learner(self.kind, self.learner, self.core)

    def training(self, seed: int) -> Any:
        """Return a new training.

        Raises:
            IcyError: settings that cannot be combined.
        """
        return self.how.make(self, seed)

    @property
    def name(self) -> str:
        """Names of the core and the learner, and whether the listener is deaf."""
        return f"{self.core}+{self.learner}" + (" (deaf)" if self.deaf else "")

    @property
    def entries(self) -> Sequence[Entry]:
        """Registry entries of the core and the speaker."""
        found = (registry.find(CORE, self.core), registry.find(SPEAKER, self.speaker))
        return [entry for entry in found if entry is not None]

    def versions(self, condition: str, seed: int) -> dict[str, str]:
        """Return the versions of the core and the speaker."""
        return {entry.kind: entry.full_version for entry in self.entries}

    # -- configuration -------------------------------------------------------------------------------------------------

    def config(self) -> Choices:
        """Return all choices that can change the results.

        `options` has the settings that differ from their defaults, and `settings` all of them.
        """
        facts, changed = self.of_game()
        usual = self.how.settings(self.game, self.preset, {})
        changes = stored_names(type(usual), changed_fields(self.learning, usual))
        # Of nested settings, only the fields that differ from the defaults.
        changes = {n: changed_fields(v, cast(Any, type(v))()) if is_dataclass(v) else v for n, v in changes.items()}
        spoken = {f"speaker.{name}": value for name, value in self.speaker_options.items()}
        length = {"observations": self.observations} if self.observations else {}
        run = {"episodes": self.episodes, "report_every": self.report_every}
        return {
            **facts,
            "options": {**changed, **self.options, **spoken, **changes, **length},
            "settings": {"setup": self.setup(), **run, **({"eoa": self.eoa} if self.eoa and self.how.both else {})},
        }

    def setup(self) -> Choices:
        """Return the settings of the training as dictionaries, for records and cards."""
        settings = {n: v for n, v in asdict(self.learning).items() if n not in self.how.derived}
        names = ("core", "learner", "speaker", "deaf", "options", "speaker_options", "preset", "observations")
        own = {name: getattr(self, name) for name in names}
        return {**own, "game": asdict(self.game), "settings": stored_names(type(self.learning), settings)}

    def facts(self) -> dict[str, str]:
        """Return the settings of the game that have their own columns."""
        return {name: str(value) for name, value in self.of_game()[0].items()}

    def of_game(self) -> tuple[Choices, Choices]:
        """Return the settings of the game that have their own columns, and the others that differ from defaults."""
        game = self.game
        changed = changed_fields(game, GameSettings(most=game.most, dimensions=game.dimensions))
        own = {f"game.{name}": value for name, value in changed.items() if name not in NAMED}
        return {"values": f"{game.least}-{game.most}", **{n: getattr(game, n) for n in ON_AXES if n != "most"}}, own

    def behavior(self, condition: str) -> dict[str, Fields]:
        """Return the behavior of the core and of the speaker by qualified name, if they are code of users.

        A core runs some steps, and a speaker plays some episodes with a listener of icy.
        """
        import torch

        from icy.s2b.evaluation import evaluate
        from icy.training.task_models import ROWS, behavior_of, fixed_randomness, sums_of

        from .cores.core import made_of

        found: dict[str, Fields] = {}
        for entry in self.entries:
            if entry.is_users and entry.kind == CORE:
                xs = torch.linspace(-1, 1, STEPS * ROWS * WIDTH, dtype=torch.float32, device="cpu")
                made = partial(made_of, entry, WIDTH, **self.options)
                found[entry.qualified] = behavior_of(
                    made, xs.view(STEPS, ROWS, WIDTH), run=lambda made, xs: made.unroll(xs, made.start(ROWS))
                )
            elif entry.is_users:
                with fixed_randomness():
                    scores = evaluate(self.speaker, "binding", self.game, episodes=EPISODES, seeds=1).scores
                numbers = sums_of([scores.zsct, scores.support, scores.yes])
                found[entry.qualified] = {"tensors": short_hash(entry.name), "numbers": numbers}
        return found

    # -- course and texts ----------------------------------------------------------------------------------------------

    @property
    def updates(self) -> int:
        """Number of updates, unless the limit of observations ends training earlier."""
        return int(self.learning.updates)

    def length(self, baseline: float | None) -> int | None:
        """Return the number of updates of a training."""
        return self.updates

    def limit_text(self) -> str:
        """Return the word before an estimate of time: "at most" if training may end early."""
        return "at most" if self.observations else "about"

    def floors(self) -> dict[str, float]:
        """Return the scores that agents reach without messages."""
        return deaf_floors(self.game, min(self.episodes, FLOOR_EPISODES))

    def summary(self, record: Fields) -> str:
        """Return a short text with the result of a replicate."""
        return (
            f"query {record['accuracy']:.3f}, support {record.get('support', 0):.3f} after "
            f"{counted(record['steps'], 'update')}"
        )


def _find_learner(kind: str, name: str, core: str) -> Any:
    from .learners import learner_of, learners_called  # imports torch

    return learner_of(core, learners_called(kind, name))


def _why_no_eoa(row: AgentSettings) -> str:
    if not row.eoa or row.how.both:
        return ""
    return (
        "Training measures ease of acquisition (eoa) only for a speaker that learns, as with the learner 'pair'; for "
        "other speakers run `icy s2b eoa`."
    )


@cache
def deaf_floors(game: GameSettings, episodes: int) -> dict[str, float]:
    """Return two query accuracies without messages, in episodes of the final evaluation.

    `floor` is the best of listeners that remember stimuli, and `constant_floor` the best of constant answers.
    """
    from icy.s2b.evaluation import CONSTANT, NEVER_LISTENING, never_listening

    table = never_listening(game, episodes=episodes, seeds=[FIRST_SEED])
    groups = {"floor": NEVER_LISTENING, "constant_floor": CONSTANT}
    return {key: float(table[list(names)].iloc[0].max()) for key, names in groups.items()}


@request_of(AgentSettings)
class AgentRequest(RunRequest):
    """Agents to train in meta-referential games, one row per combination of values.

    Attributes:
        shots: minimum number of times that the support shows each value, S; one or several.
        samples: number of stimuli per meaning, O; one or several.
        distractors: number of stimuli in addition to the target, K; one or several.
        most: largest number of values of a dimension, V_max; one or several.
        least: smallest number of values of a dimension, V_min.
        game: further settings of the game, for example query=tss; see icy.s2b.GameSettings.
        deaf: also train a deaf twin of every agent: its listener gets no messages.
        hearing: train agents that get messages; without them, only deaf twins are trained.
        seeds: number of seeds, counted from 123, or a list: [1, 2], "1,2", "123-127".
        updates: number of updates; by default the learner's own number.
        settings: changes to the learner's settings, for example learning_rate=0.002.
        quick: use few values, seeds and updates where these are not set, for a quick try; the agents are saved.
    """

    function = "icy s2b train"
    job_kind = "s2b"
    small = MappingProxyType({"most": 3, "seeds": 2, "updates": 40, "episodes": 100, "keep_models": True})
    axes = ON_AXES

    shots: Numbers = 1
    samples: Numbers = 1
    distractors: Numbers = 0
    most: Numbers = 5
    least: int = 2
    game: Mapping[str, Any] = field(default_factory=dict)
    deaf: bool = False
    hearing: bool = True
    seeds: Numbers = 3
    updates: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


def agent_rows(request: Any) -> list[Job]:
    """Return the jobs of a request with one value per option: the agent, its deaf twin, or both.

    Raises:
        IcyError: an unknown name, a value that is not accepted, or settings that do not go together.
    """
    from .learners import find_core, learner_of, learners_called, make_pair

    learners = learners_called("s2b", str(request.learner))
    core = find_core(learners, f"core of the learner '{request.learner}'", str(request.core))
    how = learner_of(core, learners)
    if request.speaker_options and how.make is not make_pair:
        raise InvalidSettingError("speaker_options are for a speaker that learns, as with the learner 'pair'.")
    if twice := sorted(set(request.game) & set(NAMED)):
        raise InvalidSettingError(f"{twice[0]} is a separate option (--{twice[0]}), not a setting of game.")
    game = GameSettings.of(**{**{name: getattr(request, name) for name in NAMED}, **request.game})
    speaker = "learned" if how.both else registry.get(str(request.speaker), SPEAKER).name
    twins = [deaf for deaf, wanted in ((False, request.hearing), (True, request.deaf or not request.hearing)) if wanted]
    own = {"core": core, "game": game, "speaker": speaker}
    return [_job(AgentSettings, request, how, speaker, deaf=deaf, **own) for deaf in twins]


# -- parts of rows that both kinds share -------------------------------------------------------------------------------


def _job(kind: type[AgentSettings], request: Any, how: Any, condition: str, **own: Any) -> Job:
    """Return the job of a request with one value per option.

    Args:
        kind: class of the settings.
        request: the request.
        how: the learner.
        condition: condition of the replicates.
        **own: settings that do not have the value of the request.

    Raises:
        IcyError: the training has no updates, or cannot be created.
    """
    if request.device not in ("auto", "cpu"):
        raise InvalidSettingError("Agents of S2B train on the CPU; leave out device (--device).")
    preset = str(request.preset)
    learning = how.settings(own["game"], preset, _changes(request, how, own["game"]))
    values = {**values_for(kind, request), **own, "learner": how.name, "learning": learning}
    values["preset"] = SAME_PRESETS.get(preset, preset)
    if hasattr(learning, "observations"):  # the length is a setting of the learner
        values["observations"] = None
    settings = kind(**values)
    if not settings.updates:
        raise InvalidSettingError(f"{settings.name} makes no update with so few observations; raise `observations`.")
    networks = settings.training(0).networks().values()  # this also checks that the networks can be created
    count = sum(weights.numel() for network in networks for weights in network.parameters())
    return Job(
        settings=settings,
        replicates=tuple(Replicate(condition, seed) for seed in seed_list(request.seeds)),
        parameters={"true": count, "published": count},
        checkpoints=True,
    )


def _changes(request: Any, how: Any, game: Any) -> Choices:
    """Return the requested settings of the learner, with the length of the training if it is one of them."""
    lengths = {"updates": request.updates, "observations": request.observations}
    known = [f.name for f in fields(how.usual(game))]
    if request.updates is not None and "updates" not in known:
        if "updates" in request.given:
            raise InvalidSettingError(f"Set the length of learner '{how.name}' with `observations`, not `updates`.")
        lengths["observations"] = request.observations or QUICK_OBSERVATIONS
    for name in sorted(set(lengths) & set(request.settings) & request.given):
        raise InvalidSettingError(f"{name} was given twice: as an option and as a setting of the learner.")
    return {**{n: value for n, value in lengths.items() if value is not None and n in known}, **request.settings}


# -- agents in the recall task -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RecallAgentSettings(AgentSettings):
    """The agents of a row in the recall task: everything that can change the results of a training, except its seed.

    Attributes:
        game: settings of the task.
        core: the agent's memory: "pairs", icy's attention memory, which learns from rewards by PPO; or a core of `icy
            list cores`, which learns by R2D2 with the reconstruction loss, as in the papers.
        preset: settings of a paper, for cores that learn by R2D2; or "default", the same as MetaRG22.
        observations: number of observations after which training ends.
    """

    kind = "recall"
    game_class = RecallSettings
    early = "first_shot"

    learner: str = setting("ppo", asked=False)
    speaker: str = setting("", asked=False)
    eoa: int = setting(0, asked=False)
    speaker_options: Mapping[str, Any] = setting({}, asked=False)

    def of_game(self) -> tuple[Choices, Choices]:
        """Return the stimuli, and the shortest description of the task.

        This is a `compat`, if any, and the settings that differ from it.
        """
        task, candidates = self.game, []
        for compat in (None, *RecallSettings.compats):
            usual = RecallSettings.of(compat=compat, representation=task.representation, most=task.most)
            changed = {f"task.{name}": value for name, value in changed_fields(task, usual).items()}
            changed |= {} if task.most == RecallSettings.most else {"task.most": task.most}
            candidates.append(({"compat": compat} if compat else {}) | changed)
        return {"stimuli": task.representation}, min(candidates, key=len)

    def floors(self) -> dict[str, float]:
        """Return the accuracies of guesses, and of agents that do not remember earlier games."""
        from .recall_learning import recall_floors

        return {"chance": 1 / self.game.most, **recall_floors(self.game, FLOOR_EPISODES, FIRST_SEED)}

    def summary(self, record: Fields) -> str:
        """Return a short text with the result of a replicate."""
        return f"second shot {record['accuracy']:.3f} after {counted(record['steps'], 'update')}"


@request_of(RecallAgentSettings)
class RecallRequest(RunRequest):
    """Agents to train in the recall task, one row per combination of values.

    Attributes:
        stimuli: "ohe", one-hot, or "scs", continuous; one value or several.
        compat: "near32" for the task as in the authors' program; "" for the task as in the paper.
        task: further settings of the task, for example shots=3; see icy.s2b.RecallSettings.
        seeds: number of seeds, counted from 123, or a list: [1, 2], "1,2", "123-127".
        updates: number of updates of the attention memory; by default the learner's own number.
        settings: changes to the learner's settings, for example learning_rate=0.002.
        quick: use few values, seeds and updates where these are not set, for a quick try.
    """

    function = "icy s2b recall"
    job_kind = "recall"
    small = MappingProxyType({"task": {"most": 3}, "seeds": 2, "updates": 20, "report_every": 10, "episodes": 100})
    axes = ("stimuli",)

    stimuli: str | Iterable[str] = ("ohe", "scs")
    compat: str = ""
    task: Mapping[str, Any] = field(default_factory=dict)
    seeds: Numbers = 3
    updates: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


def recall_rows(request: Any) -> list[Job]:
    """Return the job of a request with one value per option.

    Raises:
        IcyError: an unknown name, a value that is not accepted, or settings that do not go together.
    """
    from .learners import LEARNERS, find_core, learner_of

    if "representation" in request.task:
        raise InvalidSettingError("representation is a separate option (--stimuli), not a setting of task.")
    learners = LEARNERS["recall"]
    core = find_core(learners, "core", str(request.core))
    task = RecallSettings.of(compat=request.compat or None, **{**request.task, "representation": str(request.stimuli)})
    how = learner_of(core, learners)
    return [_job(RecallAgentSettings, request, how, task.representation, core=core, game=task)]


# -- the kinds of jobs -------------------------------------------------------------------------------------------------


def language_conventions(config: Fields) -> dict[str, dict[str, Any]]:
    """Return the conventions of each language metric in records of trained agents, which are icy's defaults."""
    return {
        "topsim": {
            "correlation": "spearman",
            "meaning": "hamming",
            "message": "levenshtein",
            "pairs": "all",
            "normalise": "none",
        },
        "posdis": {"constant": "skip"},
        "bosdis": {"constant": "skip"},
    }


S2B = JobKind(
    "s2b",
    request=AgentRequest,
    settings=AgentSettings,
    rows=agent_rows,
    train="icy.s2b.agents.agent_run:train",
    rehearse="icy.s2b.agents.agent_run:rehearse",
    table="icy.analysis.tables.s2b:training_table",
    measures=(
        *("support", "floor", "constant_floor", "observations", "cpu_seconds", "topsim", "posdis", "bosdis"),
        *("distinct", "ease_of_acquisition", "reconstructed", "shots", "samples", "distractors"),
    ),
    curve=("steps", "accuracy", "support", "observations", "reconstructed"),
    noun="agents",
    model="icy.s2b.agents.saved_networks:kept_networks",
    command="s2b train",
    conventions=language_conventions,
    evaluates="s2b eval --listener",
)

RECALL = JobKind(
    "recall",
    request=RecallRequest,
    settings=RecallAgentSettings,
    rows=recall_rows,
    train="icy.s2b.agents.agent_run:train",
    rehearse="icy.s2b.agents.agent_run:rehearse",
    table="icy.analysis.tables.s2b:recall_table",
    measures=("first_shot", "chance", "no_memory", "one_game", "reconstructed", "observations", "cpu_seconds"),
    curve=("steps", "accuracy", "first_shot", "observations", "reconstructed"),
    noun="agents",
    model="icy.s2b.agents.saved_networks:kept_networks",
    command="s2b recall",
)
