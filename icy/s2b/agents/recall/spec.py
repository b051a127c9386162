"""What to train in the recall task, and how: the arguments of the kind of job "recall"."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from icy.config.specs import RunSpec
from icy.config.types import Numbers


@dataclass(frozen=True)
class RecallSpec(RunSpec):
    """Agents to train in the recall task: all combinations of several values become rows.

    Attributes:
        core: the agent's memory: "pairs", icy's attention memory, which learns by reward (PPO);
            or a core of `icy list cores`, which learns by R2D2 with the reconstruction loss, as in the papers.
        stimuli: "ohe", one-hot, or "scs", continuous; one or several.
        compat: "near32" for the task of the authors' program; "" for that of the paper.
        task: further settings of the task, as in shots=3; see icy.s2b.RecallSettings.
        seeds: how many, counted from 123, or which: [1, 2], "1,2", "123-127".
        preset: settings of a paper, for cores that learn by R2D2; or "default", as MetaRG22.
        updates: number of updates of the attention memory, in place of its own.
        observations: number of observations after which training ends.
        report_every: updates between two readings; by default a twentieth of all.
        episodes: number of episodes of the evaluation at the end.
        options: further arguments of the core, as in heads=4.
        settings: changes to the learner's settings, as in learning_rate=0.002.
        quick: few values, seeds and updates wherever these are not given, to try things out.
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
