"""Concept best matching (CBM): how well the words of a language translate, one by one, into concepts."""

import math
from collections.abc import Hashable, Iterable, Sequence, Sized
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icy.core.checks import number_or_text, parse_whole, whole_number
from icy.core.errors import InvalidSettingError, require_known
from icy.core.machine import require_memory
from icy.core.register import register_metric
from icy.core.streams import stream
from icy.core.text import counted
from icy.languages.rule import plain
from icy.languages.table import Codes, Table, number, together
from icy.languages.tokens import PAD

from .construction import SAME, Facts
from .score import Score

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_array

WORDS = ("tokens", "positions")
CONCEPTS = ("attributes", "items")
REPEATS = ("counted", "once")
UNMATCHED = ("matched", "assigned")
Names = Sequence[Hashable]
Counts = NDArray[np.int64]
RATES = ("ambiguity_rate", "paraphrase_rate", "unmatched_rate")
NONE = -1  # the concept of a word without a concept
MOST_COST = 2**53  # costs are compared as floats, which hold every whole number up to this limit
PARTS = 10**6  # resolution of the shares that break ties


def _unrepeated(facts: Facts, score: Score) -> str:
    """Note for CBM: if no word, or no concept, repeats, each can match any partner that it occurs with."""
    table = facts.table
    tokens = table.messages[table.messages != PAD]
    if not facts.once or table.phrases or score.conventions.get("words") != "tokens" or np.ptp(table.lengths):
        return ""
    if len(tokens) and len(np.unique(tokens)) == len(tokens):
        return f"no word occurs twice: {SAME}"
    return f"no concept occurs twice: {SAME}" if all(map(facts.differ, table.factors)) else ""


@register_metric("cbm", source="CBM24", weighted=True, unstructured=0.0, by_construction=_unrepeated)
def cbm(
    meanings: object,
    messages: object = None,
    *,
    words: str | int = "tokens",
    concepts: str = "attributes",
    repeats: str = "counted",
    unmatched: str = "matched",
    drop_last: bool = False,
    eos: object = None,
) -> Score:
    """Concept best matching: share of words that translate into a concept of their phrase.

    A sample is a message of words and a phrase of concepts (CBM24). The weight of a word and a concept is the number of
    times they occur together. Each word is matched to at most one concept, and each concept to at most one word, so
    that the total weight of matched pairs is maximal. A word in a message is then good if its concept is in the phrase,
    ambiguous if its concept is not, and a paraphrase if it has no concept. The score is the number of good words over
    Q, the sum over samples of the length of the message or the phrase, whichever is longer.

    If several matchings are optimal, the one with the most specific words is reported: it maximizes the sum, over
    matched pairs, of the share of the word's occurrences with the concept in their phrase. So a word in every
    message does not take the concept of a word that only occurs with it. Remaining ties follow the sorted order of
    words and concepts; the order of rows does not matter. If no phrase repeats a concept, all optimal matchings have
    the same score, though the details may differ.

    The score is too high on few rows; it settles at about 500 (CBM24 appendix E, and `cbm_by_sample_size`).

    Args:
        meanings: [N, A] attribute values, or a Language; with `concepts="items"` also phrases.
        messages: [N, S] tokens, or sequences of any lengths.
        words: definition of a word: "tokens", a token at any position; "positions", a token at a given position; a
            number w or "tokens:w", w consecutive tokens, cut from the start of the message; or "positions:w", the same
            at a given position. Words of several tokens, or with a position, are named by text, as in "3 1" and "0:3".
        concepts: definition of a concept: "attributes", a pair (attribute, value); or "items", an item of a phrase at
            any position, where phrases are sequences of hashable items, of any lengths.
        repeats: treatment of repeats of a word in a message, or of a concept in a phrase: "counted", as in the tables
            and the program of CBM24, or taken "once", as in its text.
        unmatched: which concepts count as matched: "matched", concepts with a word that they occur with; or "assigned",
            as in the program of CBM24, also concepts assigned to a word that they never occur with.
        drop_last: drop the last token of every message, as the program of CBM24 does by default.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score in [0, 1]. Its details, with the names of CBM24 where they differ: `total` (Q, Totl Edgs); `good`,
        `ambiguous` and `paraphrase` (Phrs), which sum to `word_tokens`; `concept_tokens` (Totl Cons) and the number of
        them that are `unmatched_concepts`; `unique_messages`, `unique_words`, `unique_phrases` and `unique_concepts`;
        `ambiguity_rate` and `paraphrase_rate`, over Q; `unmatched_rate`, over concept tokens; `precision` and `recall`,
        the number of distinct good words over that of words or of concepts in a sample, averaged over samples;
        `translation`, a DataFrame of the matched pairs (word, concept, weight), sorted by concept; and `pairs`, the
        same for all that occur together, with a column `matched`. NaN if every attribute is
        constant, or all phrases are alike.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), an empty message or phrase, continuous meanings, weights
            with fractions, a message that cannot be cut into words of w tokens, or concepts that are not hashable.
        UnknownNameError: an unknown convention.

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
    meanings: object, messages: object = None, *, segment: int = 100, seed: int = 0, **conventions: Any
) -> "pd.DataFrame":
    """Compute concept best matching for growing numbers of samples, and for single segments (CBM24 figure 4).

    Rows are shuffled and cut into disjoint segments. The scores of single segments show the variance on few rows. The
    scores of all rows up to the end of a segment show how many rows it takes for the score to settle.

    Args:
        meanings: as for `cbm`.
        messages: as for `cbm`.
        segment: rows per segment; remaining rows at the end are not used.
        seed: seed of the shuffling.
        **conventions: the other arguments of `cbm`.

    Returns:
        Two rows per segment, with the columns `sample`, "segment" or "accumulated"; `drawn`, the number of rows up to
        its end; `rows`, the number of rows scored; `cbm`, `ambiguity_rate`, `paraphrase_rate` and `unmatched_rate`.

    Raises:
        InvalidSettingError: fewer rows than one segment, or any of the errors of `cbm`.
        UnknownNameError: an unknown convention.

    Example:
        >>> import icy
        >>> from icy.metrics import cbm_by_sample_size
        >>> sizes = cbm_by_sample_size(icy.make_language("concat", "3x4", seed=1), segment=32)
        >>> sizes[["sample", "drawn", "rows"]].values.tolist()
        [['segment', 32, 32], ['accumulated', 32, 32], ['segment', 64, 32], ['accumulated', 64, 64]]
    """
    import pandas as pd

    size, how = whole_number("segment's number of rows", segment), _Conventions(**conventions)
    if isinstance(meanings, Table):
        meanings = meanings.repeated("Concept best matching")
    samples = _read(meanings, messages, how)
    if samples.count < size:
        raise InvalidSettingError(
            f"A segment of {size} rows is larger than the table ({samples.count}); take smaller segments."
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
    """The choices that affect the score; see the arguments of `cbm`."""

    words: str | int = "tokens"
    concepts: str = "attributes"
    repeats: str = "counted"
    unmatched: str = "matched"
    drop_last: bool = False
    eos: object = None

    def __post_init__(self) -> None:
        for what, given, known in (
            ("kind of concept", self.concepts, CONCEPTS),
            ("treatment of repeats", self.repeats, REPEATS),
            ("definition of unmatched concepts", self.unmatched, UNMATCHED),
        ):
            require_known(what, given, known)

    def word(self) -> tuple[bool, int]:
        """Return whether words include their position, and the number of tokens of a word."""
        kind, width = "tokens", self.words
        if isinstance(width, str) and parse_whole(width) is None:
            kind, _, width = width.partition(":")
        require_known("kind of word", kind, WORDS)
        given = (number_or_text(width) if width else 1) if isinstance(width, str) else width
        return kind == "positions", whole_number("number of tokens of a word", given)


@dataclass(frozen=True, eq=False)
class _Side:
    """The words of all messages, or the concepts of all phrases, concatenated.

    Attributes:
        rows: the sample of each word or concept, ascending, [T].
        codes: the number of each word or concept, from 0 in sorted order without gaps, [T].
        names: the name of each number.
    """

    rows: Codes
    codes: Codes
    names: Names

    def once(self) -> "_Side":
        """Return the words or concepts without repeats within a sample."""
        cells = np.unique(self.rows * len(self.names) + self.codes)
        return _Side(cells // len(self.names), cells % len(self.names), self.names)

    def within(self, which: Codes, count: int) -> "_Side":
        """Return the samples `which`, in this order, of `count` samples."""
        place = np.full(count, -1)
        place[which] = np.arange(len(which))
        rows = place[self.rows]
        order = np.argsort(rows, kind="stable")[np.count_nonzero(rows < 0) :]
        used, codes = np.unique(self.codes[order], return_inverse=True)
        return _Side(rows[order], codes, [self.names[code] for code in used])

    def per_row(self, count: int) -> Counts:
        """Count the words or concepts of each of `count` samples, [N]."""
        return np.bincount(self.rows, minlength=count)

    def different_rows(self, count: int) -> int:
        """Count the distinct sequences among the samples."""
        ends = self.per_row(count).cumsum()[:-1]
        return len({part.tobytes() for part in np.split(self.codes, ends)})

    def table(self, count: int) -> "csr_array":
        """Count how often each word or concept occurs in each sample, [N, names], without weights."""
        from scipy.sparse import csr_array

        ones = np.ones(len(self.rows), dtype=np.int64)
        return csr_array((ones, (self.rows, self.codes)), shape=(count, len(self.names)))


@dataclass(frozen=True, eq=False)
class _Samples:
    """The words and the concepts of `count` samples, and the weight of each sample, [N]."""

    count: int
    words: _Side
    concepts: _Side
    times: Counts

    def rows(self, which: Codes) -> "_Samples":
        """Return the samples `which`."""
        words, concepts = (side.within(which, self.count) for side in (self.words, self.concepts))
        return _Samples(len(which), words, concepts, self.times[which])


def _read(meanings: object, messages: object, how: _Conventions) -> _Samples:
    table, concepts = (_items if how.concepts == "items" else _values)(meanings, messages, how.eos)
    table.require_whole_weights("Concept best matching")
    times = np.ones(len(table), dtype=np.int64) if table.weights is None else table.weights
    return _Samples(len(table), _words(table, how), concepts, times)


def _values(meanings: object, messages: object, eos: object) -> tuple[Table, _Side]:
    """Return the table, and the values of its attributes as concepts."""
    try:
        table = Table.of(meanings, messages, eos=eos)
    except InvalidSettingError as error:
        lengths = {len(row) for row in meanings if isinstance(row, Sized)} if isinstance(meanings, Iterable) else ()
        if messages is not None and len(lengths) > 1:
            raise InvalidSettingError(
                "Meanings have a value for every attribute, and these differ in length; for phrases of any length, "
                'set concepts="items".'
            ) from error
        raise
    table.require_discrete("cbm")
    rows, attributes = np.indices(table.meanings.shape).reshape(2, -1)
    codes = together(attributes, np.stack(table.factors, 1).ravel())
    first = np.unique(codes, return_index=True)[1]
    values = table.meanings.ravel()[first]
    named = [(int(a), table.value_name(a, v)) for a, v in zip(attributes[first], values, strict=True)]
    return table, _Side(rows, codes, named)


def _items(meanings: object, messages: object, eos: object) -> tuple[Table, _Side]:
    """Return the table of messages, and the concepts of their phrases as items to match."""
    if messages is None and isinstance(meanings, (tuple, list)) and len(meanings) == 2:
        meanings, messages = meanings
    if messages is None:
        table = Table.of(meanings, eos=eos).require_discrete("cbm", phrases=True)
        meanings = table.concepts
    if not isinstance(meanings, Iterable):
        raise InvalidSettingError(f"Phrases must be a sequence with one phrase per message, not {meanings!r}.")
    phrases = [_phrase(given) for given in meanings]
    if messages is not None:
        table = Table.of(np.zeros((len(phrases), 1), dtype=np.int64), messages, eos=eos)
    names = _in_order({concept for phrase in phrases for concept in phrase})
    place = {name: code for code, name in enumerate(names)}
    rows = np.repeat(np.arange(len(phrases)), [len(phrase) for phrase in phrases])
    return table, _Side(rows, np.array([place[concept] for phrase in phrases for concept in phrase]), names)


def _phrase(given: object) -> list[Hashable]:
    """Return the concepts of one phrase."""
    phrase = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(phrase, str) or not isinstance(phrase, Iterable):
        raise InvalidSettingError(f"A phrase must be a sequence of concepts, not {phrase!r}; split it into concepts.")
    concepts = [concept if isinstance(concept, tuple) else plain(concept) for concept in phrase]
    if None in concepts:
        raise InvalidSettingError(f"A concept is missing in the phrase {concepts!r}; leave the row out.")
    if not concepts:
        raise InvalidSettingError("A phrase without a concept cannot be matched; leave its row out.")
    try:
        set(concepts)
    except TypeError as error:
        raise InvalidSettingError(f"Concepts must be hashable, but some in {phrase!r} are not.") from error
    return _in_order(concepts) if isinstance(phrase, (set, frozenset)) else concepts


def _in_order(concepts: Iterable[Hashable]) -> list[Hashable]:
    """Sort concepts by type and then by value, or by repr if values have no order."""
    try:
        return sorted(concepts, key=lambda concept: (str(type(concept)), concept))
    except TypeError:
        return sorted(concepts, key=lambda concept: (str(type(concept)), repr(concept)))


def _words(table: Table, how: _Conventions) -> _Side:
    """Return the words of the messages."""

    placed, width = how.word()
    lengths = table.lengths - how.drop_last
    tokens = np.where(np.arange(table.length) < lengths[:, None], table.messages, PAD)
    if not (lengths > 0).all():
        raise InvalidSettingError(
            f"Nothing can be matched in {np.count_nonzero(lengths < 1)} of {counted(len(lengths), 'message')}: they "
            "have no token that counts; leave their rows out, or keep the token that ends a message."
        )
    if (lengths % width).any():
        length = int(lengths[lengths % width > 0][0])
        raise InvalidSettingError(
            f"A message of {counted(length, 'token')} cannot be cut into words of {width}; take words of a "
            "length that divides all messages."
        )
    rows, places = np.nonzero(tokens[:, ::width] != PAD)
    parts = [tokens[rows, places * width + i] for i in range(width)]
    codes = number(together(*([places] if placed else []), *map(number, parts)))
    first = np.unique(codes, return_index=True)[1]
    named: list[Hashable] = [table.token_name(token) for token in parts[0][first]]
    if width > 1:
        spelled = zip(*(part[first] for part in parts), strict=True)
        named = [" ".join(str(table.token_name(token)) for token in word) for word in spelled]
    if placed:
        named = [f"{place}:{name}" for place, name in zip(places[first], named, strict=True)]
    return _Side(rows, codes, named)


def _score(samples: _Samples, how: _Conventions) -> Score:
    import pandas as pd

    count, words, concepts, times = samples.count, samples.words, samples.concepts, samples.times
    unique = {"messages": words.different_rows(count), "phrases": concepts.different_rows(count)}
    unique |= {"words": len(words.names), "concepts": len(concepts.names)}
    if how.repeats == "once":
        words, concepts = words.once(), concepts.once()
    weights, shares = _weights(words, concepts, times)
    if times.max() > 1 and int(weights.max()) * _unit(weights) >= MOST_COST:
        raise InvalidSettingError(
            f"A word and a concept occur together {weights.max()} times, too often for concept best matching to be "
            "exact; divide the weights of rows."
        )
    assigned = _best_match(weights, shares)
    # A word without a concept stays without a concept, although NONE = -1 reads some weight.
    matched = np.where(weights[np.arange(len(assigned)), assigned] > 0, assigned, NONE)
    translated = matched if how.unmatched == "matched" else assigned
    details: dict[str, Any] = {
        **_edges(words, concepts, matched, times),
        "concept_tokens": int(times[concepts.rows].sum()),
        "unmatched_concepts": int(times[concepts.rows[np.isin(concepts.codes, translated, invert=True)]].sum()),
        **{f"unique_{name}": found for name, found in unique.items()},
    }
    details |= {
        "ambiguity_rate": details["ambiguous"] / details["total"],
        "paraphrase_rate": details["paraphrase"] / details["total"],
        "unmatched_rate": details["unmatched_concepts"] / details["concept_tokens"],
    }
    concept, word = np.nonzero(weights.T)
    pairs = pd.DataFrame(
        {
            "word": [words.names[w] for w in word.tolist()],
            "concept": [concepts.names[c] for c in concept.tolist()],
            "weight": weights[word, concept],
            "matched": matched[word] == concept,
        }
    )
    details["translation"] = pairs.loc[pairs["matched"], ["word", "concept", "weight"]].reset_index(drop=True)
    details["pairs"] = pairs
    alike = "no attribute ever changes" if how.concepts == "attributes" else "all phrases are alike"
    why = alike if details["unique_phrases"] == 1 else ""
    value = math.nan if why else details["good"] / details["total"]
    return Score("cbm", value, count, asdict(how), details, why=why)


def _weights(words: _Side, concepts: _Side, times: Counts) -> tuple[Counts, NDArray[np.float64]]:
    """Return two tables, [words, concepts]: weights, and shares.

    A weight is how often a word and a concept occur together. A share is the fraction of the word's occurrences that
    have the concept in their phrase.
    """
    shape = len(words.names), len(concepts.names)
    require_memory(4 * 8 * shape[0] * shape[1], f"A table of {shape[0]} words and {shape[1]} concepts")
    messages, phrases = words.table(len(times)), concepts.table(len(times))
    messages = messages.multiply(times[:, None]).tocsr()
    together_with = (messages.T @ (phrases > 0).astype(np.int64)).toarray()
    return (messages.T @ phrases).toarray(), together_with / messages.sum(0)[:, None]


def _best_match(weights: Counts, shares: NDArray[np.float64]) -> Codes:
    """Return the concept assigned to each word, or NONE, [words]: maximize the weights, and the shares among ties.

    Both are compared as one integer, where a unit of weight is four times the largest possible sum of shares. So shares
    only decide between assignments of equal weight, at any scale of the weights.
    """
    from scipy.optimize import linear_sum_assignment

    found = np.full(len(weights), NONE)
    costs = weights * _unit(weights) + np.rint(shares * PARTS).astype(np.int64)
    rows, columns = linear_sum_assignment(costs, maximize=True)
    found[rows] = columns
    return found


def _unit(weights: Counts) -> int:
    """Return the value of a unit of weight in `_best_match`."""
    return 4 * int(min(weights.shape)) * PARTS


def _edges(words: _Side, concepts: _Side, matched: Codes, times: Counts) -> dict[str, object]:
    """Count the words that are good, ambiguous and paraphrases; compute precision and recall."""
    count, theirs, of_word = len(times), matched[words.codes], times[words.rows]
    translated = theirs != NONE
    present = concepts.rows * len(concepts.names) + concepts.codes
    good = translated & np.isin(words.rows * len(concepts.names) + theirs, present)
    different = np.unique((words.rows * len(words.names) + words.codes)[good]) // len(words.names)
    good_words = np.bincount(different, minlength=count)
    of_words, of_concepts = words.per_row(count), concepts.per_row(count)
    return {
        "total": int(np.maximum(of_words, of_concepts) @ times),
        "good": int(of_word[good].sum()),
        "ambiguous": int(of_word[translated & ~good].sum()),
        "paraphrase": int(of_word[~translated].sum()),
        "word_tokens": int(of_word.sum()),
        "precision": float(np.average(good_words / of_words, weights=times)),
        "recall": float(np.average(good_words / of_concepts, weights=times)),
    }
