"""Probes: the settings of one model that learns languages, and jobs of all kinds whose models learn languages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

from icy.config.kinds import request_of
from icy.config.protocols import BASELINE, PROTOCOLS, SCRATCH, Protocol, get_protocol, no_max_updates
from icy.config.requests import CHANGES, MODELS, SEEDS, RunRequest, option, set_symbols
from icy.config.settings import Grammars, Numbers, ProtocolName, SplitName, SymbolsName, TrainingSettings
from icy.core.fields import setting
from icy.core.registry import Entry, registry
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.grammars import cached_language, grammar_version
from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.languages.names import is_language, language_file, meanings_file
from icy.languages.splits import Split
from icy.records.record import checked_accuracy, value_of

from .job import Job, Replicate
from .tasks import LanguageSettings

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
        found = {name: why for name, why in super().idle(given).items() if getattr(self, name) is not None}
        found |= self.unread(given, [self.representation], where) | self.unread_by(self.side, given)
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


# -- jobs that learn languages of grammars, measured relative to concat ------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LanguageJob(Job):
    """Replicates of one row that learn languages of grammars.

    Attributes:
        languages: languages of users in place of grammars, by the conditions of the replicates.
        frequencies: which meanings exist, and how often each is drawn; by default (None) all, equally often.
        taught: languages of teachers in place of all others, by replicate. Learners with teachers have no baseline.
    """

    settings: Any
    languages: Mapping[str, Language] = field(default_factory=dict, repr=False)
    frequencies: Frequencies | None = None
    taught: Mapping[Replicate, Language] = field(default_factory=dict, repr=False)
    checkpoints: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        names = {replicate.condition for replicate in self.replicates}
        mine = {name: language for name, language in self.languages.items() if name in names}
        object.__setattr__(self, "languages", mine)  # a part of the job has only its own languages

    @property
    def training(self) -> TrainingSettings:
        """How the models train."""
        training: TrainingSettings = self.settings.training
        return training

    @property
    def facts(self) -> dict[str, str]:
        """Settings that may distinguish rows of one model."""
        return super().facts | ({} if self.frequencies is None else self.frequencies.config)

    @property
    def entries(self) -> list[Entry]:
        """The entries of models, their cells, the kind of job, and the grammars, including each part of a chain."""
        taught = [r.condition for r in self.replicates if r.condition != SCRATCH and not is_language(r.condition)]
        names = dict.fromkeys(name for grammar in taught for name in grammar.split("+"))
        return [*super().entries, *(registry.get(name, "grammar") for name in names)]

    def config(self, replicate: Replicate) -> Choices:
        """Return all choices that can change the numbers of a replicate."""
        return super().config(replicate) | ({} if self.frequencies is None else self.frequencies.config)

    def language(self, replicate: Replicate) -> Language:
        """Return the language of a replicate: from its grammar and the seed of words, or the user's language.

        A user's language may use fewer tokens than the vocabulary has.
        """
        if replicate in self.taught:
            return self.taught[replicate]
        own, language = self.settings, self.languages.get(replicate.condition)
        lengths, seed = getattr(own, "word_lengths", ""), getattr(own, "word_seed", None)
        seed = replicate.seed if seed is None else seed
        if language is None:
            sizes = own.space, own.vocab_size, lengths or own.word_length
            drawn = (self.frequencies, own.draws) if lengths else (None, own.draws)
            return cached_language(replicate.condition, *sizes, seed, *drawn)
        if lengths:
            return language.ending(own.vocab_size, own.message_length)
        return language if language.vocab_size == own.vocab_size else replace(language, vocab_size=own.vocab_size)

    def remarks(self) -> list[str]:
        """Return a warning for each ambiguous language, in which meanings that exist share messages."""
        if self.side == "sender":
            return []
        drawn = Frequencies() if self.frequencies is None else self.frequencies
        seeds = dict.fromkeys(r.seed for r in self.replicates) if drawn.depends_on_seed else (0,)
        each = [drawn.of_seed(self.settings.space, seed) for seed in seeds]
        count, found = len(each[0][0]), []
        for name, language in self.languages.items():
            distinct, best = map(max, zip(*(language.ambiguity(*one) for one in each), strict=True))
            if distinct < count:
                shared = f"{counted(count, 'meaning')} share {counted(int(distinct), 'message')}"
                found.append(f"In {name}, {shared}: a receiver can read at most {best:.1%} of the attribute values.")
        return found

    def own_files(self, replicate: Replicate) -> dict[str, bytes]:
        """Return copies of the user's language and table of meanings, for the results: users may remove their files."""
        own_language, found = self.languages.get(replicate.condition), {}
        if own_language is not None:
            found[language_file(replicate.condition)] = own_language.to_bytes()
        if self.frequencies is not None and self.frequencies.file:
            found[meanings_file(self.frequencies.file)] = self.frequencies.to_csv(self.settings.space)
        return found

    def joined(self, other: Job) -> Self:
        """Return the job with the additional replicates and languages of another job."""
        languages = {**self.languages, **getattr(other, "languages", {})}
        return replace(super().joined(other), languages=languages)

    def behavior(self) -> dict[str, Fields]:
        """Return digests of the outputs of users' models, so that a changed model does not reuse old results.

        They are computed with the initial weights of the first seed.
        """
        from .task_models import model_behavior  # imports torch

        learners = [one for one in self.settings.learners if one.entry.is_users]
        return {one.model: model_behavior(one, self.training) for one in learners}

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Return the versions of the model or of both models, of the grammar if there is one, and of the protocol."""
        own = {"model": self.settings.model_version}
        if replicate.condition != SCRATCH:
            own["grammar"] = grammar_version(replicate.condition)
            parts = () if is_language(replicate.condition) else replicate.condition.split("+")
            if any(registry.get(name, "grammar").is_users for name in parts):
                own["language"] = self.language(replicate).digest()
        return {**own, "protocol": str(self.settings.version)}

    def is_baseline(self, replicate: Replicate) -> bool:
        """Whether the replicate's grammar is concat."""
        return self.settings.has_baseline and replicate.condition == BASELINE and replicate not in self.taught

    @property
    def alike(self) -> str:
        """Key of model, settings and stack, without the protocol, which does not change the cost of an update."""
        learners = [(one.model, one.options) for one in self.settings.learners]
        own = self.settings
        sizes = own.meanings, own.vocab_size, own.message_length, own.hidden, own.representation
        return str((learners, sizes, self.training, self.engine, len(self.replicates)))
