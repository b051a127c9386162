"""Settings of chains: a language is passed from learner to learner, and each learner sees a part of the meanings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from icy.config.kinds import request_of
from icy.config.protocols import Protocol, checked_target
from icy.config.requests import CHANGES, MODELS, RunRequest, option
from icy.config.settings import SCHEMES, Grammars, Meanings, Numbers, with_budget
from icy.core.errors import InvalidSettingError, quoted
from icy.core.fields import setting
from icy.core.registry import Entry, registry
from icy.core.streams import stream_key
from icy.core.types import Choices, Fields
from icy.languages.meanings import IntArray, MeaningSpace
from icy.languages.splits import Split
from icy.records.record import LANGUAGES

from .job import Replicate
from .pair_settings import LEARNING_ORDER, EndToEndSettings
from .probe_settings import LanguageSettings, ProbeSettings

IDLE_IN_CHAINS = ("fresh_reading", "round_ratio", "max_steps", "training_readings")  # a learner has other rules


def _has_one_member(own: ChainSettings) -> str:
    if own.population > 1:
        return ""
    return "replacement does nothing without a population of at least two members."


def _if_population(own: ChainSettings) -> Choices:
    return {"population": own.population, "replacement": own.replacement} if own.population > 1 else {}


@dataclass(frozen=True, kw_only=True)
class ChainSettings(LanguageSettings):
    """How languages are passed on.

    Attributes:
        model: names or wildcards of senders, or of receivers as in "receiver/FC2L"; in pairs the sender.
        receiver: names of receivers, for chains of pairs: one for every sender, or one for all of them (or one sender
            for all receivers). Both sides learn, and the sender speaks to the next pair.
        generations: learners in a chain, one after the other.
        bottleneck: the share of the meanings that a learner sees, or their number if it is more than 1; or several.
            Every value of every attribute is among them. 1 shows all meanings.
        transmission: the messages that a learner passes on: "greedy", the most probable tokens; "sampled", tokens
            drawn from its probabilities; or several.
        target: the accuracy on the meanings seen at which a learner stops; "none" trains `updates` in any case.
        updates: maximum number of updates of a learner, in pairs of each side.
        interaction: updates in which the sender and the receiver of a pair play after both have learned, so that
            ambiguous messages are penalized; or several. 0 for none.
        population: number of members of the population of a chain, or several. The teacher of a learner is drawn from
            all members of the last generation.
        replacement: members that a generation replaces by learners: "simultaneous", all; "gradual", one in turn; or
            several.
        options: further arguments of the models; in pairs, of the senders.
        receiver_options: further arguments of the receivers of pairs.
    """

    kind = "chain"
    constants = {"protocol": "iterated"}  # noqa: RUF012
    has_baseline = False

    model: str = setting(asked=False, key="", label="")
    receiver: str = setting("", asked=False, key="", label="")
    generations: int = setting(10, "number of generations", least=1, quick=3)
    bottleneck: float = setting(0.5, axis=True, metavar="SHARE|N[,...]")
    transmission: Literal["greedy", "sampled"] = setting("greedy", axis=True)
    target: float | None = setting(0.98, key="learner_target", takes=float | str, metavar="ACCURACY|none")
    updates: int = setting(4000, "number of updates", least=1, quick=1000, key="learner_updates")
    interaction: int = setting(0, "number of updates of the interaction", least=0, axis=True, since="0.2")
    population: int = setting(1, "number of members of a population", least=1, axis=True, writes=_if_population)
    replacement: Literal["simultaneous", "gradual"] = setting("simultaneous", axis=True, key="", idle=_has_one_member)
    meanings: str = setting("4x5", axis=True, quick="3x4", takes=Meanings, metavar="AxK[,...]")
    word_length: int = setting(3, axis=True, quick=2, label="w", metavar="w[,...]")
    hidden: int = setting(
        *(64, "hidden size"), least=1, axis=True, quick=32, key="hidden_size", label="hidden size", metavar="E[,...]"
    )  # fmt: skip
    options: Mapping[str, Any] = setting(
        {}, flags=("--option",), help="a further argument of the models; in pairs, of the senders.", label="",
        writes=lambda own: {"options": own.pair.options if own.receiver else own.options},
    )  # fmt: skip
    receiver_options: Mapping[str, Any] = setting(
        {}, flags=("--receiver-option",), help="a further argument of the receivers of pairs.", key="", label=""
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target is not None:
            checked_target(self.target)
        if not self.receiver:
            for name in ("receiver_options", "interaction"):
                if getattr(self, name):
                    raise InvalidSettingError(
                        f"The option {name} is for chains of pairs: give a receiver (--receiver) too."
                    )

    @property
    def name(self) -> str:
        """Name of the model with its side, or of the pair."""
        return f"{self.model}+{self.receiver}" if self.receiver else self.model

    @property
    def short_name(self) -> str:
        """Name without the side."""
        return self.name if self.receiver else self.model.partition("/")[2]

    @property
    def side(self) -> str:
        """ "sender", "receiver" or "pair"."""
        return "pair" if self.receiver else self.model.partition("/")[0]

    @property
    def measure(self) -> str:
        """The share of the tokens that are the same in the first and the last language."""
        return "survival"

    @property
    def trains_as(self) -> str:
        """The kind of run whose presets and training settings apply."""
        return "e2e" if self.receiver else "probe"

    @property
    def models(self) -> list[Entry]:
        """The registry entries of the models."""
        return self.pair.models if self.receiver else [registry.get(self.model)]

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that learn, in order."""
        return LEARNING_ORDER if self.receiver else (self.side,)

    @cached_property
    def pair(self) -> EndToEndSettings:
        """The pair that plays after both sides have learned, for `interaction` updates."""
        length = max(1, self.interaction)
        both: Choices = {"sender_options": self.options, "receiver_options": self.receiver_options}
        return EndToEndSettings(
            **self._sizes, **both, sender=self.model, receiver=self.receiver, updates=length, report_every=length
        )

    @property
    def _sizes(self) -> Choices:
        names = ("hidden", "meanings", "vocab_size", "word_length", "representation", "draws", "preset", "training")
        return {name: getattr(self, name) for name in names}

    def learner(self, side: str, lesson: Protocol | None = None) -> ProbeSettings:
        """Return the settings of the learners of a side, which train by some rules."""
        own: Choices = {"lesson": lesson, "held_out": 1 - self.bottleneck}
        if self.receiver:
            found = self.pair.alone(side, self.representation, **own)
        else:
            found = ProbeSettings(**self._sizes, **own, model=self.model, options=self.options)
        return replace(found, training=with_budget(self.training, self.updates))

    @property
    def learners(self) -> list[ProbeSettings]:
        """The settings of the learners of each side."""
        return [self.learner(side) for side in self.sides]

    def split(self) -> Split | None:
        """Return the split into meanings that a learner sees and held-out meanings; None if it sees all.

        Raises:
            InvalidSettingError: the learner would see no meaning, or not every value.
        """
        if self.bottleneck == 1:
            return None
        split = Split("random", 1 - self.bottleneck)
        try:
            split.check(self.space)
        except InvalidSettingError:
            seen = round(self.bottleneck * self.space.size)
            raise InvalidSettingError(
                f"A bottleneck of {self.bottleneck:g} shows {seen} of the {self.space.size} meanings of {self.space}. "
                f"A learner must see at least {self.space.values} meanings, so that every value occurs, and fewer than "
                "all. To show all meanings, set the bottleneck to 1."
            ) from None
        return split

    def replaced(self, generation: int) -> list[int]:
        """Return the numbers of the members that a generation replaces, from 0."""
        return [(generation - 1) % self.population] if self.replacement == "gradual" else [*range(self.population)]

    def seen(self, seed: int) -> IntArray:
        """Return the numbers of the meanings that the learner with a seed sees."""
        split = self.split()
        return np.arange(self.space.size) if split is None else split.parts(self.space, seed)[0]

    def idle(self, given: Iterable[str]) -> dict[str, str]:
        """Return the given fields and settings of training without effect, each with a sentence."""
        given, where = set(given), f"in a chain under '{self.representation}'"
        found = (
            super().idle(given) | self.unread(given, [self.representation], where) | self.unread_by(self.side, given)
        )
        return found | {n: f"The setting '{n}' does nothing in a chain." for n in IDLE_IN_CHAINS if n in given}

    def length(self, baseline: float | None) -> int | None:
        """Return the maximum number of updates of a chain."""
        return round(self.updates_with(self.updates))

    def updates_with(self, each: float) -> float:
        """Return the updates of a chain in which each side of a learner makes `each` updates, within the maximum."""
        learners = self.generations * len(self.replaced(1))
        return learners * (len(self.sides) * min(each, self.updates) + self.interaction)

    def limit_text(self) -> str:
        """Return the words before the remaining time: "at most" or "about"."""
        return "at most" if self.target is not None else "about"

    def waiting_text(self) -> str:
        """Return a phrase for the time in which the length is not known."""
        return "passing languages on"

    def summary(self, record: Fields) -> str:
        """Return the result of a chain in a few words."""
        last = record["curve"][-1]
        return (
            f"after {last[0]} generations {record['accuracy']:.0%} of the tokens are still the same; "
            f"{last[3]:.0%} of the messages are distinct"
        )


@request_of(ChainSettings)
class ChainRequest(RunRequest):
    """The arguments of `icy.iterate`: the languages to pass from learner to learner, and how they are passed on.

    Attributes:
        grammar: first languages: names, chains (`rot+perm`) or wildcards of grammars, or languages (see ProbeRequest).
        chains: how many chains start from each language, counted from seed 123, or the seeds themselves: [1, 2],
            "1,2", "123-127".
        scheme: options as in a paper, if they are not given: "ren20" (Ren et al. 2020, NIL) and "elberg25" (Elberg et
            al. 2025, CELEBI), an interaction of 4000 updates; "cheng23" (Cheng et al. 2023, imitation), a single
            generation without interaction; "li19-gradual" and "li19-simultaneous" (Li and Bowling 2019), populations
            of 5 that are replaced one by one or all at once.
        settings: changes to the preset's TrainingSettings, by name; a list has several values to vary.
        quick: a small space, few chains and few generations wherever these are not given, to try things out.
    """

    function = "icy.iterate"
    job_kind = "chain"
    small = MappingProxyType({"chains": 2})
    axes = ("settings",)

    model: str | Iterable[str] = option(**MODELS)
    receiver: str | Iterable[str] = option((), **{**MODELS, "flags": ("--receiver", "-r")})
    grammar: Grammars = option(
        "all",
        flags=("--grammar", "-g"),
        metavar="NAME",
        completes="files_and_grammars",
        help="first languages: names, chains (rot+perm) or wildcards of grammars, or files of languages, repeatable; "
        '"all" is every grammar that the learners can use.',
    )
    chains: Numbers = option(4, metavar="N|N,N,...")
    bottleneck: float | str | Iterable[float] = option(0.5, metavar="SHARE|N[,...]")
    scheme: str | None = option(None, metavar="|".join(SCHEMES))
    settings: Mapping[str, Any] = option({}, **CHANGES)


def bottleneck_share(given: object, space: MeaningSpace) -> float:
    """Return the bottleneck as a share of the meanings. A value above 1 is a number of meanings.

    Raises:
        InvalidSettingError: not a share or a number of meanings.
    """
    try:
        number = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number <= space.size or (number > 1 and number != int(number)):
        raise InvalidSettingError(
            f"The bottleneck is a share above 0 and at most 1, or a number of meanings from 2 to {space.size}; not "
            f"{quoted(given)}."
        )
    return number if number <= 1 else number / space.size


def language_path(job: Any, replicate: Replicate, generation: int, place: int = 0) -> str:
    """Return the file of the language of a learner in the results folder.

    Args:
        job: the chains.
        replicate: the chain.
        generation: generation of the learner; 0 for the first language.
        place: its place among the learners of its generation; only the first has a name without it.
    """
    return f"{LANGUAGES}/{job.key(replicate)}-{generation:02d}{f'.{place:02d}' if place else ''}.npz"


def chain_conventions(config: Fields) -> dict[str, dict[str, str]]:
    """Return the conventions of topsim in the records of chains."""
    return {"topsim": {"correlation": "spearman", "meaning": "hamming", "message": "levenshtein", "pairs": "all"}}


def learner_of(chain: Replicate, generation: int, member: int = 0) -> Replicate:
    """Return the learner of a generation that takes the place of a member.

    Its seed is that of its weights and of the meanings that it sees.
    """
    names = ("generation", generation, *(("member", member) if member else ()))
    return replace(chain, seed=stream_key(chain.seed, *names))
