"""Settings that kinds of jobs share whose models learn languages, and their populations and lengths of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np

from icy.config.kinds import Settings
from icy.config.protocols import BASELINE, SCRATCH
from icy.config.settings import OF_MESSAGES, Meanings, PresetName, RepresentationName, TrainingSettings
from icy.core.checks import real_number, whole_number
from icy.core.errors import InvalidSettingError, quoted, require_known
from icy.core.fields import setting
from icy.core.registry import SIDES, Entry
from icy.core.streams import DrawsName, stream, stream_key
from icy.core.types import Choices, Fields
from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.meanings import IntArray, MeaningSpace
from icy.records.long_table import changed_settings

# -- populations -------------------------------------------------------------------------------------------------------


REPLACEMENTS = ("gradual", "random", "receivers")


@dataclass(frozen=True)
class Population:
    """The agents of an end-to-end run, and the schedule of their replacement.

    Attributes:
        senders: number of senders, N.
        receivers: number of receivers, M.
        replace_every: updates between two replacements; 0 for none.
        replacement: one of REPLACEMENTS: "gradual" replaces the oldest sender and the oldest receiver, "random" a
            random agent of each side, and "receivers" all receivers (Li and Bowling 2019).
    """

    senders: int = 1
    receivers: int = 1
    replace_every: int = 0
    replacement: str = "gradual"

    def __post_init__(self) -> None:
        for name in SIDES:
            object.__setattr__(self, f"{name}s", whole_number(f"number of {name}s", getattr(self, f"{name}s")))
        every = whole_number("number of updates between two replacements", self.replace_every, 0)
        object.__setattr__(self, "replace_every", every)
        require_known("replacement", self.replacement, REPLACEMENTS)

    @property
    def is_pair(self) -> bool:
        """Whether it is one sender and one receiver that are never replaced."""
        return self.size == 1 and not self.replace_every

    @property
    def size(self) -> int:
        """Number of pairings in an update: the number of agents of the larger side."""
        return max(self.senders, self.receivers)

    def members(self, side: str) -> int:
        """Return the number of agents of a side."""
        return self.senders if side == "sender" else self.receivers

    def partners(self, seed: int, update: int) -> IntArray:
        """Draw the pairings of an update: the numbers of their senders and receivers, [2, pairing].

        Every agent of the larger side is in one pairing. Agents of the smaller side are in as equal numbers of pairings
        as possible. So with N = M, partners are a random permutation.
        """
        draws = stream(seed, "pairings", update)
        few = min(self.senders, self.receivers)
        return self._matched(draws.permutation(np.resize(draws.permutation(few), self.size)))

    def rounds(self) -> Iterator[IntArray]:
        """Yield the pairings of each round of an evaluation, [2, pairing]: together all N x M pairings, each once."""
        few = min(self.senders, self.receivers)
        for first in range(few):
            yield self._matched((np.arange(self.size) + first) % few)

    def _matched(self, smaller: IntArray) -> IntArray:
        """Return pairings of all agents of the larger side with these agents of the smaller side."""
        larger = np.arange(self.size)
        return np.stack((larger, smaller) if self.senders >= self.receivers else (smaller, larger))

    def replaced(self, seed: int, update: int) -> dict[str, list[int]]:
        """Return the numbers of the agents of each side that new agents replace before an update from 0."""
        if not update or not self.replace_every or update % self.replace_every:
            return {}
        if self.replacement == "receivers":
            return {"receiver": [*range(self.receivers)]}
        if self.replacement == "gradual":
            turn = update // self.replace_every - 1
            return {side: [turn % self.members(side)] for side in SIDES}
        draws = stream(seed, "replaced", update)
        return {side: [int(draws.integers(self.members(side)))] for side in SIDES}

    def until_replacement(self, update: int) -> int | None:
        """Return the number of updates from an update to the next replacement; None if there is none."""
        return self.replace_every - update % self.replace_every if self.replace_every else None


def member_seed(seed: int, number: int, update: int = 0) -> int:
    """Return the seed of the weights of an agent that enters before an update.

    The first agents of a population have the seed of the pair that has the seed of the population.

    Args:
        seed: seed of the population.
        number: number of the agent on its side.
        update: update before which it enters.
    """
    return stream_key(seed, "member", number, update) if number or update else seed


# -- messages that a sender may end early ------------------------------------------------------------------------------


# Costs of Rita et al. 2020 by name: whether the sender is lazy, and whether the receiver is impatient.
PRESETS = {"lazy": (True, False), "impatient": (False, True), "lazimpa": (True, True)}


@dataclass(frozen=True)
class Lengths:
    """The lengths of a pair's messages.

    Attributes:
        max_length: most symbols of a message that the sender may end early; None for messages of a fixed length.
        length_cost: cost of a symbol before the end token, or one of PRESETS; 0 for none.

    Raises:
        InvalidSettingError: a length or a cost that is not possible, or a cost of messages of a fixed length.
    """

    max_length: int | None = None
    length_cost: float | str = 0.0

    def __post_init__(self) -> None:
        if self.max_length is not None:
            object.__setattr__(self, "max_length", whole_number("maximum length", self.max_length))
        object.__setattr__(self, "length_cost", _checked_cost(self.length_cost))
        if self.length_cost and self.max_length is None:
            raise InvalidSettingError(
                f"length_cost={self.length_cost} needs messages that the sender may end: give max_length too."
            )

    @property
    def vary(self) -> bool:
        """Whether the sender may end messages early."""
        return self.max_length is not None

    @property
    def costs(self) -> tuple[float, bool, bool]:
        """The cost of a symbol, whether the sender is lazy, and whether the receiver is impatient."""
        if isinstance(self.length_cost, str):
            return 0.0, *PRESETS[self.length_cost]
        return self.length_cost, False, False

    @property
    def readings(self) -> int:
        """How many prefixes of a message the receiver reads in training."""
        return self.max_length if self.max_length is not None and self.costs[2] else 1


def _checked_cost(given: float | str) -> float | str:
    if isinstance(given, str) and given in PRESETS:
        return given
    try:
        return real_number("length cost", float(given))
    except (TypeError, ValueError):  # InvalidSettingError is a ValueError
        raise InvalidSettingError(
            f"length_cost must be a number of at least 0, lazy, impatient or lazimpa, not {quoted(given)}."
        ) from None


def length_measures(languages: Sequence[Language], frequencies: Frequencies | None, seed: int) -> Choices:
    """Measure the lengths of the messages of one or several senders.

    Args:
        languages: the language of each sender, with an end token.
        frequencies: which meanings exist, and how often; by default all, equally often.
        seed: seed of the pair.

    Returns:
        `mean_length`, the mean number of symbols before the end token over meanings, weighted by their frequencies, and
        over senders; and, if frequencies differ, `length_by_rank`: Spearman's correlation of length with the rank of
        the meaning, 1 for the most frequent; None if all lengths are equal. Positive if frequent meanings have shorter
        messages (Zipf's law of abbreviation). A mean over the senders for which it is defined.
    """
    space = languages[0].space
    numbers, weights = (frequencies or Frequencies()).of_seed(space, seed)
    lengths = [language.lengths[numbers] for language in languages]
    relative = weights / weights.max()  # exactly 1 if all are equal
    means = [float(np.average(of_one, weights=relative)) for of_one in lengths]
    found: Choices = {"mean_length": float(np.mean(means))}
    if np.ptp(weights) > 0:
        from scipy.stats import spearmanr

        rhos = [float(spearmanr(of_one, -weights).statistic) for of_one in lengths if np.ptp(of_one) > 0]
        found["length_by_rank"] = float(np.mean(rhos)) if rhos else None
    return found


# -- settings of kinds whose models learn languages --------------------------------------------------------------------

DRAWS = "generator of languages (draws)"
MEANINGS_HELP = "attributes x values; sizes of each, 10,4,2; or a table of meanings."


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
