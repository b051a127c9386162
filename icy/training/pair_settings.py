"""Settings of pairs: a sender and a receiver trained together, from scratch or after each learned a grammar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from icy.config.kinds import request_of
from icy.config.protocols import SCRATCH, checked_cap, checked_target
from icy.config.requests import CHANGES, MODELS, SEEDS, RunRequest, option, set_symbols
from icy.config.settings import (
    PRETRAINING_SETTINGS,
    Grammars,
    Numbers,
    RepresentationName,
    SymbolsName,
    TrainingSettings,
)
from icy.core.fields import setting
from icy.core.registry import SIDES, Entry, registry
from icy.core.streams import DrawsName
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.records.record import NOT_LEARNED

from .populations import Lengths, Population
from .probe_settings import DRAWS, LanguageSettings, ProbeSettings

HAMMING = {"correlation": "spearman", "meaning": "hamming", "message": "hamming"}
FORMER_GRID = 50  # updates between checks, the default of version 0.1
LEARNING_ORDER = ("receiver", "sender")  # of the sides, before the game
GAME = "game"  # phase of readings in the game; in pre-training the phase is the side


def _fixed_length(name: str) -> Callable[[EndToEndSettings], str]:
    def why(own: EndToEndSettings) -> str:
        if own.scratch:
            return f"{name} does nothing from scratch, which does not train concat."
        if own.updates is not None:
            return f"{name} does nothing with {own.updates} updates, which fix the length of the game."
        return ""

    return why


def _for_pretraining(name: str) -> Callable[[EndToEndSettings], str]:
    return lambda own: f"{name} does nothing from scratch: it is for pre-training." if own.scratch else ""


def _not_replaced(own: EndToEndSettings) -> str:
    return (
        ""
        if own.replace_every
        else ("replacement does nothing without replace_every, the updates between two replacements.")
    )


def _may_end(own: EndToEndSettings) -> str:
    return "" if own.max_length is None else "max_length replaces word_length: leave one of the two out."


def _if_population(name: str) -> Callable[[EndToEndSettings], Choices]:
    return lambda own: {} if own.population.is_pair else {name: getattr(own, name)}


@dataclass(frozen=True, kw_only=True)
class EndToEndSettings(LanguageSettings):
    """How a sender and a receiver are trained together.

    From scratch, a pair plays `updates`. After pre-training, it plays `cap` times the updates of supervised training on
    concat with the same seed (of the slower side), but at most `most`. If `updates` is set, it plays these.

    Attributes:
        sender: name of the sender.
        receiver: name of the receiver.
        senders: number of senders of a population, or several. In every update they play with random receivers.
        receivers: number of receivers of a population, or several.
        replace_every: updates after which new agents replace old ones, or several; 0 for never.
        replacement: agents that are replaced: "gradual", the oldest sender and the oldest receiver; "random", a random
            agent of each side; "receivers", all receivers; or several.
        max_length: largest number of tokens of a message that the sender may end early, in place of A*w, or several.
            The start symbol ends a message.
        length_cost: cost of a token, which is added to the loss: a number, by default 0; "lazy", which grows with the
            accuracy of the pair; "impatient", the receiver answers after every token; "lazimpa", both (Rita et al.
            2020); or several.
        updates: updates of the game; from scratch 50000, after pre-training cap times concat's updates.
        cap: updates of the game after pre-training, as a multiple of concat's supervised updates at the same seed (of
            the slower side).
        most: limit of these updates; 0 for no limit.
        target: accuracy that each side must reach in pre-training.
        pretrain_representation: representation in which each side learns its grammar; soft, as published; or
            several.
        pretrained: hashes that identify the rows of the probes that trained the sides; "" if they are pre-trained now.
        report_every: updates between two evaluations of the game.
        sender_options: further arguments of the senders.
        receiver_options: further arguments of the receivers.
        scratch: whether the game starts from scratch.
    """

    kind = "e2e"
    constants = {"protocol": "e2e"}  # noqa: RUF012

    sender: str = setting(asked=False, label="", key="")
    receiver: str = setting(asked=False, label="", key="")
    senders: int = setting(
        1, "number of senders", least=1, axis=True, metavar="N[,...]", writes=_if_population("senders")
    )
    receivers: int = setting(
        1, "number of receivers", least=1, axis=True, metavar="M[,...]", writes=_if_population("receivers")
    )
    replace_every: int = setting(0, "number of updates between two replacements", least=0, axis=True, since="0.2")
    replacement: str = setting("gradual", axis=True, metavar="gradual|random|receivers[,...]", idle=_not_replaced)
    max_length: int | None = setting(None, "maximum length", least=1, axis=True, since="0.2")
    length_cost: float | str = setting(0.0, axis=True, since="0.2", metavar="C|lazy|impatient|lazimpa[,...]")
    updates: int | None = setting(None, least=1, quick=400, key="steps", label="")
    word_length: int = setting(4, axis=True, quick=2, label="w", metavar="w[,...]", idle=_may_end, refused=True)
    draws: DrawsName = setting(
        "icy", DRAWS, axis=True, since="0.3", metavar="icy|authors[,...]", idle=_for_pretraining("draws")
    )
    cap: float = setting(20, idle=_fixed_length("cap"))
    most: int | None = setting(10_000, least=0, idle=_fixed_length("most"), takes=int, label="")
    target: float = setting(0.99, idle=_for_pretraining("target"))
    pretrain_representation: RepresentationName = setting(
        "soft", "representation", axis=True, idle=_for_pretraining("pretrain_representation"), label=""
    )
    pretrained: str = setting("", asked=False, since="0.2", idle=_for_pretraining("pretrained"), label="")
    report_every: int = setting(100, least=1, label="")
    sender_options: Mapping[str, Any] = setting(
        {}, flags=("--sender-option",), help="a further argument of the senders, as in layers=2.", key="", label=""
    )
    receiver_options: Mapping[str, Any] = setting(
        {}, flags=("--receiver-option",), help="a further argument of the receivers.", key="", label=""
    )
    scratch: bool = field(default=False, compare=False, metadata={"asked": False, "key": "", "label": ""})

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_target(self.target)
        checked_cap(self.cap, 0)
        object.__setattr__(self, "length_cost", Lengths(self.max_length, self.length_cost).length_cost)
        assert self.population  # raises if it is not possible

    @property
    def name(self) -> str:
        """Names of both models."""
        return f"{self.sender}+{self.receiver}"

    @property
    def side(self) -> str:
        """ "pair"."""
        return "pair"

    @property
    def models(self) -> list[Entry]:
        """The registry entries of the sender and the receiver."""
        return [registry.get(getattr(self, side), side) for side in SIDES]

    @cached_property
    def population(self) -> Population:
        """The numbers of senders and receivers, and the schedule of their replacement."""
        return Population(self.senders, self.receivers, self.replace_every, self.replacement)

    @cached_property
    def lengths(self) -> Lengths:
        """Whether the sender may end its messages early, and the cost of tokens."""
        return Lengths(self.max_length, self.length_cost)

    @property
    def message_length(self) -> int:
        """Largest number of tokens in a message, L: `max_length` if it is set, otherwise a word per attribute."""
        return self.max_length or super().message_length

    @property
    def work_factors(self) -> Sequence[object]:
        """The population, and the lengths of messages."""
        return self.population, self.lengths

    @property
    def options(self) -> Choices:
        """The options of both models, with the side as a prefix."""
        return {f"{side}.{name}": one for side in SIDES for name, one in getattr(self, f"{side}_options").items()}

    def alone(self, side: str, representation: str, **more: Any) -> ProbeSettings:
        """Return the settings of one side by itself; `more` has other fields."""
        own = {name: getattr(self, name) for name in ("hidden", "meanings", "vocab_size", "word_length", "draws")}
        return ProbeSettings(
            **own,
            model=f"{side}/{getattr(self, side)}",
            options=getattr(self, f"{side}_options"),
            representation=representation,  # type: ignore[arg-type]
            training=self.training,
            preset=self.preset,
            paired=True,
            max_length=self.max_length,
            **more,
        )

    @property
    def learners(self) -> list[ProbeSettings]:
        """The settings of each side alone."""
        return [self.alone(side, self.representation) for side in SIDES]

    def feedback(self, training: TrainingSettings) -> str:
        """Return the representation in which the sender sees its own symbols during the game."""
        return "soft" if training.soft_feedback and self.models[0].works_with("soft") else self.representation

    def limit(self, baseline_steps: float) -> int:
        """Return the number of updates of a game after pre-training."""
        if self.updates is not None:
            return self.updates
        limit = max(1, int(self.cap * baseline_steps))
        return limit if self.most is None else min(limit, self.most)

    def config(self) -> Choices:
        """Return the entries of the configuration of a record, without grammar and seed."""
        return {**super().config(), "options": self.options}

    def training_config(self) -> Choices:
        """Return the settings of the game and of pre-training that can change the numbers."""
        game = super().training_config()
        if not self.scratch:
            return self.training.under(self.pretrain_representation, self.kind) | game
        if game.pop("check_growth", None) is not None:
            game["check_every"] = FORMER_GRID  # without effect, but keys of earlier records include it
        return game

    def facts(self) -> dict[str, str]:
        """Return the settings that distinguish rows with the same name, as texts by heading."""
        cost = self.length_cost if isinstance(self.length_cost, str) else f"{self.length_cost:g}"
        texts = {
            "senders": counted(self.senders, "sender"),
            "receivers": counted(self.receivers, "receiver"),
            "replace_every": f"new agents every {counted(self.replace_every, 'update')}",
            "replacement": f"{self.replacement} replacement",
            "max_length": f"at most {counted(self.max_length or 0, 'token')}",
            "length_cost": f"length cost {cost}",
        }
        config = self.config()
        facts = {name: text for name, text in super().facts().items() if name.replace(" ", "_") not in texts}
        if self.max_length is not None:
            del facts["w"]
        facts["protocol"] = config["protocol"]
        return {**facts, **{name: text for name, text in texts.items() if name in config}}

    def idle(self, given: Iterable[str]) -> dict[str, str]:
        """Return the given fields and settings of training without effect, each with a sentence."""
        given, found = set(given), super().idle(given)
        both = [self.representation, *([] if self.scratch else [self.pretrain_representation])]
        found |= self.unread(given, both, f"in an end-to-end run with the representation '{self.representation}'")
        if self.pretrained and "target" in given:
            found["target"] = "target does nothing with pretrained: the probe has trained the models already."
        said = {"round_ratio": "in an end-to-end run, which gives no ratios."}
        if "gumb" not in ([] if self.pretrained else both[1:]):
            said["least_squares"] = "in a game: it is for pre-training by 'gumb'."
        if self.scratch or self.pretrained:
            where = "from scratch" if self.scratch else "with pretrained"
            said |= dict.fromkeys(PRETRAINING_SETTINGS, f"{where}: it is for pre-training.")
        return found | {name: f"The setting '{name}' does nothing {why}" for name, why in said.items() if name in given}

    def length(self, baseline: float | None) -> int | None:
        """Return the number of updates of a game; None if it depends on updates of concat that are not known."""
        if self.updates is not None:
            return self.updates
        return None if baseline is None else self.limit(baseline)

    def phase_text(self, phase: str) -> str | None:
        """Return a text that names the side in pre-training; None during the game."""
        return None if phase in ("", GAME) else f"pre-training {phase}s"

    def summary(self, record: Fields) -> str:
        """Return the result of a pair in a few words."""
        sender = record["sender_accuracy"]
        drift = "" if sender is None else f", sender on its language {sender:.3f}"
        if (worst := record.get("worst_accuracy")) is not None:
            drift = f", worst pairing {worst:.3f}"
        return f"end to end {record['end_to_end_accuracy']:.3f}{drift} after {counted(record['steps'], 'update')}"

    def explain(self, reason: str, condition: str, numbers: Fields) -> str:
        """Return the reason for a failure, as a sentence without a full stop; "" for the usual sentence."""
        if reason != NOT_LEARNED:
            return super().explain(reason, condition, numbers)
        if numbers.get("diverged"):
            return f"the loss of the {numbers['diverged']} is no longer a finite number, in pre-training"
        slow = {side: numbers[f"{side}_accuracy"] for side in SIDES if numbers.get(f"{side}_accuracy", 1) < self.target}
        sides = " and ".join(f"the {side} ({reading:.3f})" for side, reading in slow.items())
        within = "in the probe" if self.pretrained else f"within {counted(self.training.max_steps, 'update')}"
        return f"pre-training did not reach {self.target} {within}: {sides} on {condition}"


@request_of(EndToEndSettings)
class EndToEndRequest(RunRequest):
    """The arguments of `icy.e2e`.

    Attributes:
        sender: names of senders.
        receiver: names of receivers: a receiver per sender, or a single receiver for all senders (or a single sender
            for all receivers).
        pretrain: grammars (names, chains or wildcards) or languages (see ProbeRequest) that both sides learn first,
            each in a separate run; or "none", to start from scratch.
        pretrained: results of a probe that saved its models (`keep_models`). Its senders and receivers of each grammar
            and seed play the game, instead of newly pre-trained models.
        frequencies: how often each meaning is drawn: "equal", or "zipf:S"; by default by the weights of the table, or
            equal. Or several.
        seeds: how many, counted from 123 as in the papers, or which: [1, 2], "1,2", "123-127".
        symbols: symbols that senders can use under soft, gumb and discr: "V+1" (default), the vocabulary and the start
            symbol; or "V", the vocabulary alone. The same as the setting `symbols`.
        settings: changes to the preset's TrainingSettings, by name; a list has several values to vary.
        quick: a small space, few seeds and few updates if these are not given, to try things out.
    """

    function = "icy.e2e"
    job_kind = "e2e"
    small = MappingProxyType({"seeds": 2})
    old_names = MappingProxyType({**RunRequest.old_names, "steps": "updates"})
    axes = ("frequencies", "settings")

    sender: str | Iterable[str] = option(**{**MODELS, "flags": ("--sender", "-s")})
    receiver: str | Iterable[str] = option(**{**MODELS, "flags": ("--receiver", "-r")})
    pretrain: Grammars = option(
        SCRATCH,
        metavar="GRAMMAR|none",
        completes="files_and_grammars",
        help="grammars, or files of languages, that both sides learn first, each in a separate run, repeatable; or "
        "none, from scratch.",
    )
    pretrained: str | Path | None = option(None, metavar="RESULTS")
    frequencies: str | Iterable[str] | None = option(None, metavar="equal|zipf:S[,...]")
    seeds: Numbers = option(3, **SEEDS)
    symbols: SymbolsName | None = option(None, brackets=False)
    settings: Mapping[str, Any] = option({}, **CHANGES)

    def __post_init__(self) -> None:
        set_symbols(self)


def pair_conventions(config: Fields) -> dict[str, dict[str, str]]:
    """Return the conventions of topsim in a record of a pair, by the configuration of the record."""
    published = config.get("settings", {}).get("training_readings", False)
    return {"topsim": {**HAMMING, "pairs": "ordered" if published else "all"}}
