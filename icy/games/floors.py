"""Floors: what scores of languages are where words say nothing."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import unknown
from icy.core.streams import stream
from icy.core.surroundings import standard_state
from icy.metrics import cbm

from .spoken import Spoken

RATES = ("ambiguity_rate", "paraphrase_rate", "unmatched_rate", "precision", "recall")
LANGUAGES = 5  # of random words, of which a floor is the mean
DRAWN_FOR = ("turn", "phrase")


def random_words(
    turns: int, length: int, words: int, seed: int = 0, language: int = 0
) -> Int64[NDArray[np.int64], "turn length"]:
    """Return messages of words that are drawn independently of everything, all equally often.

    Args:
        turns: number of messages.
        length: of each.
        words: how many different words there are.
        seed: of the draws.
        language: number of the language.
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
    """Return what concept best matching gives languages of random words on the same phrases: "cbm" and RATES, means.

    A score means little without it: with 1,000 turns and few words, random words are matched to concepts that they
    happen to meet more often than others. Where there are few phrases, a message that is always the same for a phrase
    earns more by chance, however it is chosen.

    Args:
        spoken: whose phrases they are.
        words: how many different words; by default as many as were said.
        length: of messages; by default as they were.
        drawn_for: "turn": each message anew; "phrase": a phrase has one message, which makes a holistic language.
        languages: how many; NaN of none.
        unmatched: see `icy.metrics.cbm`.

    Raises:
        UnknownNameError: messages are drawn for something else.
    """
    if drawn_for not in DRAWN_FOR:
        raise unknown("way to draw messages", drawn_for, DRAWN_FOR)
    count, size = words or spoken.unique_words, length or spoken.words.shape[1]
    rules = np.unique(spoken.rules, return_inverse=True)[1].ravel()
    found = []
    for language in range(languages):
        said = random_words(len(spoken), size, count, language=language)
        if drawn_for == "phrase":
            said = said[rules]
        score = cbm(spoken.named, said, concepts="items", unmatched=unmatched)
        found.append([score.value, *(score.details[name] for name in RATES)])
    means = np.mean(found, 0).tolist() if found else [math.nan] * (1 + len(RATES))
    return dict(zip(("cbm", *RATES), means, strict=True))
