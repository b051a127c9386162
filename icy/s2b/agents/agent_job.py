"""Jobs that train agents of S2B: one task with several seeds."""

from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial

import torch

from icy.core.checks import seed_list, whole_number
from icy.core.code import short_hash
from icy.core.entry import CORE, Entry
from icy.core.errors import IcyError, InvalidSettingError
from icy.core.registry import SPEAKER, registry
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.records.record import Record
from icy.s2b.evaluation import evaluate
from icy.s2b.settings import GameSettings
from icy.training.combinations import jobs_of_each
from icy.training.job import Job, Replicate
from icy.training.task_models import ROWS, behavior_of, fixed_randomness, sums_of

from .agent_task import SAME_PRESETS, AgentTask, LearningMethod, core_name, find_learner, speaker_name
from .cores.core import made_of
from .spec import RecallSpec, S2BSpec

QUICK_OBSERVATIONS = 20_000  # for learners with a length in observations
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
    preset, learner = SAME_PRESETS.get(spec.preset, spec.preset), str(spec.learner)
    how, core = find_learner(learner), core_name(str(spec.core), learner)
    game = _game(spec)
    settings = how.complete(core, learner_options(spec, core, learner, how), str(spec.preset), game)
    task = AgentTask(
        core=core,
        learner=learner,
        game=asdict(game),
        speaker=speaker_name(str(spec.speaker), learner),
        options=dict(spec.options),
        speaker_options=dict(spec.speaker_options),
        settings=settings,
        preset=preset,
        observations=None if "observations" in settings else spec.observations,
    )
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


def _game(spec: S2BSpec) -> GameSettings:
    twice = sorted(set(spec.game) & set(NAMED))
    if twice:
        raise InvalidSettingError(f"{twice[0]} is a separate option (--{twice[0]}), not a setting of game.")
    given: Choices = {**{name: getattr(spec, name) for name in NAMED}, **spec.game}
    return GameSettings.of(**given)


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
