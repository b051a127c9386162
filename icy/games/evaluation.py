"""Scores of messages: concept best matching (CBM) and its floor, AMI, topsim, and counts of words and messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from icy.core.errors import InvalidSettingError, require_known
from icy.core.surroundings import standard_state
from icy.metrics import Table, ami, cbm, topsim
from icy.metrics.score import Score

from .floors import LANGUAGES, RATES, cbm_floor
from .spoken import Spoken

TOPSIM_OF = ("phrase", "targets", "embedding")
UNMATCHED = ("matched", "assigned")
UNIQUE = ("unique_words", "unique_messages", "unique_phrases", "unique_concepts")
COUNTS = ("total", "good", "ambiguous", "paraphrase", "concept_tokens", "unmatched_concepts")  # of CBM24 table 3
MEASURES = ("cbm", "cbm_floor", "cbm_holistic", *RATES, "ami", "topsim", *UNIQUE, *COUNTS)


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
