"""Scores of messages: concept best matching (CBM) and its floor, AMI, topsim, and counts of words and messages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, require_known
from icy.core.streams import stream
from icy.core.surroundings import standard_state
from icy.metrics import Table, ami, cbm, topsim
from icy.metrics.score import Score

from .settings import COUNTS, MEASURES, RATES, TOPSIM_OF, UNIQUE

# -- phrases and messages of turns, as input of metrics ----------------------------------------------------------------


END = 0  # last word of every message in a file, as in the authors' files
UNSIGNED = 2**64


@dataclass(frozen=True, eq=False)
class Spoken:
    """Phrases and messages, with a row per turn.

    Attributes:
        rules: number of the turn's rule [turn].
        phrases: mask of the concepts in the turn's rule [turn, concept].
        words: number of the word at each position [turn, length].
        concepts: names of the concepts.
        objects: vectors that topsim uses as meanings instead of phrases, if any [turn, size].
    """

    rules: Int64[NDArray[np.int64], " turn"]
    phrases: Bool[NDArray[np.bool_], "turn concept"]
    words: Int64[NDArray[np.int64], "turn length"]
    concepts: Sequence[str]
    objects: Float64[NDArray[np.float64], "turn size"] | None = None

    def __post_init__(self) -> None:
        counts = {len(self.rules), len(self.phrases), len(self.words)}
        if len(counts) > 1 or not counts.pop():
            raise InvalidSettingError(
                f"Every turn has one rule, one phrase and one message, and there must be at least one turn; there are "
                f"{len(self.rules)} rules, {len(self.phrases)} phrases and {len(self.words)} messages."
            )
        if self.phrases.shape[1] != len(self.concepts):
            raise InvalidSettingError(
                f"Every concept has a name; there are {self.phrases.shape[1]} concepts and {len(self.concepts)} names."
            )

    def __len__(self) -> int:
        return len(self.rules)

    @cached_property
    def named(self) -> list[list[str]]:
        """Names of the concepts of every phrase."""
        return [list(compress(self.concepts, phrase)) for phrase in self.phrases.tolist()]

    @cached_property
    def tokens(self) -> Int64[NDArray[np.int64], "turn length"]:
        """Words, renumbered from 0 in their order, because 64-bit words may have negative numbers."""
        codes = np.unique(self.words, return_inverse=True)[1]
        return codes.reshape(self.words.shape).astype(np.int64)

    @property
    def unique_words(self) -> int:
        """Number of different words."""
        return int(self.tokens.max()) + 1

    def to_lines(self) -> str:
        """Return the turns as text in the format of the authors' program (CBM24).

        Every line is a JSON list of a message and a phrase, ["w.w.0", "c.c"]. Words are numbered from 1, and 0 ends a
        message. `icy metrics` reads this format.
        """
        messages = [".".join(str(w % UNSIGNED + 1) for w in row) + f".{END}" for row in self.words.tolist()]
        # Dots and spaces separate names in files of messages.
        phrases = [".".join(name.replace(".", "-").replace(" ", "-") for name in phrase) for phrase in self.named]
        lines = [json.dumps([message, phrase]) for message, phrase in zip(messages, phrases, strict=True)]
        return "\n".join(lines) + "\n"


# -- floors: scores of random languages. Their words have no meaning ---------------------------------------------------


LANGUAGES = 5  # random languages; a floor is the mean over them
DRAWN_FOR = ("turn", "phrase")


def random_words(
    turns: int, length: int, words: int, seed: int = 0, language: int = 0
) -> Int64[NDArray[np.int64], "turn length"]:
    """Draw messages of random words, independently and uniformly.

    Args:
        turns: number of messages.
        length: number of words per message.
        words: number of different words.
        seed: seed of the draws.
        language: number of the language, which selects the stream of random numbers.
    """
    count = whole_number("number of words", words)
    return stream(seed, "games", "random words", language).integers(count, size=(turns, length))


@standard_state()
def cbm_floor(
    spoken: Spoken,
    words: int | None = None,
    length: int | None = None,
    drawn_for: str = "turn",
    languages: int = LANGUAGES,
    unmatched: str = "matched",
) -> dict[str, float]:
    """Return the CBM of random languages on the same phrases: the means of "cbm" and of each rate in RATES.

    Compare scores with this floor. With 1,000 turns and few words, random words are by chance more frequent with one
    concept than with others, and count as matched. With few phrases, a language with one fixed message per phrase has a
    higher floor.

    Args:
        spoken: phrases and messages.
        words: number of different words; by default as many as in `spoken`.
        length: number of words per message; by default as in `spoken`.
        drawn_for: "turn": draw a message for each turn; "phrase": draw one message per phrase, a holistic language.
        languages: number of random languages; the floor is NaN if it is 0.
        unmatched: see `icy.metrics.cbm`.

    Returns:
        The mean over the random languages of "cbm" and of each rate in RATES, shares from 0 to 1.

    Raises:
        UnknownNameError: `drawn_for` is another name.
    """
    require_known("way to draw messages", drawn_for, DRAWN_FOR)
    count, size = words or spoken.unique_words, length or spoken.words.shape[1]
    rules = np.unique(spoken.rules, return_inverse=True)[1].ravel()
    scores = []
    for language in range(languages):
        messages = random_words(len(spoken), size, count, language=language)
        if drawn_for == "phrase":
            messages = messages[rules]
        score = cbm(spoken.named, messages, concepts="items", unmatched=unmatched)
        scores.append([score.value, *(score.details[name] for name in RATES)])
    means = np.mean(scores, 0).tolist() if scores else [math.nan] * (1 + len(RATES))
    return dict(zip(("cbm", *RATES), means, strict=True))


def matching(spoken: Spoken, unmatched: str = "matched", name: Callable[[int], str] | None = None) -> Score:
    """Return the concept best matching (CBM) of words and concepts.

    Args:
        spoken: phrases and messages.
        unmatched: see `icy.metrics.cbm`.
        name: function that maps a word's number to its name, for the translation; by default the number.
    """
    score = cbm(spoken.named, spoken.tokens, concepts="items", unmatched=unmatched)
    if name is None:
        return score
    words = np.unique(spoken.words).tolist()
    tables = {key: score.details[key] for key in ("translation", "pairs")}
    named = {k: t.assign(word=[name(words[number]) for number in t["word"]]) for k, t in tables.items()}
    return replace(score, details={**score.details, **named})


def similarity(spoken: Spoken, of: str = "phrase") -> Score:
    """Return the topographic similarity: cosine distance of meanings against edit distance of messages (CBM24).

    The paper does not define the meaning of a turn with several targets. By default it is the phrase, as a vector with
    1 at each of its concepts. The edit distance compares whole words, not their bits.

    Args:
        spoken: phrases and messages.
        of: "phrase", "targets" or "embedding". The last two are vectors in `spoken.objects`.

    Raises:
        UnknownNameError: `of` has another value.
        InvalidSettingError: `spoken` has no objects.
    """
    require_known("object of topsim", of, TOPSIM_OF)
    if of != "phrase":
        if spoken.objects is None:
            raise InvalidSettingError(f"Topsim of '{of}' needs `objects` of Spoken; give them, or take of='phrase'.")
        return topsim(Table.of(spoken.objects, spoken.tokens, one_hot="no", argmax=False), meaning="cosine")
    lengths = spoken.phrases.sum(1, keepdims=True)
    if np.ptp(lengths) == 0:  # then cosine distance is proportional to the share of differing entries, which is faster
        table = Table.of(spoken.phrases.astype(np.int64), spoken.tokens, one_hot="no", argmax=False)
        return topsim(table, meaning="cosine")
    return topsim(spoken.phrases / np.sqrt(lengths), spoken.tokens, meaning="cosine")


@standard_state()
def language_scores(
    spoken: Spoken, topsim_of: str = "phrase", unmatched: str = "matched", languages: int = LANGUAGES
) -> dict[str, float]:
    """Compute all scores in MEASURES.

    Args:
        spoken: phrases and messages.
        topsim_of: see `similarity`.
        unmatched: see `icy.metrics.cbm`.
        languages: number of random languages per floor; a floor is the mean over them.

    Returns:
        The value of each score, in the order of MEASURES: shares and correlations up to 1, and counts of words and
        messages. NaN where a score is undefined.
    """
    match = matching(spoken, unmatched)
    scores = {"cbm": match.value, **{name: float(match.details[name]) for name in (*RATES, *UNIQUE, *COUNTS)}}
    for name, drawn_for in (("cbm_floor", "turn"), ("cbm_holistic", "phrase")):
        scores[name] = cbm_floor(spoken, drawn_for=drawn_for, languages=languages, unmatched=unmatched)["cbm"]
    scores["ami"] = ami(spoken.rules[:, None], spoken.tokens).value
    scores["topsim"] = similarity(spoken, topsim_of).value
    return {name: scores[name] for name in MEASURES}
