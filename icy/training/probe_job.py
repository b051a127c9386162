"""Jobs that learn languages of grammars, measured relative to concat: their base, and probes of one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Self

from icy.config.protocols import BASELINE, SCRATCH, EndToEndProtocol, Protocol
from icy.config.settings import TrainingSettings
from icy.core.errors import InvalidSettingError
from icy.core.registry import SIDES, Entry, registry
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.grammars import cached_language, grammar_version
from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.names import is_language, language_file, meanings_file
from icy.languages.splits import Split
from icy.records.long_table import changed_settings
from icy.records.record import Record, checked_accuracy, value_of

from .job import Job, Outcome, Replicate
from .tasks import PairTask, Task

# -- the base of probes and pairs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LanguageJob(Job):
    """Replicates of one row that learn languages of grammars; subclasses narrow the types of task and protocol.

    Attributes:
        task: the model or the pair, with its sizes and representation.
        protocol: stopping rule and measure.
        training: how the models train.
        languages: languages of users in place of grammars, by the conditions of the replicates.
        draws: generators of the languages of grammars, as for `make_language`.
        frequencies: which meanings exist, and how often each is drawn; by default (None) all, equally often.
        taught: languages of teachers in place of all others, by replicate. Learners with teachers have no baseline.
    """

    task: Task | PairTask
    protocol: Protocol | EndToEndProtocol
    training: TrainingSettings
    languages: Mapping[str, Language] = field(default_factory=dict, kw_only=True, repr=False)
    draws: str = field(default="icy", kw_only=True)
    frequencies: Frequencies | None = field(default=None, kw_only=True)
    taught: Mapping[Replicate, Language] = field(default_factory=dict, kw_only=True, repr=False)
    checkpoints: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = {replicate.condition for replicate in self.replicates}
        mine = {name: language for name, language in self.languages.items() if name in names}
        object.__setattr__(self, "languages", mine)  # a part of the job has only its own languages

    @property
    def name(self) -> str:
        """Name of the model with its side, or of the pair."""
        return str(self.task.entry.qualified)

    @property
    def short_name(self) -> str:
        """Name without the side."""
        return str(self.task.entry.name)

    @property
    def side(self) -> str:
        """ "sender", "receiver" or "pair"."""
        return self.task.side

    @property
    def measure(self) -> str:
        """The measure of the protocol."""
        return self.protocol.measure

    @property
    def _drawn(self) -> dict[str, str]:
        return {} if self.draws == "icy" else {"draws": self.draws}

    @property
    def _changed_settings(self) -> str:
        own = getattr(self.protocol, "length", ())  # facts of the protocol
        budget = {"max_steps"} if "max_updates" in own else set()
        settings = {name: value for name, value in asdict(self.training).items() if name not in budget}
        return changed_settings(settings, self.preset, self.kind)

    @property
    def facts(self) -> dict[str, str]:
        """Settings that may distinguish rows of one model."""
        return {
            "hidden size": str(self.task.hidden_size),
            "meanings": str(self.task.space),
            "V": str(self.task.vocab_size),
            "w": str(self.task.word_length),
            "representation": self.task.representation,
            "protocol": self.protocol.name,
            "target": f"{self.protocol.target:g}",
            **{name.replace("_", " "): f"{value:.10g}" for name, value in self.protocol.length.items()},
            "preset": self.preset,
            **({"settings": changed} if (changed := self._changed_settings) else {}),
            **self._drawn,
            **({} if self.frequencies is None else self.frequencies.config),
        }

    @property
    def entries(self) -> list[Entry]:
        """The entries of models, their cells, the kind of job, and the grammars, including each part of a chain."""
        models = [one for entry in self.task.entries for one in (entry, entry.cell) if one is not None]
        taught = [r.condition for r in self.replicates if r.condition != SCRATCH and not is_language(r.condition)]
        names = dict.fromkeys(name for grammar in taught for name in grammar.split("+"))
        return [*models, *super().entries, *(registry.get(name, "grammar") for name in names)]

    def language(self, replicate: Replicate) -> Language:
        """Return the language of a replicate: from its grammar and seed, or the user's language.

        A user's language may use fewer tokens than the vocabulary has.
        """
        if replicate in self.taught:
            return self.taught[replicate]
        task, own_language = self.task, self.languages.get(replicate.condition)
        if own_language is None:
            sizes = task.space, task.vocab_size, task.word_length
            return cached_language(replicate.condition, *sizes, replicate.seed, draws=self.draws)
        if own_language.vocab_size == task.vocab_size:
            return own_language
        return replace(own_language, vocab_size=task.vocab_size)

    def remarks(self) -> list[str]:
        """Return a warning for each ambiguous language, in which meanings that exist share messages."""
        if self.side == "sender":
            return []
        drawn = Frequencies() if self.frequencies is None else self.frequencies
        seeds = dict.fromkeys(r.seed for r in self.replicates) if drawn.depends_on_seed else (0,)
        each = [drawn.of_seed(self.task.space, seed) for seed in seeds]
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
            found[meanings_file(self.frequencies.file)] = self.frequencies.to_csv(self.task.space)
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

        task = self.task
        tasks = [task] if isinstance(task, Task) else [task.alone(side, task.representation) for side in SIDES]
        return {one.entry.qualified: model_behavior(one, self.training) for one in tasks if one.entry.is_users}

    def language_version(self, replicate: Replicate) -> dict[str, str]:
        """Return the digest of the language of a user's grammar; nothing for other languages."""
        if replicate.condition == SCRATCH or is_language(replicate.condition):
            return {}
        of_users = [registry.get(name, "grammar").is_users for name in replicate.condition.split("+")]
        return {"language": self.language(replicate).digest()} if any(of_users) else {}

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Return the versions of the model or of both models, of the grammar if there is one, and of the protocol."""
        grammar = {} if replicate.condition == SCRATCH else {"grammar": grammar_version(replicate.condition)}
        grammar |= self.language_version(replicate)
        return {"model": self.task.entry.full_version, **grammar, "protocol": str(self.protocol.version)}

    def task_config(self, replicate: Replicate) -> Choices:
        """Return the part of a configuration that describes the model, the grammar and the sizes."""
        task = self.task
        return {
            "model": task.entry.qualified,
            "options": dict(task.options),
            "grammar": replicate.condition,
            "seed": replicate.seed,
            "meanings": str(task.space),
            "vocab_size": task.vocab_size,
            "word_length": task.word_length,
            "hidden_size": task.hidden_size,
            "representation": task.representation,
            **({} if replicate.condition == SCRATCH else self._drawn),  # of a language of a user, its concat is drawn
            **({} if self.frequencies is None else self.frequencies.config),
        }

    def is_baseline(self, replicate: Replicate) -> bool:
        """Whether the replicate's grammar is concat."""
        return replicate.condition == BASELINE and replicate not in self.taught

    @property
    def alike(self) -> str:
        """Key of model, settings and stack, without the protocol, which does not change the cost of an update."""
        return str((self.task, self.training, self.engine, len(self.replicates)))

    @property
    def update_cost(self) -> float:
        """Relative cost of an update: parameters times tokens."""
        return self.parameters.get("true", 0) * self.task.message_length * 1e-6

    def waiting_text(self) -> str:
        """Return the status text while the length of training is not known."""
        return "learning concat first"

    def conditions_text(self) -> str | None:
        """Return a sentence that lists the grammars."""
        names = list(dict.fromkeys(r.condition for r in self.replicates))
        return None if names == [SCRATCH] else f"Grammars of a {self.side}: {', '.join(names)}."

    def explain(self, outcome: Outcome) -> str:
        """Return the reason for a failure, as a sentence without a full stop."""
        if outcome.reason == "no_baseline":
            return f"{BASELINE} failed at this seed, so there is nothing to compare with"
        return super().explain(outcome)


# -- probe jobs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProbeJob(LanguageJob):
    """Supervised training of one model on several grammars, each compared with concat.

    Attributes:
        task: the model with its sizes and representation.
        protocol: stopping rule and measure.
        training: how the models train.
        split: the split of the meanings, if the protocol has held-out meanings.
        word_seed: seed of the words of all replicates; by default (None) the words depend on each replicate's seed.
    """

    task: Task
    protocol: Protocol
    training: TrainingSettings
    split: Split | None = None
    word_seed: int | None = None

    kind = "probe"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.protocol.holds_out != (self.split is not None):
            needs = "needs a split" if self.split is None else "has no held-out meanings, so it does not take a split"
            raise InvalidSettingError(f"The protocol '{self.protocol.name}' {needs}.")

    def config(self, replicate: Replicate) -> Choices:
        """Return all choices that can change the numbers of a replicate."""
        settings = self.training.under(self.task.representation)
        if self.protocol.max_updates is not None:
            del settings["max_steps"]  # replaced by the budget
        return {
            **self.task_config(replicate),
            **self._lengths,
            "protocol": self.protocol.name,
            "target": self.protocol.target,
            **self.protocol.length,
            **({"held_out": self.split.share, "split": self.split.kind} if self.split else {}),
            **({} if self.word_seed is None else {"word_seed": self.word_seed}),
            "settings": settings,
        }

    @property
    def _lengths(self) -> dict[str, str]:
        return {"word_lengths": self.task.word_lengths} if self.task.word_lengths else {}

    def language(self, replicate: Replicate) -> Language:
        """Return the language of a replicate: from its grammar and the seed of words, or the user's language."""
        seed = replicate.seed if self.word_seed is None else self.word_seed
        task, own_language = self.task, self.languages.get(replicate.condition)
        if not task.word_lengths:
            return super().language(replace(replicate, seed=seed))
        if own_language is not None:
            return own_language.ending(task.vocab_size, task.message_length)
        sizes = task.space, task.vocab_size, task.word_lengths
        return cached_language(replicate.condition, *sizes, seed, self.frequencies, self.draws)

    @property
    def facts(self) -> dict[str, str]:
        """Settings that may distinguish rows of one model."""
        return super().facts | self._lengths | ({} if self.word_seed is None else {"word seed": str(self.word_seed)})

    def length(self, baseline: float | None) -> int | None:
        """Return the maximum number of updates of a grammar; None while concat's updates are not known."""
        if self.protocol.max_updates is not None:
            return self.protocol.max_updates
        return None if baseline is None else self.protocol.limit(baseline)

    def limit_text(self) -> str:
        """Return the words before the remaining time."""
        return "at most" if self.protocol.stops_at_target and self.protocol.max_updates is None else "about"

    def summary(self, record: Record) -> str:
        """Return the result of a replicate in a few words."""
        took = f" after {counted(record['steps'], 'update')}"
        if self.protocol.max_updates is not None:
            at = "not reached" if record["reason"] == "cap" else f"reached at update {record['crossing']:.0f}"
            more = ">" if record["reason"] == "cap" else ""
            return f"ratio {more}{value_of(record):.2f}, target {at}; accuracy {record['accuracy']:.3f}{took}"
        cut = " (cut at the cap)" if record["reason"] == "cap" else ""
        if record["measure"] == "ratio":
            again = " in a new evaluation" if self.training.fresh_reading else ""  # it may be below the target
            if record.get("crossing") is not None and not cut:  # the ratio is one of crossings
                took = f", target at update {record['crossing']:.0f} of {record['steps']}"
            return f"ratio {value_of(record):.2f}{cut}{took}, accuracy {record['accuracy']:.3f}{again}"
        if record["measure"] == "held_out":
            trained_on = checked_accuracy(record)
            return f"held out {record['accuracy']:.3f}, trained on {trained_on:.3f}{cut}{took}"
        return f"accuracy {record['accuracy']:.3f}{took}"

    def explain(self, outcome: Outcome) -> str:
        """Return the reason for a failure, as a sentence without a full stop."""
        if outcome.reason == "max_steps":
            return f"concat did not reach {self.protocol.target} within {counted(self.training.max_steps, 'update')}"
        return super().explain(outcome)
