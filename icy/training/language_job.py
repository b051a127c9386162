"""Jobs of all kinds whose models learn languages of grammars, measured relative to concat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from icy.config.protocols import (
    BASELINE,
    SCRATCH,
)
from icy.config.settings import (
    TrainingSettings,
)
from icy.core.text import counted
from icy.core.types import Choices, Fields
from icy.grammars import cached_language, grammar_version
from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.names import language_file, meanings_file
from icy.records.pack import file_in

from .job import Job, Replicate

GAMES_ON_CPU = 4  # games that are timed for an estimate; larger stacks are hardly more efficient


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
            if any(entry.is_users for entry in self.settings.entries_of(replicate.condition)):
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
        return str((learners, sizes, own.work_factors, self.training, self.engine, len(self.replicates)))


# -- jobs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SavedSide:
    """A model that a probe trained, as one side of a pair.

    Attributes:
        source: the results folder or the pack.
        file: path of the file of weights in `source`.
        steps: number of updates in the probe.
        accuracy: final accuracy on the language.
        reached: whether the side reached the target.
        content: content of the file, for machines that do not have the file.
    """

    source: str
    file: str
    steps: int
    accuracy: float
    reached: bool
    content: bytes | None = None

    def weights(self) -> bytes:
        """Return the content of its file of weights."""
        return file_in(self.source, self.file) if self.content is None else self.content


@dataclass(frozen=True, kw_only=True)
class PairJob(LanguageJob):
    """Joint training of the pairs of one row, each from scratch or after both sides were pre-trained on a grammar.

    `baselines` holds, by seed, the supervised updates of concat (of the slower side), or the reason of its failure.

    Attributes:
        saved_sides: the saved models of the probes that trained the sides, by side and replicate.
    """

    saved_sides: Mapping[tuple[str, Replicate], SavedSide] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        mine = {place: side for place, side in self.saved_sides.items() if place[1] in self.replicates}
        object.__setattr__(self, "saved_sides", mine)  # a part of the job has only its own models

    def config(self, replicate: Replicate) -> Choices:
        """Return all choices that can change the numbers of a pair; a row may have pairs with and without grammars."""
        scratch = replicate.condition == SCRATCH
        if scratch == self.settings.scratch:
            return super().config(replicate)
        return replace(self, settings=replace(self.settings, scratch=scratch)).config(replicate)

    def for_travel(self) -> PairJob:
        """Return the job with its weights, for a machine without the results folder."""
        packed = {place: replace(side, content=side.weights()) for place, side in self.saved_sides.items()}
        return replace(self, saved_sides=packed, checkpoints=False)

    @property
    def rehearsal(self) -> PairJob:
        """A job of a few games from scratch, because the time of pre-training depends on the grammar."""
        games = tuple(
            Replicate(SCRATCH, r.seed) for r in self.replicates[: GAMES_ON_CPU if self.device == "cpu" else None]
        )
        return replace(self, replicates=games)
