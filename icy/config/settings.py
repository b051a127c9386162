"""Training settings and their presets (Perkins21, Icy22; icy's corrections are the default)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from icy.core.errors import InvalidSettingError, require_known
from icy.core.fields import check_fields, setting
from icy.core.streams import DrawsName
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

# -- types of the fields of requests and settings. A Literal is the only list of its names, except where a table also --

# describes each name; the tests then compare both.


Paths = str | Path | Iterable[str | Path]
Numbers = int | str | Iterable[int]
Grammars = str | Path | Language | Iterable[str | Path | Language]
Meanings = str | MeaningSpace | tuple[int, int]

ProtocolName = Literal["budget", "acquire", "generalise"]
RepresentationName = Literal["soft", "gumb", "discr", "gs", "qt", "cb"]
PresetName = Literal["default", "published"]
Protocols = ProtocolName | Literal["all"] | Iterable[ProtocolName]
Representations = RepresentationName | Literal["all"] | Iterable[RepresentationName]
Presets = PresetName | Literal["all"] | Iterable[PresetName]
Draws = DrawsName | Literal["all"] | Iterable[DrawsName]
Spaces = Meanings | Iterable[Meanings]
NormalisationName = Literal["sigmoid", "batch"]  # normalization of QT's scores
SymbolsName = Literal["V+1", "V"]
SplitName = Literal["random", "combinations"]
SideName = Literal["sender", "receiver"]
RunnerName = Literal["local", "ray"]
Rerun = Literal["missing", "failed", "always", "never"]
TrackerName = Literal["tensorboard", "mlflow", "wandb"]
SamplerName = Literal["tpe", "random"]
OrderName = Literal["longest", "given"]
Engine = Literal[
    "auto", "native", "broadcast", "vmap", "loop",
    "auto+plain", "auto+graph", "broadcast+plain", "broadcast+graph",
    "vmap+plain", "vmap+graph", "loop+plain", "loop+graph",
]  # fmt: skip


# -- presets: named sets of settings in which the authors' programs differ from their papers ---------------------------


OLD_PRESETS: Mapping[str, str] = {"metarg24": "near32"}
"""Current names of presets of S2B agents, by their names in older records. New records do not have the old names: the
current preset "metarg24" has the settings of the old "metarg22", and is saved under that name."""

RUN_KINDS = ("probe", "e2e")  # training of a sender or receiver alone, or of a pair


SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "ren20": {"interaction": 4000},
    "elberg25": {"interaction": 4000},
    "cheng23": {"generations": 1, "interaction": 0},
    "li19-gradual": {"population": 5, "replacement": "gradual"},
    "li19-simultaneous": {"population": 5, "replacement": "simultaneous"},
}
"""Options of `icy.iterate` as in papers, by name. The numbers of updates and the sizes of populations are icy's."""


@dataclass(frozen=True)
class Departure:
    """A change that a preset makes to the default settings, and its reason.

    Attributes:
        settings: the changed settings, by name.
        reason: why the published numbers need the change.
        kinds: kinds of training with this change.
    """

    settings: Mapping[str, Any]
    reason: str
    kinds: tuple[str, ...] = RUN_KINDS


# How a stack of replicates is run (icy.training.learners), and how its updates are issued (icy.training.stack).
# Settings of the grid of evaluations, and all settings that a game from scratch does not depend on.
CHECKS = ("check_growth", "check_every", "clock")
PRETRAINING_SETTINGS = (*CHECKS, "max_steps", "steps_from_zero")
OF_MESSAGES = ("symbols", "tau", "straight_through", "levels", "normalise")  # settings that receivers do not read
ENGINES: tuple[str, ...] = get_args(Engine)
STACKINGS = tuple(name for name in ENGINES if "+" not in name)

SMALL_CHECK = 128  # meanings of the smallest check, as in the papers

CLASSES = ("Adam", "Adadelta", "Adagrad", "Adamax", "AdamW", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")
OPTIMIZERS = {name.lower(): name for name in CLASSES}  # classes of torch.optim

# Marks a setting that was added later, with the kinds of runs to which it was added. At its default it is left out of
# their configurations, so older results keep their keys.
SILENT = "silent"


OPEN = ("soft", "gumb", "discr")  # representations in which a sender can use the start symbol


def _only(*representations: str, kind: str = "") -> Mapping[str, tuple[str, ...]]:
    """Mark a setting that has no effect under other representations or in another kind of run."""
    only = {"representation": representations, "kind": (kind,) if kind else ()}
    return {name: values for name, values in only.items() if values}


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the training and the evaluation of every replicate.

    Attributes:
        batch_size: meanings per update, each attribute drawn uniformly.
        learning_rate: learning rate of the optimizer; its other settings are PyTorch's.
        clip_norm: largest norm of the gradient of each replicate; None for no clipping.
        check_growth: updates between two evaluations, as a fraction of the updates so far, and at least one. This grid
            is geometric and the same for every replicate; it does not depend on the clock. The number of
            updates at which a target is crossed is interpolated between the check before it and the check after it.
        check_every: updates between two evaluations on a fixed grid, instead of the geometric grid. The updates of the
            first evaluation at the target then count, without interpolation, as in the papers.
        clock: stop like the program of Perkins21, which looked at a clock: evaluations are `check_every` updates apart
            or `check_growth` times the updates so far, if that is more. No step is interpolated. Under the protocol
            budget, every other grammar ends at the first evaluation after concat's last.
        evaluation_size: meanings per evaluation. The default is 1024; the papers have 128. This divides the standard
            deviation of an accuracy by 2.8, so fewer runs stop early by chance. Checks that follow each other closely
            use fewer meanings (`check_size`).
        steps_from_zero: count updates as in the authors' loop, where the first evaluation is after one update and has
            the number 0.
        fresh_reading: report the accuracy on newly drawn meanings at the stop. The reading that crossed the target is
            biased upwards, because it was selected for being high.
        round_ratio: round acquisition ratios to one decimal before they are averaged.
        max_steps: maximum number of updates of a baseline; if it has not reached its target by then, the run failed.
        published_models: build models with the errors that the published numbers depend on (Entry.published).
        temperature: temperature of GUMB's softmax.
        least_squares: GUMB receivers learn by the squared error of their raw scores, without sampling.
        reward_weight: weight of DISCR's reward term.
        entropy_weight: weight of DISCR's entropy term.
        symbols: symbols that senders can use under SOFT, GUMB and DISCR: "V+1", the vocabulary and the start symbol, or
            "V", the vocabulary alone. Under GS, QT and CB senders never use the start symbol.
        tau: temperature of GS.
        straight_through: GS emits one-hot samples in training too, with the gradient of relaxed samples.
        levels: values of a digit of QT; with two, words are binary.
        normalise: function that maps the scores of QT to [0, 1] before rounding: "sigmoid"; or "batch", by the smallest
            and the largest score over batch and digits.
        codes: in a pair, number of codes of CB; None for the number of tokens.
        commitment: in a pair, weight of the term of CB's loss that moves scores to their codes.
        soft_feedback: in an end-to-end run, a sender reads its symbols as probabilities for any representation of the
            link.
        training_readings: read the accuracy on the training batches since the last evaluation, each before its update;
            in an end-to-end run also topsim, on the last of them.
        tf32: on a GPU, multiply matrices in TF32, which is faster, but has 10 bits of mantissa instead of 23. The
            preset "published" does not allow it.
        optimizer: "adam", or another of `torch.optim` by its name in lower case: "rmsprop", which Perkins21 tried
            too (section 3.2), "adadelta", "adagrad", "adamax", "adamw", "asgd", "nadam", "radam", "rprop" or "sgd".
            Native cores have Adam and RMSprop.
    """

    batch_size: int = setting(128, least=1)
    learning_rate: float = setting(1e-3, above=0)
    clip_norm: float | None = setting(5.0, above=0)
    check_growth: float = setting(0.1, above=0, most=1)
    check_every: int | None = setting(None, least=1)
    evaluation_size: int = setting(1024, least=1)
    steps_from_zero: bool = False
    fresh_reading: bool = True
    round_ratio: bool = False
    max_steps: int = setting(50_000, least=1)
    published_models: bool = False
    temperature: float = setting(1.2, above=0, metadata=_only("gumb"))
    least_squares: bool = field(default=False, metadata=_only("gumb"))
    reward_weight: float = setting(1.0, least=0, metadata=_only("discr"))
    entropy_weight: float = setting(0.01, least=0, metadata=_only("discr"))
    symbols: SymbolsName = setting("V+1", "set of symbols", metadata={SILENT: RUN_KINDS, **_only(*OPEN)})
    tau: float = setting(1.0, above=0, metadata=_only("gs"))
    straight_through: bool = field(default=False, metadata=_only("gs"))
    levels: int = setting(2, least=2, metadata=_only("qt"))
    normalise: NormalisationName = setting("sigmoid", "normalisation", metadata=_only("qt"))
    codes: int | None = setting(None, least=2, metadata=_only("cb", kind="e2e"))
    commitment: float = setting(0.25, least=0, metadata=_only("cb", kind="e2e"))
    soft_feedback: bool = field(default=False, metadata=_only(kind="e2e"))
    training_readings: bool = field(default=False, metadata={SILENT: ("probe",)})
    tf32: bool = field(default=False, metadata={SILENT: RUN_KINDS})
    optimizer: str = setting("adam", "optimizer", among=list(OPTIMIZERS), metadata={SILENT: RUN_KINDS})
    clock: bool = field(default=False, metadata={SILENT: RUN_KINDS})

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("steps_from_zero", "clock"):
            if getattr(self, name) and self.check_every is None:
                raise InvalidSettingError(
                    f"{name} needs the number of updates between evaluations: set check_every, such as 50."
                )

    @property
    def interpolates(self) -> bool:
        """Whether the updates at which the target is reached are interpolated between two checks."""
        return self.check_every is None

    def next_check(self, updates: int) -> int:
        """Return the number of updates at the next evaluation after `updates`; 0 gives the first evaluation.

        The last grid point before `max_steps` is followed by `max_steps` itself.
        """
        following = updates + (1 if self.steps_from_zero and not updates else self._apart(updates))
        return min(following, self.max_steps) if self.interpolates and updates < self.max_steps else following

    def _apart(self, updates: int) -> int:
        """Return the number of updates from an evaluation to the next."""
        grown = int(updates * self.check_growth) if self.clock or self.check_every is None else 0
        return max(self.check_every or 1, grown)

    def check_size(self, updates: int) -> int:
        """Return the number of meanings that the evaluation after `updates` updates measures.

        Early evaluations are frequent, so measuring all meanings each time would cost more than the training. On the
        geometric grid: an eighth of the meanings since the last check, which costs about 5 % of the updates
        before it, but at least SMALL_CHECK, so early checks cost more. Sizes are powers of two, so that there are few
        different sizes.
        """
        if self.check_every is not None or self.evaluation_size <= SMALL_CHECK:
            return self.evaluation_size
        share = max(SMALL_CHECK, int(updates * self.check_growth) * self.batch_size // 8)
        return min(self.evaluation_size, 1 << share.bit_length() - 1)

    def checks_around(self, steps: float) -> tuple[int, int]:
        """Return the steps of the last check before `steps` (0 if none) and of the first check at or after `steps`."""
        if self.check_every is not None and not self.clock:
            after = max(1, math.ceil(steps / self.check_every)) * self.check_every
            return after - self.check_every, after
        before, after = 0, self._apart(0)
        while after < steps:
            before = self._last_evenly_spaced(after, steps)
            after = self.next_check(before)
        return before, after

    def _last_evenly_spaced(self, updates: int, steps: float) -> int:
        """Return a check before `steps`; from `updates` up to this check, all checks are evenly spaced.

        This avoids counting the checks one by one: with a tiny growth, that would take as long as a training, and
        records may come from anyone.
        """
        apart = self._apart(updates)
        end = min(steps, (apart + 1) / self.check_growth, self.max_steps if updates < self.max_steps else math.inf)
        return updates + apart * max(0, int((end - updates) / apart) - 1)

    def under(self, representation: str, kind: str = "probe") -> dict[str, Any]:
        """Return the settings that can change the numbers of a kind of run with a representation."""
        here = {"representation": representation, "kind": kind}
        idle = {f.name for f in fields(self) if any(here[n] not in f.metadata.get(n, (here[n],)) for n in here)}
        idle |= self.silent(kind)
        if not self.clock:
            idle.add("check_every" if self.check_every is None else "check_growth")
        return {name: value for name, value in vars(self).items() if name not in idle}

    def silent(self, kind: str) -> set[str]:
        """Return the settings that were added to a kind of run later, and are at their defaults."""
        added = (f for f in fields(self) if kind in f.metadata.get(SILENT, ()))
        return {f.name for f in added if getattr(self, f.name) == f.default}

    def steps(self, updates: int) -> int:
        """Return the step number of a record after `updates` updates: one less if the preset counts steps from zero."""
        return updates - 1 if self.steps_from_zero else updates


PUBLISHED: dict[str, Departure] = {
    "no clipping": Departure(
        {"clip_norm": None}, "both papers state clipping at 5.0, but the authors' clipping call sees no parameters"
    ),
    "small readings": Departure({"evaluation_size": 128}, "accuracy is read from one batch of 128 meanings"),
    "steps from zero": Departure(
        {"steps_from_zero": True, "check_every": 50},
        "steps are the loop index at a check, checks fall on 0, 50, 100, ..., and nothing is interpolated",
    ),
    "stopping reading": Departure(
        {"fresh_reading": False}, "the accuracy reported is the one that stopped the run, biased upwards for concat"
    ),
    "rounded ratios": Departure(
        {"round_ratio": True}, "acquisition ratios are rounded to one decimal before averaging over seeds"
    ),
    "parameter totals": Departure(
        {}, "tables show totals that include parameters without effect, and an embedding twice"
    ),
    "model defects": Departure(
        {"published_models": True}, "Hier receivers (except Hier:LSTM) gate a whole batch by its first example"
    ),
    "least squares": Departure(
        {"least_squares": True}, "GUMB receivers do not sample: squared error of their raw scores"
    ),
    "more entropy": Departure(
        {"entropy_weight": 0.1},
        "the published DISCR runs of senders and receivers alone weigh the entropy by 0.1",
        kinds=("probe",),
    ),
    "soft feedback": Departure(
        {"soft_feedback": True},
        "end to end, senders see their own symbols as probabilities, even if the representation samples them",
        kinds=("e2e",),
    ),
    "training readings": Departure(
        {"training_readings": True},
        "end to end, accuracy is the mean over training batches since the last reading, and topsim of the last batch",
        kinds=("e2e",),
    ),
}

PRESETS: dict[str, Mapping[str, Departure]] = {"default": {}, "published": PUBLISHED}


def checks_text(settings: Mapping[str, Any]) -> str:
    """Return the grid of checks of a configuration as text."""
    return ", ".join(f"{name}={settings[name]}" for name in CHECKS if settings.get(name) is not None)


def settings_for(preset: str, kind: str = "probe", **overrides: Any) -> TrainingSettings:
    """Return the settings of a preset for a kind of run, with overrides.

    Args:
        preset: "default" or "published".
        kind: "probe", or "e2e" for pairs.
        **overrides: settings to change.

    Returns:
        The settings. A setting that is neither in the preset nor in `overrides` has its default.

    Raises:
        UnknownNameError: unknown preset or setting.
        InvalidSettingError: a value that is not possible.
    """
    require_known("preset", preset, PRESETS, "`icy list presets` describes them.")
    known = [f.name for f in fields(TrainingSettings)]
    for name in overrides:
        require_known("training setting", name, known)
    if preset == "published" and overrides.get("tf32"):
        raise InvalidSettingError("The preset 'published' computes in full precision; leave out tf32.")
    departures = [departure.settings for departure in PRESETS[preset].values() if kind in departure.kinds]
    return replace(TrainingSettings(), **{name: v for some in departures for name, v in some.items()} | overrides)


def with_budget(settings: TrainingSettings, max_updates: int | None) -> TrainingSettings:
    """Return settings with the last evaluation at a common budget of updates; None changes nothing.

    Raises:
        InvalidSettingError: a fixed grid of evaluations does not include the budget.
    """
    if max_updates is None:
        return settings
    every = settings.check_every
    if every is not None and max_updates % every:
        nearest = max(1, round(max_updates / every)) * every
        raise InvalidSettingError(
            f"max_updates={max_updates} is not an evaluation of the fixed grid, which has check_every={every}: give a "
            f"multiple of {every}, such as {nearest}."
        )
    return replace(settings, max_steps=max_updates)
