"""What to train in S2B, and how: the arguments of the kind of job "s2b"."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from icy.config.specs import RunSpec
from icy.config.types import Numbers


@dataclass(frozen=True)
class S2BSpec(RunSpec):
    """What agents to train in meta-referential games: all combinations of what is several become rows.

    Attributes:
        core: what the listener remembers an episode with: "pairs" or "joint", attention memories, or a core of
            `icy list cores`.
        learner: how it learns: "ppo", by reward alone; "supervised", on the right decisions; "r2d2", by values learned
            from a replay, as in the papers; "vdn", speaker and listener together so; "pair", speaker and listener
            together by reward alone; "pair-gumbel", both with gradients through the messages.
        speaker: speakers that do not learn, as in `icy list players`; a learner of both sides takes none.
        shots: how often the support shows each value at least, S; one or several.
        samples: number of stimuli per meaning, O; one or several.
        distractors: number of stimuli beside the target, K; one or several.
        most: largest number of values of a dimension, V_max; one or several.
        least: smallest number of values of a dimension, V_min.
        game: further settings of the game, as in query=tss; see icy.s2b.GameSettings.
        deaf: also train the deaf twin of every agent, whose listener is given no messages.
        seeds: how many, counted from 123, or which: [1, 2], "1,2", "123-127".
        preset: settings of learners by values: "metarg22" or "metarg24", which print the same; "near32", of the
            authors' later program; or "default".
        updates: number of updates, in place of the learner's own.
        observations: number of observations after which training ends, if the updates are not over before.
        report_every: updates between two readings; by default a twentieth of all.
        episodes: number of episodes of the evaluation at the end.
        eoa: number of episodes of the evaluation whose languages new listeners acquire (`icy s2b eoa`), where the
            speaker learns; 0 for none.
        options: further arguments of the core, as in heads=4.
        speaker_options: further arguments of a speaker that learns.
        settings: changes to the learner's settings, as in learning_rate=0.002.
        quick: few values, seeds and updates wherever these are not given, to try things out; the agents are kept.
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
