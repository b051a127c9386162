"""Options of the kind of job "recall": agents to train in the recall task."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from icy.config.specs import RunSpec
from icy.config.types import Numbers


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
