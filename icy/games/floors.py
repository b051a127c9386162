"""Floors: scores of random languages. Their words have no meaning."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import require_known
from icy.core.streams import stream
from icy.core.surroundings import standard_state
from icy.metrics import cbm

from .spoken import Spoken

RATES = ("ambiguity_rate", "paraphrase_rate", "unmatched_rate", "precision", "recall")
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
