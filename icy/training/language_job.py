"""The base of probes and pairs: jobs that learn languages of grammars, measured relative to concat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Self

from icy.config.protocols import BASELINE, SCRATCH, EndToEndProtocol, Protocol
from icy.config.settings import TrainingSettings
from icy.core.registry import SIDES, Entry, registry
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.grammars import cached_language
from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.names import is_language, language_file, meanings_file
from icy.records.long_table import changed_settings

from .job import Job, Outcome, Replicate
from .job_training import JobTraining
from .tasks import PairTask, Task


@dataclass(frozen=True)
class LanguageJob(Job):
    """Replicates of one row that learn languages of grammars; subclasses narrow the types of task and protocol.

    Attributes:
        task: the model or the pair, with its sizes and representation.
        protocol: stopping rule and measure.
        settings: training settings.
        languages: languages of users in place of grammars, by the conditions of the replicates.
        draws: generators of the languages of grammars, as for `make_language`.
        frequencies: which meanings exist, and how often each is drawn; by default (None) all, equally often.
    """

    task: Task | PairTask
    protocol: Protocol | EndToEndProtocol
    settings: TrainingSettings
    languages: Mapping[str, Language] = field(default_factory=dict, kw_only=True, repr=False)
    draws: str = field(default="icy", kw_only=True)
    frequencies: Frequencies | None = field(default=None, kw_only=True)

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
        settings = {name: value for name, value in asdict(self.settings).items() if name not in budget}
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

    def joined(self, other: JobTraining) -> Self:
        """Return the job with the additional replicates and languages of another job."""
        languages = {**self.languages, **getattr(other, "languages", {})}
        return replace(super().joined(other), languages=languages)

    def behavior(self) -> dict[str, Fields]:
        """Return digests of the outputs of users' models, so that a changed model does not reuse old results.

        They are computed with the initial weights of the first seed.
        """
        from .behavior import model_behavior  # imports torch

        task = self.task
        tasks = [task] if isinstance(task, Task) else [task.alone(side, task.representation) for side in SIDES]
        return {one.entry.qualified: model_behavior(one, self.settings) for one in tasks if one.entry.is_users}

    def language_version(self, replicate: Replicate) -> dict[str, str]:
        """Return the digest of the language of a user's grammar; nothing for other languages."""
        if replicate.condition == SCRATCH or is_language(replicate.condition):
            return {}
        of_users = [registry.get(name, "grammar").is_users for name in replicate.condition.split("+")]
        return {"language": self.language(replicate).digest()} if any(of_users) else {}

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
        return replicate.condition == BASELINE

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
