"""Probe jobs: one sender or receiver, trained by supervision on the languages of several grammars."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from icy.config.protocols import Protocol
from icy.config.settings import TrainingSettings
from icy.core.errors import InvalidSettingError
from icy.core.text import counted
from icy.core.types import Choices
from icy.grammars import cached_language, grammar_version
from icy.languages.language import Language
from icy.languages.splits import Split
from icy.records.record import Record, checked_accuracy, value_of

from .job import Outcome, Replicate
from .language_job import LanguageJob
from .tasks import Task


@dataclass(frozen=True)
class ModelJob(LanguageJob):
    """Replicates of one row that train one model at a time.

    Attributes:
        task: the model with its sizes and representation.
        protocol: stopping rule and measure.
        settings: training settings.
    """

    task: Task
    checkpoints: bool = field(default=True, kw_only=True)

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Return the versions of model, grammar and protocol."""
        return {
            "model": self.task.entry.full_version,
            "grammar": grammar_version(replicate.condition),
            **self.language_version(replicate),
            "protocol": str(self.protocol.version),
        }

    @property
    def alike(self) -> str:
        """Key of model, settings and stack, without the protocol, which does not change the cost of an update."""
        return str((self.task, self.settings, self.engine, len(self.replicates)))


@dataclass(frozen=True)
class ProbeJob(ModelJob):
    """Supervised training of one model on several grammars, each compared with concat.

    Attributes:
        task: the model with its sizes and representation.
        protocol: stopping rule and measure.
        settings: training settings.
        split: the split of the meanings, if the protocol has held-out meanings.
        word_seed: seed of the words of all replicates; by default (None) the words depend on each replicate's seed.
    """

    protocol: Protocol
    settings: TrainingSettings
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
        settings = self.settings.under(self.task.representation)
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
            again = " in a new evaluation" if self.settings.fresh_reading else ""  # it may be below the target
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
            return f"concat did not reach {self.protocol.target} within {counted(self.settings.max_steps, 'update')}"
        return super().explain(outcome)
