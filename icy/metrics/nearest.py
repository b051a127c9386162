"""Which grammar a language is nearest to: how well each grammar, with its words estimated, predicts the messages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from jaxtyping import Bool, Int64
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from icy.core.errors import InvalidSettingError
from icy.core.progress import track
from icy.core.text import counted
from icy.languages.language import Language
from icy.languages.splits import Split

IntArray = NDArray[np.int64]
ERRORS = 3.0  # standard errors by which a grammar must be better than one with fewer parameters
SMOOTHING = 0.5  # added to counts of tokens before logarithms
ROUNDS = 3  # of words and word orders, each estimated from the other


@dataclass(frozen=True)
class NearestGrammar:
    """How well grammars predict the messages of a language.

    Attributes:
        grammar: name of the nearest grammar.
        agreement: share of tokens that each grammar predicts, in the order of the number of free parameters.
    """

    grammar: str
    agreement: Mapping[str, float]


@dataclass(frozen=True)
class _Rows:
    """Meanings and messages from which a grammar is estimated.

    Attributes:
        values: attribute values, shape [n, A].
        tokens: messages, shape [n, L].
        sizes: number of values K, and of tokens V.
    """

    values: Int64[IntArray, "row attr"]
    tokens: Int64[IntArray, "row length"]
    sizes: tuple[int, int]

    @property
    def word_length(self) -> int:
        """Tokens per word, w."""
        return int(self.tokens.shape[1] // self.values.shape[1])

    def counts(self) -> Int64[IntArray, "attr value length token"]:
        """Count each token at each position, for each value of each attribute."""
        (values, tokens), attributes, length = self.sizes, self.values.shape[1], self.tokens.shape[1]
        places = np.arange(attributes * length).reshape(attributes, length) * values  # of pairs of attribute, position
        cells = (places + self.values[:, :, None]) * tokens + self.tokens[:, None]
        counts = np.bincount(cells.ravel(), minlength=attributes * length * values * tokens)
        return counts.reshape(attributes, length, values, tokens).swapaxes(1, 2)

    def with_tokens(self, tokens: Int64[IntArray, "row length"]) -> Self:
        """Return the same meanings with other messages."""
        return type(self)(self.values, tokens, self.sizes)


Predict = Callable[[_Rows, IntArray], IntArray]


def nearest_grammar(
    language: Language, *, seed: int = 0, existing: Int64[IntArray, " meaning"] | None = None
) -> NearestGrammar:
    """Return the grammar that predicts the messages of a language best, with its words estimated from the language.

    The meanings are split into two random halves, each with every value of every attribute. From one half, the words
    of a grammar are estimated as the most frequent tokens, and its other parameters, such as the permutation of perm,
    as those that fit best. The grammar then predicts the messages of the other half. Its agreement is the share of
    tokens that are predicted correctly, over both halves. The estimated grammars are

    - `hol`: no words; it predicts the most frequent token at each position. A holistic language is nearest to it, and
      a language with a single message;
    - `concat`, `rot`, `pairsum`: a word for each value;
    - `perm`: also the positions of each attribute;
    - `shufdet`: also an order of words for each value of the last attribute;
    - `proj`: a score of each token for each value at each position, and the token with the largest sum (naive Bayes).

    The nearest grammar is the first one of this list that is not worse than the best by more than three standard
    errors of the difference over meanings: simple grammars are special cases of complex ones.

    Args:
        language: a language with words of equal length. If all messages end at the same place, their end is left out.
        seed: seed of the halves.
        existing: numbers of the meanings that exist, [n]; the others are left out. By default all meanings exist. If
            not, a half may lack a value.

    Returns:
        The nearest grammar, and the agreement of each grammar.

    Raises:
        InvalidSettingError: the space has fewer than two attributes or too few meanings to split, the messages
            have several lengths, or their length is not a multiple of the number of attributes.

    Example:
        >>> from icy.grammars import make_language
        >>> from icy.metrics import nearest_grammar
        >>> found = nearest_grammar(make_language("rot", "3x5", word_length=3, seed=1))
        >>> found.grammar, found.agreement["rot"], round(found.agreement["concat"], 2)
        ('rot', 1.0, 0.62)
    """
    known = np.arange(language.space.size) if existing is None else existing
    shortest, length = (int(end(language.lengths[known])) for end in (np.min, np.max))
    if shortest < length:
        raise InvalidSettingError(
            f"The nearest grammar needs words of equal length, but these messages have {shortest} to {length} tokens "
            f"before the end token {language.eos}."
        )
    if length % language.space.attributes or not length:
        raise InvalidSettingError(
            f"The nearest grammar needs words of equal length, but messages of {counted(length, 'token')} do not "
            f"divide into {counted(language.space.attributes, 'word')}."
        )
    values, tokens = language.space.meanings(known), language.messages[known, :length].astype(np.int64)
    if language.eos is not None:
        tokens -= tokens > language.eos
    halves = [np.flatnonzero(np.isin(known, half)) for half in Split("random", 0.5).parts(language.space, seed)]
    if not all(map(len, halves)):
        raise InvalidSettingError(f"{counted(len(known), 'meaning')} cannot be split into two halves; take more.")
    right: dict[str, Bool[NDArray[np.bool_], "meaning length"]] = {
        name: np.empty(tokens.shape, dtype=bool) for name in GRAMMARS
    }
    for (seen, unseen), name in track(list(product((halves, halves[::-1]), GRAMMARS)), "steps of the nearest grammar"):
        rows = _Rows(values[seen], tokens[seen], (language.space.values, language.token_count))
        right[name][unseen] = GRAMMARS[name](rows, values[unseen]) == tokens[unseen]
    shares = {name: one.mean(1) for name, one in right.items()}
    agreement = {name: float(one.mean()) for name, one in right.items()}
    best = shares[max(agreement, key=lambda name: agreement[name])]
    nearest = next(name for name, own in shares.items() if _is_as_good(best - own))
    return NearestGrammar(nearest, agreement)


def _is_as_good(difference: NDArray[np.float64]) -> bool:
    """Return whether a mean difference over meanings is within the allowed number of standard errors of 0."""
    return bool(difference.mean() <= ERRORS * difference.std(ddof=1) / np.sqrt(len(difference)))


# -- grammars ----------------------------------------------------------------------------------------------------------
# Each function estimates a grammar from rows, and predicts the messages of other meanings [n, A].


def _hol(rows: _Rows, values: IntArray) -> IntArray:
    counts = rows.counts()[0].sum(0)
    return np.broadcast_to(counts.argmax(-1), (len(values), len(counts)))


def _concat(rows: _Rows, values: IntArray) -> IntArray:
    return _by_owner(rows, values, np.arange(rows.tokens.shape[1]) // rows.word_length)


def _by_owner(rows: _Rows, values: IntArray, owners: IntArray) -> IntArray:
    """Predict the most frequent token at each position for the value of the attribute that owns the position."""
    positions = np.arange(len(owners))
    found: IntArray = rows.counts().argmax(-1)[owners, values[:, owners], positions]
    return found


def _rot(rows: _Rows, values: IntArray) -> IntArray:
    size = rows.sizes[1]
    base = np.diff(rows.tokens, axis=1, prepend=0) % size
    return _concat(rows.with_tokens(base), values).cumsum(1) % size


def _pairsum(rows: _Rows, values: IntArray) -> IntArray:
    attributes, size = rows.values.shape[1], rows.sizes[1]
    base = rows.tokens.reshape(-1, attributes, rows.word_length).copy()
    for a in reversed(range(attributes)):  # the last word was summed last, with the first word of the message
        base[:, a] = (base[:, a] - base[:, (a + 1) % attributes]) % size
    words = _concat(rows.with_tokens(base.reshape(rows.tokens.shape)), values)
    words = words.reshape(-1, attributes, rows.word_length).copy()
    for a in range(attributes):
        words[:, a] = (words[:, a] + words[:, (a + 1) % attributes]) % size
    return words.reshape(len(values), -1)


def _perm(rows: _Rows, values: IntArray) -> IntArray:
    fits = rows.counts().max(-1).sum(1).repeat(rows.word_length, axis=0)  # [place in concat, position]
    places, positions = linear_sum_assignment(fits, maximize=True)
    owners = np.empty(len(positions), dtype=np.int64)
    owners[positions] = places // rows.word_length
    return _by_owner(rows, values, owners)


def _shufdet(rows: _Rows, values: IntArray) -> IntArray:
    attributes, words = rows.values.shape[1], rows.tokens.reshape(len(rows.tokens), rows.values.shape[1], -1)
    parts = [rows.values[:, -1] == last for last in range(rows.sizes[0])]
    counts = [_Rows(rows.values[part], rows.tokens[part], rows.sizes).counts() for part in parts]
    fits = [one.max(-1).sum(1).reshape(attributes, attributes, -1).sum(2) for one in counts]  # [attribute, slot]
    for _ in range(ROUNDS):
        slots = np.stack([linear_sum_assignment(fit, maximize=True)[1] for fit in fits])  # [last value, attribute]
        base = np.take_along_axis(words, slots[rows.values[:, -1]][..., None], 1)
        known = rows.with_tokens(base.reshape(rows.tokens.shape))
        expected = _concat(known, rows.values).reshape(words.shape)
        same = expected[:, :, None] == words[:, None]  # [row, attribute, slot, token of the word]
        fits = [same[part].sum((0, 3)) for part in parts]
    made = _concat(known, values).reshape(len(values), attributes, -1)
    return np.take_along_axis(made, slots.argsort(1)[values[:, -1]][..., None], 1).reshape(len(values), -1)


def _proj(rows: _Rows, values: IntArray) -> IntArray:
    counts = rows.counts() + SMOOTHING
    share, alone = counts / counts.sum(-1, keepdims=True), counts.sum((0, 1)) / counts.sum((0, 1, 3))[:, None]
    gains = np.log(share / alone)
    scores = np.log(alone) + sum(gains[a, values[:, a]] for a in range(values.shape[1]))
    found: IntArray = scores.argmax(-1)
    return found


GRAMMARS: Mapping[str, Predict] = {
    "hol": _hol,
    "concat": _concat,
    "rot": _rot,
    "pairsum": _pairsum,
    "perm": _perm,
    "shufdet": _shufdet,
    "proj": _proj,
}
