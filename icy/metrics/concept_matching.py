"""Concept best matching: can the words of a language be translated one by one into the concepts they stand for?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Sized
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, unknown
from icy.core.memory import require_memory
from icy.core.streams import stream

from .entropy import Codes, number, together
from .score import Score
from .table import PAD, Table

WORDS = ("tokens", "positions")
CONCEPTS = ("attributes", "items")
REPEATS = ("counted", "once")
UNMATCHED = ("matched", "assigned")
Names = Sequence[Hashable]
Counts = NDArray[np.int64]
RATES = ("ambiguity_rate", "paraphrase_rate", "unmatched_rate")
NONE = -1  # for the concept of a word that has none
PARTS = 10**6  # the shares that break ties are compared to a millionth


def cbm(
    meanings: Any,
    messages: Any = None,
    *,
    words: str | int = "tokens",
    concepts: str = "attributes",
    repeats: str = "counted",
    unmatched: str = "matched",
    drop_last: bool = False,
    eos: int | None = None,
) -> Score:
    """Concept best matching: the share of words that translate into a concept of their phrase (CBM24).

    A sample is a message, made of words, and a phrase, made of concepts. A word and a concept have as weight how often
    they occur together. Each word is matched to at most one concept, and each concept to at most one word, such that
    the weights of the matched pairs sum to the most; then every word of every message is good, if its concept is in
    the phrase, ambiguous, if its concept is not, or a paraphrase, if it has none. The score is the good ones over Q,
    where a sample counts as many as the longer of its message and its phrase.

    Where several matchings are best, the one is taken whose words are the most specific: the sum, over matched pairs,
    of the share of the word's occurrences that have the concept in their phrase is greatest. So a word of every
    message takes no concept from a word that only the messages of that concept have. What is tied even then goes by
    the sorted order of words and concepts; the order of rows plays no part. The score is the same for all best
    matchings if no phrase has a concept twice; the details may not be.

    Few rows make the score too high; it settles at some 500 (CBM24 appendix E, and `cbm_by_sample_size`).

    Args:
        meanings: [N, A] attribute values, or a Language; or phrases, if `concepts` says so.
        messages: [N, S] tokens, or sequences of any lengths.
        words: what a word is: "tokens", each token wherever it stands; "positions", each token together with its
            position; or several tokens: a number w, or "tokens:w", takes every w in turn as one word, and
            "positions:w" these with their place. Words of several tokens, or with a place, are named by a text, as in
            "3 1" and "0:3".
        concepts: what a concept is: "attributes", the value of an attribute, as a pair (attribute, value); or "items",
            each item of a phrase wherever it stands, phrases being sequences of anything hashable, of any lengths.
        repeats: of a word in a message, or of a concept in a phrase: "counted", as in the tables and the program of
            CBM24, or taken "once", as its text has it.
        unmatched: the concepts that are not unmatched: the "matched", or all "assigned", which in the program of
            CBM24 are also those it gave to a word they never occur with.
        drop_last: leave out the last token of every message whatever it is, as that program does by default.
        eos: the token that ends a message; see Table.of.

    Returns:
        A score in [0, 1]. Its details, with the names of CBM24 where they differ: `total` (Q, Totl Edgs); `good`,
        `ambiguous` and `paraphrase` (Phrs), which sum to `word_tokens`; `concept_tokens` (Totl Cons) and
        `unmatched_concepts` of them; `unique_messages`, `unique_words`, `unique_phrases` and `unique_concepts`;
        `ambiguity_rate` and `paraphrase_rate`, over Q; `unmatched_rate`, over the concept tokens; `precision` and
        `recall`, of every sample the number of different good words over that of its words or its concepts, on
        average; `translation`, a table of the matched pairs (word, concept, weight), in the order of concepts; and
        `pairs`, the same of all that occur together, and whether they are `matched`.

    Raises:
        InvalidSettingError: an empty message or phrase, continuous meanings, words of w tokens in a message that
            cannot be divided so, or concepts that are not hashable.
        UnknownNameError: a convention that there is not.

    Example:
        >>> from icy.metrics import cbm
        >>> score = cbm([["red", "square"], ["red", "circle"], ["blue", "square"]], ["xa", "xb", "ya"])
        >>> score.value, score.details["translation"].values.tolist()[0]
        (1.0, ['y', (0, 'blue'), 1])
        >>> cbm([["red"], ["red", "not", "square"]], ["x", "xn"], concepts="items").value
        0.75
    """
    how = _Conventions(words, concepts, repeats, unmatched, drop_last, eos)
    return _score(_read(meanings, messages, how), how)


def cbm_by_sample_size(
    meanings: Any, messages: Any = None, *, segment: int = 100, seed: int = 0, **conventions: Any
) -> pd.DataFrame:
    """Concept best matching by the number of samples (CBM24 figure 4): of segments, and of all up to each of them.

    Rows are shuffled and cut into segments that share no row. A segment's scores, all from few rows, show how much
    they vary; those of the rows accumulated show how many it takes for the score to settle.

    Args:
        meanings: as for `cbm`.
        messages: as for `cbm`.
        segment: rows of each; those left over at the end are not used.
        seed: of the order of rows.
        **conventions: the other arguments of `cbm`.

    Returns:
        Two rows for each segment: `sample`, "segment" or "accumulated"; `drawn`, the rows up to its end; `rows`, those
        that were scored; `cbm`; `ambiguity_rate`, `paraphrase_rate` and `unmatched_rate`.

    Raises:
        InvalidSettingError: fewer rows than one segment; and as for `cbm`.

    Example:
        >>> import icy
        >>> from icy.metrics import cbm_by_sample_size
        >>> sizes = cbm_by_sample_size(icy.make_language("concat", "3x4", seed=1), segment=32)
        >>> sizes[["sample", "drawn", "rows"]].values.tolist()
        [['segment', 32, 32], ['accumulated', 32, 32], ['segment', 64, 32], ['accumulated', 64, 64]]
    """
    size, how = whole_number("segment's number of rows", segment), _Conventions(**conventions)
    samples = _read(meanings, messages, how)
    if samples.count < size:
        raise InvalidSettingError(
            f"A segment of {size} rows is more than there are, {samples.count}; take smaller segments."
        )
    order = stream(seed, "segments").permutation(samples.count)
    found = []
    for drawn in range(size, samples.count + 1, size):
        for sample, first in (("segment", drawn - size), ("accumulated", 0)):
            score = _score(samples.rows(order[first:drawn]), how)
            rates = {rate: score.details[rate] for rate in RATES}
            found.append({"sample": sample, "drawn": drawn, "rows": score.rows, "cbm": score.value, **rates})
    return pd.DataFrame(found)


@dataclass(frozen=True)
class _Conventions:
    """The choices that move the score, as the arguments of `cbm` have them."""

    words: str | int = "tokens"
    concepts: str = "attributes"
    repeats: str = "counted"
    unmatched: str = "matched"
    drop_last: bool = False
    eos: int | None = None

    def __post_init__(self) -> None:
        for what, given, known in (
            ("kind of concept", self.concepts, CONCEPTS),
            ("way to take repeats", self.repeats, REPEATS),
            ("reading of unmatched", self.unmatched, UNMATCHED),
        ):
            if given not in known:
                raise unknown(what, str(given), known)

    def word(self) -> tuple[bool, int]:
        """Whether a word has a place, and how many tokens it has."""
        kind, width = "tokens", self.words
        if isinstance(width, str) and not width.isdecimal():
            kind, _, width = width.partition(":")
        if kind not in WORDS:
            raise unknown("kind of word", kind, WORDS)
        if isinstance(width, str):
            width = int(width) if width.isdecimal() else width or 1
        return kind == "positions", whole_number("number of tokens of a word", width)


@dataclass(frozen=True, eq=False)
class _Side:
    """The words of all messages, or the concepts of all phrases, one after the other.

    Attributes:
        rows: the sample that each stands in, ascending, [T].
        codes: which it is, numbered from 0 in sorted order, all numbers in use, [T].
        names: what each number is called.
    """

    rows: Codes
    codes: Codes
    names: Names

    def once(self) -> _Side:
        """Each at most once in a sample."""
        cells = np.unique(self.rows * len(self.names) + self.codes)
        return _Side(cells // len(self.names), cells % len(self.names), self.names)

    def within(self, which: Codes, count: int) -> _Side:
        """The samples `which`, in that order, out of `count`."""
        place = np.full(count, -1)
        place[which] = np.arange(len(which))
        rows = place[self.rows]
        order = np.argsort(rows, kind="stable")[np.count_nonzero(rows < 0) :]
        used, codes = np.unique(self.codes[order], return_inverse=True)
        return _Side(rows[order], codes, [self.names[code] for code in used])

    def per_row(self, count: int) -> Counts:
        """How many each of `count` samples has, [N]."""
        return np.bincount(self.rows, minlength=count)

    def different_rows(self, count: int) -> int:
        """How many of the samples' sequences are different."""
        ends = self.per_row(count).cumsum()[:-1]
        return len({part.tobytes() for part in np.split(self.codes, ends)})

    def table(self, count: int) -> csr_array:
        """How often each occurs in each sample, [N, names]."""
        ones = np.ones(len(self.rows), dtype=np.int64)
        return csr_array((ones, (self.rows, self.codes)), shape=(count, len(self.names)))


@dataclass(frozen=True, eq=False)
class _Samples:
    """Messages and phrases, as many of each."""

    count: int
    words: _Side
    concepts: _Side

    def rows(self, which: Codes) -> _Samples:
        """Some of the samples."""
        words, concepts = (side.within(which, self.count) for side in (self.words, self.concepts))
        return _Samples(len(which), words, concepts)


def _read(meanings: Any, messages: Any, how: _Conventions) -> _Samples:
    table, concepts = (_items if how.concepts == "items" else _values)(meanings, messages, how.eos)
    return _Samples(len(table), _words(table, how), concepts)


def _values(meanings: Any, messages: Any, eos: int | None) -> tuple[Table, _Side]:
    """The table, and as concepts the values of its attributes."""
    try:
        table = Table.of(meanings, messages, eos=eos)
    except InvalidSettingError as error:
        if messages is not None and _ragged(meanings):
            raise InvalidSettingError(
                "Meanings have a value for every attribute, and these differ in length; for phrases of any length, "
                'say concepts="items".'
            ) from error
        raise
    table.require_discrete("cbm")
    rows, attributes = np.indices(table.meanings.shape).reshape(2, -1)
    codes = together(attributes, np.stack(table.factors, 1).ravel())
    first = np.unique(codes, return_index=True)[1]
    values = table.meanings.ravel()[first]
    named = [(int(a), table.value_name(a, v)) for a, v in zip(attributes[first], values, strict=True)]
    return table, _Side(rows, codes, named)


def _ragged(given: Any) -> bool:
    """Whether it is sequences of different lengths."""
    return isinstance(given, Iterable) and len({len(row) for row in given if isinstance(row, Sized)}) > 1


def _items(meanings: Any, messages: Any, eos: int | None) -> tuple[Table, _Side]:
    """The table of messages, and as concepts the items of phrases."""
    if messages is None and isinstance(meanings, (tuple, list)) and len(meanings) == 2:
        meanings, messages = meanings
    if messages is None:
        table = Table.of(meanings, eos=eos)
        table.require_discrete("cbm")
        meanings = [[table.value_name(a, v) for a, v in enumerate(row)] for row in table.meanings]
    if not isinstance(meanings, Iterable):
        raise InvalidSettingError(f"Phrases are a sequence of phrases, one for every message, not {meanings!r}.")
    phrases = [_phrase(given) for given in meanings]
    if messages is not None:
        table = Table.of(np.zeros((len(phrases), 1), dtype=np.int64), messages, eos=eos)
    return table, _numbered(phrases)


def _phrase(given: Any) -> list[Hashable]:
    """The concepts of one phrase."""
    phrase = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(phrase, str) or not isinstance(phrase, Iterable):
        raise InvalidSettingError(f"A phrase is a sequence of concepts, not {phrase!r}; cut it into its concepts.")
    concepts = list(phrase)
    if not concepts:
        raise InvalidSettingError("A phrase without a concept cannot be matched; leave its row out.")
    try:
        set(concepts)
    except TypeError as error:
        raise InvalidSettingError(f"Concepts must be hashable; in {phrase!r} are some that are not.") from error
    return _in_order(concepts) if isinstance(phrase, (set, frozenset)) else concepts


def _numbered(phrases: list[list[Hashable]]) -> _Side:
    names = _in_order({concept for phrase in phrases for concept in phrase})
    place = {name: code for code, name in enumerate(names)}
    rows = np.repeat(np.arange(len(phrases)), [len(phrase) for phrase in phrases])
    return _Side(rows, np.array([place[concept] for phrase in phrases for concept in phrase]), names)


def _in_order(concepts: Iterable[Any]) -> list[Hashable]:
    """Sorted: by type and then by value, or by how they are written where values have no order."""
    try:
        return sorted(concepts, key=lambda concept: (str(type(concept)), concept))
    except TypeError:
        return sorted(concepts, key=lambda concept: (str(type(concept)), repr(concept)))


def _words(table: Table, how: _Conventions) -> _Side:
    """The words of the messages."""
    placed, width = how.word()
    tokens = _without_last(table) if how.drop_last else table.messages
    _check_lengths((tokens != PAD).sum(1), width)
    rows, places = np.nonzero(tokens[:, ::width] != PAD)
    parts = [tokens[rows, places * width + i] for i in range(width)]
    codes = number(together(*([places] if placed else []), *parts))
    first = np.unique(codes, return_index=True)[1]
    named: list[Hashable] = [table.token_name(token) for token in parts[0][first]]
    if width > 1:
        spelled = zip(*(part[first] for part in parts), strict=True)
        named = [" ".join(str(table.token_name(token)) for token in word) for word in spelled]
    if placed:
        named = [f"{place}:{name}" for place, name in zip(places[first], named, strict=True)]
    return _Side(rows, codes, named)


def _without_last(table: Table) -> Counts:
    """The messages without their last tokens."""
    return np.where(np.arange(table.length) < table.lengths[:, None] - 1, table.messages, PAD)


def _check_lengths(lengths: Counts, width: int) -> None:
    if not lengths.all():
        raise InvalidSettingError(
            f"{np.count_nonzero(lengths == 0)} of {len(lengths)} messages have no token that counts, so nothing can be "
            "matched; leave their rows out, or keep the token that ends a message."
        )
    if (lengths % width).any():
        length = int(lengths[lengths % width > 0][0])
        raise InvalidSettingError(
            f"A message of {length} token{'s' * (length > 1)} cannot be cut into words of {width}; take words of a "
            "length that divides all messages."
        )


def _score(samples: _Samples, how: _Conventions) -> Score:
    count, words, concepts = samples.count, samples.words, samples.concepts
    unique = {"messages": words.different_rows(count), "phrases": concepts.different_rows(count)}
    unique |= {"words": len(words.names), "concepts": len(concepts.names)}
    if how.repeats == "once":
        words, concepts = words.once(), concepts.once()
    weights, shares = _weights(words, concepts, count)
    assigned = _best_match(weights, shares)
    # A word that has no concept stays so, whatever weight NONE reads.
    matched = np.where(weights[np.arange(len(assigned)), assigned] > 0, assigned, NONE)
    translated = matched if how.unmatched == "matched" else assigned
    details: dict[str, Any] = {
        **_edges(words, concepts, matched, count),
        "concept_tokens": len(concepts.codes),
        "unmatched_concepts": int(np.isin(concepts.codes, translated, invert=True).sum()),
        **{f"unique_{name}": found for name, found in unique.items()},
    }
    details |= _rates(details)
    pairs = _pairs(weights, matched, words.names, concepts.names)
    details["translation"] = pairs.loc[pairs["matched"], ["word", "concept", "weight"]].reset_index(drop=True)
    details["pairs"] = pairs
    return Score("cbm", details["good"] / details["total"], count, asdict(how), details)


def _weights(words: _Side, concepts: _Side, count: int) -> tuple[Counts, NDArray[np.float64]]:
    """Of every word and concept the weight, how often they occur together, and the share of the word's occurrences
    that have the concept in their phrase: [words, concepts] each."""
    shape = len(words.names), len(concepts.names)
    require_memory(4 * 8 * shape[0] * shape[1], f"A table of {shape[0]} words and {shape[1]} concepts")
    messages, phrases = words.table(count), concepts.table(count)
    together_with = (messages.T @ (phrases > 0).astype(np.int64)).toarray()
    return (messages.T @ phrases).toarray(), together_with / messages.sum(0)[:, None]


def _best_match(weights: Counts, shares: NDArray[np.float64]) -> Codes:
    """The concept assigned to each word, or NONE, [words]: weights sum to the most; of such assignments, shares do.

    Both are compared as one whole number, in which a unit of weight outweighs all shares together four times: the
    shares never change which sum of weights is best, nor does the scale of the weights change which shares are.
    """
    unit = 4 * min(weights.shape) * PARTS
    found = np.full(len(weights), NONE)
    rows, columns = linear_sum_assignment(weights * unit + np.rint(shares * PARTS).astype(np.int64), maximize=True)
    found[rows] = columns
    return found


def _edges(words: _Side, concepts: _Side, matched: Codes, count: int) -> dict[str, Any]:
    """Every word of every message as good, ambiguous or a paraphrase; precision and recall."""
    theirs = matched[words.codes]
    translated = theirs != NONE
    present = concepts.rows * len(concepts.names) + concepts.codes
    good = translated & np.isin(words.rows * len(concepts.names) + theirs, present)
    different = np.unique((words.rows * len(words.names) + words.codes)[good]) // len(words.names)
    good_words = np.bincount(different, minlength=count)
    of_words, of_concepts = words.per_row(count), concepts.per_row(count)
    return {
        "total": int(np.maximum(of_words, of_concepts).sum()),
        "good": int(good.sum()),
        "ambiguous": int((translated & ~good).sum()),
        "paraphrase": int((~translated).sum()),
        "word_tokens": len(words.codes),
        "precision": float((good_words / of_words).mean()),
        "recall": float((good_words / of_concepts).mean()),
    }


def _rates(details: dict[str, Any]) -> dict[str, float]:
    return {
        "ambiguity_rate": details["ambiguous"] / details["total"],
        "paraphrase_rate": details["paraphrase"] / details["total"],
        "unmatched_rate": details["unmatched_concepts"] / details["concept_tokens"],
    }


def _pairs(weights: Counts, matched: Codes, words: Names, concepts: Names) -> pd.DataFrame:
    """The words and concepts that occur together, in the order of concepts and then of words."""
    concept, word = np.nonzero(weights.T)
    return pd.DataFrame(
        {
            "word": [words[w] for w in word.tolist()],
            "concept": [concepts[c] for c in concept.tolist()],
            "weight": weights[word, concept],
            "matched": matched[word] == concept,
        }
    )
