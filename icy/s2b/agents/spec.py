"""The kinds of jobs that train agents: "s2b", in the referential game, and "recall", in the recall task."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from icy.config.settings import Numbers
from icy.config.specs import RunSpec
from icy.core.register import register_listener
from icy.core.types import Fields
from icy.records.kinds import JobKind, register_job_kind

# -- options of the kinds of jobs that train agents --------------------------------------------------------------------


@dataclass(frozen=True)
class S2BSpec(RunSpec):
    """Agents to train in meta-referential games, one row per combination of values.

    Attributes:
        core: the listener's memory of an episode: "pairs" or "joint", attention memories, or a core of
            `icy list cores`.
        learner: "ppo": from rewards only; "supervised": from the right decisions; "r2d2": by action values learned from
            a replay buffer, as in the papers; "vdn": speaker and listener together by R2D2; "pair": speaker and
            listener together, from rewards only; "pair-gumbel": both with gradients through the messages.
        speaker: speakers that do not learn, as in `icy list players`; not used if the learner trains the speaker.
        shots: minimum number of times that the support shows each value, S; one or several.
        samples: number of stimuli per meaning, O; one or several.
        distractors: number of stimuli in addition to the target, K; one or several.
        most: largest number of values of a dimension, V_max; one or several.
        least: smallest number of values of a dimension, V_min.
        game: further settings of the game, for example query=tss; see icy.s2b.GameSettings.
        deaf: also train a deaf twin of every agent: its listener gets no messages.
        hearing: train agents that get messages; without them, only deaf twins are trained.
        seeds: number of seeds, counted from 123, or a list: [1, 2], "1,2", "123-127".
        preset: set of defaults for the learner's settings: "metarg22" or "metarg24", which print the same settings;
            "near32", of the authors' later program; or "default".
        updates: number of updates; by default the learner's own number.
        observations: number of observations after which training ends, unless all updates are made earlier.
        report_every: number of updates between two evaluations; by default a twentieth of all updates.
        episodes: number of episodes of the final evaluation.
        eoa: number of episodes of the final measurement of ease of acquisition (`icy s2b eoa`), if the speaker
            learns; 0 for none.
        options: further arguments of the core, for example heads=4.
        speaker_options: further arguments of a speaker that learns.
        settings: changes to the learner's settings, for example learning_rate=0.002.
        quick: use few values, seeds and updates where these are not set, for a quick try; the agents are saved.
    """

    function = "icy s2b train"
    job_kind = "s2b"
    small = MappingProxyType({"most": 3, "seeds": 2, "updates": 40, "episodes": 100, "keep_models": True})
    axes = ("core", "learner", "speaker", "shots", "samples", "distractors", "most", "preset")

    core: str | Iterable[str] = "pairs"
    learner: str | Iterable[str] = "ppo"
    speaker: str | Iterable[str] = "posdis"
    shots: Numbers = 1
    samples: Numbers = 1
    distractors: Numbers = 0
    most: Numbers = 5
    least: int = 2
    game: Mapping[str, Any] = field(default_factory=dict)
    deaf: bool = False
    hearing: bool = True
    seeds: Numbers = 3
    preset: str = "default"
    updates: int | None = None
    observations: int | None = None
    report_every: int | None = None
    episodes: int = 1000
    eoa: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    speaker_options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RecallSpec(RunSpec):
    """Agents to train in the recall task, one row per combination of values.

    Attributes:
        core: the agent's memory: "pairs", icy's attention memory, which learns from rewards by PPO; or a core of `icy
            list cores`, which learns by R2D2 with the reconstruction loss, as in the papers.
        stimuli: "ohe", one-hot, or "scs", continuous; one value or several.
        compat: "near32" for the task as in the authors' program; "" for the task as in the paper.
        task: further settings of the task, for example shots=3; see icy.s2b.RecallSettings.
        seeds: number of seeds, counted from 123, or a list: [1, 2], "1,2", "123-127".
        preset: settings of a paper, for cores that learn by R2D2; or "default", the same as MetaRG22.
        updates: number of updates of the attention memory; by default the learner's own number.
        observations: number of observations after which training ends.
        report_every: number of updates between two evaluations; by default a twentieth of all updates.
        episodes: number of episodes of the final evaluation.
        options: further arguments of the core, for example heads=4.
        settings: changes to the learner's settings, for example learning_rate=0.002.
        quick: use few values, seeds and updates where these are not set, for a quick try.
    """

    function = "icy s2b recall"
    job_kind = "recall"
    small = MappingProxyType({"task": {"most": 3}, "seeds": 2, "updates": 20, "report_every": 10, "episodes": 100})
    axes = ("core", "stimuli", "preset")

    core: str | Iterable[str] = "pairs"
    stimuli: str | Iterable[str] = ("ohe", "scs")
    compat: str = ""
    task: Mapping[str, Any] = field(default_factory=dict)
    seeds: Numbers = 3
    preset: str = "default"
    updates: int | None = None
    observations: int | None = None
    report_every: int | None = None
    episodes: int = 1000
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


# -- registers the kinds of jobs that train agents, and the trained agent that comes with icy --------------------------


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


register_job_kind(
    JobKind(
        "s2b",
        "Train agents of meta-referential games.",
        spec=S2BSpec,
        jobs=f"{__package__}.agent_job:agent_jobs",
        train=f"{__package__}.agent_run:train",
        rehearse=f"{__package__}.agent_run:seconds_per_update",
        source="MetaRG22; MetaRG24; icy",
        table="icy.analysis.tables.s2b:training_table",
        measures=(
            *("support", "floor", "constant_floor", "observations", "cpu_seconds", "topsim", "posdis", "bosdis"),
            *("distinct", "ease_of_acquisition", "reconstructed", "shots", "samples", "distractors"),
        ),
        curve=("steps", "accuracy", "support", "observations", "reconstructed"),
        noun="agents",
        model=f"{__package__}.saved_networks:kept_networks",
        command="s2b train",
        conventions=language_conventions,
        evaluates="s2b eval --listener",
    )
)

register_job_kind(
    JobKind(
        "recall",
        "Train agents of the recall task.",
        spec=RecallSpec,
        jobs=f"{__package__}.recall_job:recall_jobs",
        train=f"{__package__}.agent_run:train",
        rehearse=f"{__package__}.agent_run:seconds_per_update",
        source="MetaRG22 section 3.3, MetaRG24 appendix E.1; icy",
        table="icy.analysis.tables.s2b:recall_table",
        measures=("first_shot", "chance", "no_memory", "one_game", "reconstructed", "observations", "cpu_seconds"),
        curve=("steps", "accuracy", "first_shot", "observations", "reconstructed"),
        noun="agents",
        model=f"{__package__}.recall_job:kept_networks",
        command="s2b recall",
    )
)

register_listener(
    "memory",
    f"{__package__}.saved_networks:memory",
    description="An attention memory of dimensions and positions, trained from rewards only.",
    source="icy",
)
