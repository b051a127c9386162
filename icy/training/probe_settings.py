"""Settings shared by all kinds with models that learn languages, and the settings of probes of one model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from icy.config.kinds import Settings, request_of
from icy.config.protocols import BASELINE, PROTOCOLS, SCRATCH, Protocol, get_protocol, no_max_updates
from icy.config.requests import CHANGES, MODELS, SEEDS, RunRequest, option, set_symbols
from icy.config.settings import (
    OF_MESSAGES,
    Grammars,
    Meanings,
    Numbers,
    PresetName,
    ProtocolName,
    RepresentationName,
    SplitName,
    SymbolsName,
    TrainingSettings,
)
from icy.core.fields import setting
from icy.core.registry import Entry, registry
from icy.core.streams import DrawsName
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.languages.meanings import MeaningSpace
from icy.languages.names import is_language
from icy.languages.splits import Split
from icy.records.long_table import changed_settings
from icy.records.record import checked_accuracy, value_of

# -- settings of kinds whose models learn languages --------------------------------------------------------------------

DRAWS = "generator of languages (draws)"
MEANINGS_HELP = "attributes x values; sizes of each, 10,4,2; or a table of meanings."
HIDDEN_HELP = "hidden size E, or several, each a separate row: 64,128."


@dataclass(frozen=True, kw_only=True)
class LanguageSettings(Settings):
    """The sizes and the training of the models of a row.

    Attributes:
        hidden: hidden size E, or several, each a separate row: [64, 128] or "64,128".
        meanings: the space, "attributes x values", or several: ["3x4", "5x10"] or "3x4,5x10". Also the number of values
            of each attribute, "10,4,2"; or a file of the meanings that exist, with a column per attribute and
            optionally a column `weight`.
        vocab_size: V, or several.
        word_length: tokens per word, w, or several; messages have A*w.
        representation: form of messages: "soft", probabilities; "gumb", Gumbel-softmax samples; "discr",
            tokens, trained by REINFORCE; of the games of CBM24: "gs", relaxed Gumbel-softmax; "qt",
            binary words; "cb", codes; or several: a list, "soft,discr", or "all" that the model works with.
        draws: generators of the languages: "icy"; or "authors", the languages of Perkins21 and Icy22, drawn as in the
            authors' program; or both.
        preset: "default", "published" for the behavior behind the printed numbers, or both.
        training: how the models train.
    """

    version: ClassVar[int] = 1  # increased whenever the code changes in a way that could change results
    has_baseline: ClassVar[bool] = True  # whether replicates are measured relative to concat

    meanings: str = setting(
        "5x10", axis=True, quick="3x4", takes=Meanings, metavar="AxK[,...]|FILE", help=MEANINGS_HELP
    )
    vocab_size: int = setting(
        *(4, "vocabulary size"), least=1, axis=True, label="V", metavar="V[,...]", help="number of tokens, V."
    )
    word_length: int = setting(4, axis=True, quick=2, label="w", metavar="w[,...]")
    representation: RepresentationName = setting("soft", axis=True)
    draws: DrawsName = setting("icy", DRAWS, axis=True, since="0.3", metavar="icy|authors[,...]")
    hidden: int = setting(
        *(128, "hidden size"), least=1, axis=True, quick=32, key="hidden_size", label="hidden size", metavar="E[,...]",
        help=HIDDEN_HELP,
    )  # fmt: skip
    preset: PresetName = setting("default", hint="`icy list presets` describes them.", axis=True, key="")
    training: TrainingSettings = setting(
        TrainingSettings(), asked=False, label="", writes=lambda own: {"settings": own.training_config()}
    )

    def training_config(self) -> Choices:
        """Return the training settings that can change the numbers."""
        return self.training.under(self.representation, self.trains_as)

    @property
    def trains_as(self) -> str:
        """The kind of run whose presets and training settings apply."""
        return self.kind

    def facts(self) -> dict[str, str]:
        """Return the settings that distinguish rows with the same name, as texts by heading."""
        facts = super().facts()
        changed = changed_settings(self._changeable(), self.preset, self.trains_as)
        return {
            "hidden size": facts["hidden size"],
            **{name: text for name, text in facts.items() if (name, text) != ("draws", "icy")},
            **({"settings": changed} if changed else {}),
        }

    def _changeable(self) -> Choices:
        """Return the training settings that are shown if they differ from the preset."""
        return asdict(self.training)

    @property
    def models(self) -> list[Entry]:
        """The registry entries of the models."""
        raise NotImplementedError

    @property
    def entries(self) -> list[Entry]:
        """The registry entries of the models and of their cells."""
        return [one for entry in self.models for one in (entry, entry.cell) if one is not None]

    def entries_of(self, condition: str) -> list[Entry]:
        """Return the registry entries of a grammar, of each part of a chain of grammars."""
        parts = [] if condition == SCRATCH or is_language(condition) else condition.split("+")
        return [registry.get(name, "grammar") for name in parts]

    @property
    def model_version(self) -> str:
        """The versions of the models, joined."""
        return "+".join(entry.full_version for entry in self.models)

    @cached_property
    def space(self) -> MeaningSpace:
        """The meanings."""
        return MeaningSpace.of(self.meanings)

    @property
    def message_length(self) -> int:
        """Largest number of tokens in a message, L: a word per attribute, unless messages may end early."""
        return self.space.attributes * self.word_length

    @property
    def work_factors(self) -> Sequence[object]:
        """Settings that change the time of an update, beside models, sizes and training."""
        return ()

    def work(self) -> float:
        """Return the relative work of an update: the number of tokens of a message."""
        return self.message_length * 1e-6

    def conditions_text(self, conditions: Sequence[str]) -> str | None:
        """Return a sentence that lists the grammars."""
        return None if conditions == [SCRATCH] else f"Grammars of a {self.side}: {', '.join(conditions)}."

    def waiting_text(self) -> str:
        """Return the status text while the length of training is not known."""
        return "learning concat first"

    def explain(self, reason: str, condition: str, numbers: Fields) -> str:
        """Return the reason for a failure, as a sentence without a full stop; "" for the usual sentence."""
        failed = f"{BASELINE} failed at this seed, so there is nothing to compare with"
        return failed if reason == "no_baseline" else ""

    # -- settings of training without effect ---------------------------------------------------------------------------

    def unread(self, given: Iterable[str], representations: Sequence[str], where: str) -> dict[str, str]:
        """Return the given settings of training that no representation of a run reads, each with a sentence."""
        training, kind, found = self.training, self.trains_as, {}
        used = {name for one in representations for name in training.under(one, kind)}
        for name in {f.name for f in fields(TrainingSettings)}.intersection(given):
            if name == "check_growth" and name not in used and training.check_every is not None:
                found[name] = (
                    f"The setting '{name}' does nothing with a fixed grid, check_every={training.check_every}."
                )
            elif name not in used and name not in training.silent(kind):
                found[name] = f"The setting '{name}' does nothing {where}."
        return found

    def unread_by(self, side: str, given: Iterable[str]) -> dict[str, str]:
        """Return the given settings of training that only models of the other side read, each with a sentence."""
        found = {}
        if side == "receiver":
            why = "does nothing in receivers: it concerns the messages of senders."
            found = {name: f"The setting '{name}' {why}" for name in OF_MESSAGES if name in given}
        elif side == "sender" and self.representation == "gumb" and "least_squares" in given:
            found["least_squares"] = "The setting 'least_squares' does nothing in senders."
        return found


# -- settings of one model ---------------------------------------------------------------------------------------------


def _holds_nothing_out(own: ProbeSettings) -> str:
    if own.rules.holds_out:
        return ""
    return f"The protocol '{own.protocol}' holds out no meanings; held_out and split are for 'generalise'."


def _has_no_cap(own: ProbeSettings) -> str:
    if PROTOCOLS[own.protocol].stops_at_target:
        return ""
    return f"The protocol '{own.protocol}' has no cap: every grammar is trained for as many updates as concat."


def _has_no_budget(own: ProbeSettings) -> str:
    return "" if PROTOCOLS[own.protocol].measure == "ratio" else no_max_updates(own.protocol)


@dataclass(frozen=True, kw_only=True)
class ProbeSettings(LanguageSettings):
    """How one model learns languages.

    Attributes:
        model: names or wildcards of senders and receivers (`HierZero:GRU`, `receiver/FC2L`, `sender/RNN*`).
        options: further arguments of the models.
        protocol: "acquire", updates to the target as a ratio to concat's; "budget", accuracy after concat's updates;
            "generalise", accuracy on meanings held out of training; or several: a list, "acquire,budget", or "all".
            All combinations of several protocols, meanings, sizes, representations and presets are rows.
        word_lengths: the bounds of the lengths of words, such as "1-4", where word_length is the larger one; "" if all
            words have word_length tokens.
        target: accuracy at which concat counts as learned; by default 0.8 for acquire and 0.99 for other protocols.
        cap: for acquire and generalise, largest number of updates of a grammar, as a multiple of concat's updates.
        max_updates: for acquire, instead of the cap: the number of updates of every grammar, including concat, even
            beyond the target, so that fast models are not cut early and accuracies at the end are comparable.
        held_out: for generalise, the share of the meanings that is left out of training.
        split: for generalise, how the held-out meanings are chosen: "random"; or "combinations", which holds out all
            meanings with certain pairs of values of two attributes. Each seed has its own choice, and trains on every
            value.
        word_seed: seed of the words of all replicates; by default (None) the words depend on each replicate's seed.
        lesson: rules in place of those of a protocol, for a learner that is part of another kind of training.
        paired: whether the model is a side of a pair. The sides of a pair start from different random numbers.
        max_length: tokens of a message that may end early, in place of A*w.
    """

    kind = "probe"

    model: str = setting(asked=False, label="")
    protocol: ProtocolName = setting("acquire", hint="`icy list protocols` describes them.", axis=True)
    word_lengths: str = setting("", asked=False, since="0.2", label="word_lengths")
    target: float | None = setting(None, label="", writes=lambda own: {"target": own.rules.target, **own.rules.length})
    cap: float | None = setting(None, key="", label="", idle=_has_no_cap, refused=True)
    max_updates: int | None = setting(None, key="", label="", idle=_has_no_budget, refused=True)
    held_out: float = setting(0.2, label="", idle=_holds_nothing_out, refused=True)
    split: SplitName = setting("random", label="", idle=_holds_nothing_out, refused=True, brackets=False)
    word_seed: int | None = setting(None, asked=False, since="0.2", label="")
    options: Mapping[str, Any] = setting({}, flags=("--option",), help="a further argument of the models.", label="")
    lesson: Protocol | None = setting(None, asked=False, key="", label="")
    paired: bool = setting(False, asked=False, key="", label="")
    max_length: int | None = setting(None, asked=False, key="", label="")

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.rules  # raises if target, cap or max_updates are not possible

    @classmethod
    def of_model(
        cls,
        entry: Entry | str,
        space: MeaningSpace | str | tuple[int, int],
        vocab_size: int = 4,
        word_length: int = 4,
        hidden: int = 128,
        representation: str = "soft",
        options: Fields | None = None,
        **more: Any,
    ) -> ProbeSettings:
        """Return the settings of a model with some sizes.

        Args:
            entry: the entry of the model, which need not be registered, or its name with the side.
            space: the meanings.
            vocab_size: V.
            word_length: w.
            hidden: E.
            representation: name of the representation.
            options: further arguments of the model.
            **more: other fields.
        """
        made = cls(
            model=entry if isinstance(entry, str) else entry.qualified,
            meanings=str(MeaningSpace.of(space)),
            vocab_size=vocab_size,
            word_length=word_length,
            hidden=hidden,
            representation=representation,  # type: ignore[arg-type]
            options=options or {},
            **more,
        )
        if isinstance(entry, Entry):
            vars(made)["_entry"] = entry
        return made

    @property
    def name(self) -> str:
        """Name of the model with its side."""
        return self.model

    @property
    def short_name(self) -> str:
        """Name without the side."""
        return self.model.partition("/")[2]

    @property
    def side(self) -> str:
        """ "sender" or "receiver"."""
        return self.model.partition("/")[0]

    @property
    def measure(self) -> str:
        """The measure of the protocol."""
        return self.rules.measure

    @property
    def models(self) -> list[Entry]:
        """The registry entry of the model, in a list."""
        return [self.entry]

    @property
    def entry(self) -> Entry:
        """The registry entry of the model, or the entry that `of_model` was given."""
        given: Entry | None = vars(self).get("_entry")
        return registry.get(self.model) if given is None else given

    @property
    def learners(self) -> list[ProbeSettings]:
        """The settings of each model alone: these."""
        return [self]

    @cached_property
    def rules(self) -> Protocol:
        """The stopping rule and the measure."""
        if self.lesson is not None:
            return self.lesson
        cap = None if _has_no_cap(self) else self.cap
        max_updates = None if _has_no_budget(self) else self.max_updates
        return get_protocol(self.protocol, self.target, cap, self.representation, max_updates)

    @property
    def held_out_meanings(self) -> Split | None:
        """The split of the meanings, if the protocol has held-out meanings."""
        return Split(self.split, self.held_out) if self.rules.holds_out else None

    @property
    def message_length(self) -> int:
        """Largest number of tokens in a message, L: `max_length` if it is set, otherwise a word per attribute."""
        return self.max_length or super().message_length

    @property
    def work_factors(self) -> Sequence[object]:
        """The bounds of the lengths of words."""
        return (self.word_lengths,)

    def training_config(self) -> Choices:
        """Return the training settings that can change the numbers."""
        settings = super().training_config()
        if self.rules.max_updates is not None:
            del settings["max_steps"]  # replaced by the budget
        return settings

    def _changeable(self) -> Choices:
        replaced = {"max_steps"} if self.rules.max_updates is not None else set()
        return {name: value for name, value in asdict(self.training).items() if name not in replaced}

    def facts(self) -> dict[str, str]:
        """Return the settings that distinguish rows with the same name, as texts by heading."""
        facts, rules = super().facts(), self.rules
        lengths = {name.replace("_", " "): f"{value:.10g}" for name, value in rules.length.items()}
        words = {} if self.word_seed is None else {"word seed": str(self.word_seed)}
        if not self.word_lengths:
            del facts["word_lengths"]
        return {**facts, "target": f"{rules.target:g}", **lengths, **words}

    def idle(self, given: Iterable[str]) -> dict[str, str]:
        """Return the given fields and settings of training without effect, each with a sentence."""
        given, where = set(given), f"in a probe under '{self.representation}'"
        found = (
            super().idle(given) | self.unread(given, [self.representation], where) | self.unread_by(self.side, given)
        )
        if "max_steps" in given and self.rules.max_updates is not None:
            found["max_steps"] = "The setting 'max_steps' does nothing with max_updates, which replaces it."
        if "round_ratio" in given and self.measure != "ratio":
            found["round_ratio"] = (
                f"The setting 'round_ratio' does nothing under '{self.protocol}', which gives no ratios."
            )
        return found

    def length(self, baseline: float | None) -> int | None:
        """Return the maximum number of updates of a grammar; None while concat's updates are not known."""
        if self.rules.max_updates is not None:
            return self.rules.max_updates
        return None if baseline is None else self.rules.limit(baseline)

    def limit_text(self) -> str:
        """Return the words before the remaining time."""
        return "at most" if self.rules.stops_at_target and self.rules.max_updates is None else "about"

    def summary(self, record: Fields) -> str:
        """Return the result of a replicate in a few words."""
        took = f" after {counted(record['steps'], 'update')}"
        value, accuracy = value_of(record), f"{record['accuracy']:.3f}"  # type: ignore[arg-type]
        if self.rules.max_updates is not None:
            at = "not reached" if record["reason"] == "cap" else f"reached at update {record['crossing']:.0f}"
            more = ">" if record["reason"] == "cap" else ""
            return f"ratio {more}{value:.2f}, target {at}; accuracy {accuracy}{took}"
        cut = " (cut at the cap)" if record["reason"] == "cap" else ""
        if record["measure"] == "ratio":
            again = " in a new evaluation" if self.training.fresh_reading else ""  # it may be below the target
            if record.get("crossing") is not None and not cut:  # the ratio is one of crossings
                took = f", target at update {record['crossing']:.0f} of {record['steps']}"
            return f"ratio {value:.2f}{cut}{took}, accuracy {accuracy}{again}"
        if record["measure"] == "held_out":
            trained_on = checked_accuracy(record)  # type: ignore[arg-type]
            return f"held out {accuracy}, trained on {trained_on:.3f}{cut}{took}"
        return f"accuracy {accuracy}{took}"

    def explain(self, reason: str, condition: str, numbers: Fields) -> str:
        """Return the reason for a failure, as a sentence without a full stop; "" for the usual sentence."""
        if reason == "max_steps":
            return f"concat did not reach {self.rules.target} within {counted(self.training.max_steps, 'update')}"
        return super().explain(reason, condition, numbers)


@request_of(ProbeSettings)
class ProbeRequest(RunRequest):
    """The arguments of `icy.probe`.

    Attributes:
        grammar: names, chains (`rot+perm`) or wildcards; "all" is every grammar that the side can use. Also your own
            languages: a file (`emerged.csv`), a Language, or the name of a language in the results
            (`emerged@1a2b3c4d5e6f7081`). A language sets meanings, vocab_size and word_length, and is the same for all
            seeds.
        frequencies: how often each meaning is drawn: "equal"; "zipf:S", in proportion to 1 / rank ** S, where each seed
            has its own order of the meanings; by default by the weights of the file, or equal. Or several.
        word_length: tokens per word, w, or several; messages have A*w. Or the smallest and the largest number, "1-4":
            each value has its own, a message ends with an end token, and if meanings have frequencies, frequent values
            have short words.
        seeds: how many, counted from 123 as in the papers, or which: [1, 2], "1,2", "123-127".
        word_seeds: seeds of only the words, each a separate row with all `seeds`, which then vary only initial weights
            and the sequence of meanings; by default each seed has its own words.
        symbols: symbols that senders can use under soft, gumb and discr: "V+1" (default), the vocabulary and the start
            symbol; or "V", the vocabulary alone. The same as the setting `symbols`.
        settings: changes to the preset's TrainingSettings, by name; a list has several values to vary.
        quick: a small space, few seeds and a small hidden size if these are not given: a result in seconds, to
            try things out.
    """

    function = "icy.probe"
    job_kind = "probe"
    small = MappingProxyType({"seeds": 2})
    axes = ("frequencies", "settings")

    model: str | Iterable[str] = option(**MODELS)
    grammar: Grammars = option(
        "all",
        flags=("--grammar", "-g"),
        metavar="NAME",
        completes="files_and_grammars",
        help='names, chains (rot+perm) or wildcards, or files of languages (emerged.csv), repeatable; "all" is every '
        "grammar that the side can use.",
    )
    word_length: Numbers = option(4, metavar="w|w-w[,...]")
    frequencies: str | Iterable[str] | None = option(None, metavar="equal|zipf:S[,...]")
    seeds: Numbers = option(3, **SEEDS)
    word_seeds: Numbers | None = option(
        None,
        metavar="N|N,N,...",
        help="seeds of the words alone, each a row with all --seeds, which then vary weights and drawn meanings.",
    )
    symbols: SymbolsName | None = option(None, brackets=False)
    settings: Mapping[str, Any] = option({}, **CHANGES)

    def __post_init__(self) -> None:
        set_symbols(self)
