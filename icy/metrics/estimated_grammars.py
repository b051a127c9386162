"""Grammars with parameters that are estimated from a language, and random languages of each grammar."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

IntArray = NDArray[np.int64]
SMOOTHING = 0.5  # added to counts of tokens before logarithms
ROUNDS = 3  # of parameters that are estimated from each other


@dataclass(frozen=True)
class Rows:
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

    @property
    def owners(self) -> Int64[IntArray, " length"]:
        """The attribute of each position in concat."""
        return np.arange(self.tokens.shape[1]) // self.word_length

    def counts(self) -> Int64[IntArray, "attr length value token"]:
        """Count each token at each position, for each value of each attribute."""
        return np.stack([self.counts_of([a] * self.tokens.shape[1]) for a in range(self.values.shape[1])])

    def counts_of(self, owners: Sequence[int] | Int64[IntArray, " length"]) -> Int64[IntArray, "length value token"]:
        """Count each token at each position, for each value of the attribute that owns the position."""
        (values, tokens), length = self.sizes, self.tokens.shape[1]
        cells = (np.arange(length) * values + self.values[:, owners]) * tokens + self.tokens
        return np.bincount(cells.ravel(), minlength=length * values * tokens).reshape(length, values, tokens)

    def with_tokens(self, tokens: Int64[IntArray, "row length"]) -> Self:
        """Return the same meanings with other messages."""
        return type(self)(self.values, tokens, self.sizes)


@dataclass(frozen=True)
class EstimatedGrammar:
    """A grammar with parameters that are estimated from a language.

    Attributes:
        predict: estimates the parameters from rows, and returns the messages [m, L] of meanings [m, A].
        draw: returns random messages of this grammar for the meanings of rows, [n, L]. It replaces the messages of the
            rows, which are messages of concat with random words.
    """

    predict: Callable[[Rows, IntArray], IntArray]
    draw: Callable[[Rows, np.random.Generator], IntArray]


def draw_concat(
    values: Int64[IntArray, "row attr"], length: int, sizes: tuple[int, int], generator: np.random.Generator
) -> Rows:
    """Return messages of concat with random words, which may be equal."""
    attributes = values.shape[1]
    words = generator.integers(sizes[1], size=(attributes, sizes[0], length // attributes))
    return Rows(values, words[np.arange(attributes), values].reshape(len(values), length), sizes)


# -- hol, concat, perm -------------------------------------------------------------------------------------------------


def _hol(rows: Rows, values: IntArray) -> IntArray:
    frequent = rows.counts_of([0] * rows.tokens.shape[1]).sum(1).argmax(-1)
    return np.broadcast_to(frequent, (len(values), len(frequent)))


def _draw_hol(rows: Rows, generator: np.random.Generator) -> IntArray:
    return generator.integers(rows.sizes[1], size=rows.tokens.shape)


def _concat(rows: Rows, values: IntArray) -> IntArray:
    return _by_owner(rows, values, rows.owners)


def _by_owner(rows: Rows, values: IntArray, owners: IntArray) -> IntArray:
    """Predict the most frequent token at each position for the value of the attribute that owns the position."""
    found: IntArray = rows.counts_of(owners).argmax(-1)[np.arange(len(owners)), values[:, owners]]
    return found


def _perm(rows: Rows, values: IntArray) -> IntArray:
    fits = rows.counts().max(-1).sum(-1).repeat(rows.word_length, axis=0)  # [place in concat, position]
    places, positions = linear_sum_assignment(fits, maximize=True)
    owners = np.empty(len(positions), dtype=np.int64)
    owners[positions] = places // rows.word_length
    return _by_owner(rows, values, owners)


def _draw_perm(rows: Rows, generator: np.random.Generator) -> IntArray:
    return generator.permutation(rows.tokens, axis=1)


# -- rot, pairsum: each token is a sum of tokens of concat, modulo V ---------------------------------------------------


def _rot_sums(rows: Rows) -> IntArray:
    return np.tri(rows.tokens.shape[1], dtype=np.int64)


def _pairsum_sums(rows: Rows) -> IntArray:
    attributes = rows.values.shape[1]
    words = np.eye(attributes, dtype=np.int64)
    for a in range(attributes):
        words[a] += words[(a + 1) % attributes]  # the updated first word is added to the last word
    return np.kron(words, np.eye(rows.word_length, dtype=np.int64))


def _summed(sums: Callable[[Rows], IntArray]) -> EstimatedGrammar:
    def predict(rows: Rows, values: IntArray) -> IntArray:
        """Estimate base words from differences of tokens, then improve them so that more tokens are right."""
        size, matrix, owners = rows.sizes[1], sums(rows), rows.owners
        inverse = np.rint(np.linalg.inv(matrix)).astype(np.int64)  # a product of steps with determinant 1
        base = rows.with_tokens(rows.tokens @ inverse.T % size)
        words = base.counts_of(owners).argmax(-1)  # [position in concat, value]

        def spoken(meanings: IntArray) -> IntArray:
            made: IntArray = words[np.arange(len(owners)), meanings[:, owners]] @ matrix.T % size
            return made

        wrong = (rows.tokens - spoken(rows.values)) % size
        for _ in range(ROUNDS):
            before = words.copy()
            for place, owner in enumerate(owners):
                own = rows.values[:, owner]
                cells = own[:, None] * size + wrong[:, matrix[:, place] == 1]
                votes = np.bincount(cells.ravel(), minlength=rows.sizes[0] * size).reshape(-1, size)
                change = votes.argmax(1)
                if change.any():
                    words[place] = (words[place] + change) % size
                    wrong = (wrong - change[own][:, None] * matrix[:, place]) % size
            if (words == before).all():
                break
        return spoken(values)

    def draw(rows: Rows, generator: np.random.Generator) -> IntArray:
        drawn: IntArray = rows.tokens @ sums(rows).T % rows.sizes[1]
        return drawn

    return EstimatedGrammar(predict, draw)


# -- shufdet -----------------------------------------------------------------------------------------------------------


def _shufdet(rows: Rows, values: IntArray) -> IntArray:
    attributes, words = rows.values.shape[1], rows.tokens.reshape(len(rows.tokens), rows.values.shape[1], -1)
    parts = [rows.values[:, -1] == last for last in range(rows.sizes[0])]
    counts = [Rows(rows.values[part], rows.tokens[part], rows.sizes).counts() for part in parts]
    fits = [one.max(-1).sum(-1).reshape(attributes, attributes, -1).sum(2) for one in counts]  # [attribute, slot]
    for _ in range(ROUNDS):
        slots = np.stack([linear_sum_assignment(fit, maximize=True)[1] for fit in fits])  # [last value, attribute]
        base = np.take_along_axis(words, slots[rows.values[:, -1]][..., None], 1)
        known = rows.with_tokens(base.reshape(rows.tokens.shape))
        expected = _concat(known, rows.values).reshape(words.shape)
        same = expected[:, :, None] == words[:, None]  # [row, attribute, slot, token of the word]
        fits = [same[part].sum((0, 3)) for part in parts]
    made = _concat(known, values).reshape(len(values), attributes, -1)
    return np.take_along_axis(made, slots.argsort(1)[values[:, -1]][..., None], 1).reshape(len(values), -1)


def _draw_shufdet(rows: Rows, generator: np.random.Generator) -> IntArray:
    attributes = rows.values.shape[1]
    orders = generator.permuted(np.tile(np.arange(attributes), (rows.sizes[0], 1)), axis=1)
    words = rows.tokens.reshape(len(rows.tokens), attributes, -1)
    return np.take_along_axis(words, orders[rows.values[:, -1]][..., None], 1).reshape(rows.tokens.shape)


# -- proj --------------------------------------------------------------------------------------------------------------


def _proj(rows: Rows, values: IntArray) -> IntArray:
    counts = rows.counts() + SMOOTHING
    share, alone = counts / counts.sum(-1, keepdims=True), counts.sum((0, 2)) / counts.sum((0, 2, 3))[:, None]
    gains = np.log(share / alone[:, None]).swapaxes(1, 2)  # [attribute, value, position, token]
    scores = np.log(alone) + sum(gains[a, values[:, a]] for a in range(values.shape[1]))
    found: IntArray = scores.argmax(-1)
    return found


def _draw_proj(rows: Rows, generator: np.random.Generator) -> IntArray:
    length, size = rows.tokens.shape[1], rows.sizes[1]
    matrix = generator.random((length, size, length, size))
    scores = sum(matrix[place, rows.tokens[:, place]] for place in range(length))
    drawn: IntArray = np.asarray(scores).argmax(-1)
    return drawn


GRAMMARS: Mapping[str, EstimatedGrammar] = {
    "hol": EstimatedGrammar(_hol, _draw_hol),
    "concat": EstimatedGrammar(_concat, lambda rows, generator: rows.tokens),
    "rot": _summed(_rot_sums),
    "pairsum": _summed(_pairsum_sums),
    "perm": EstimatedGrammar(_perm, _draw_perm),
    "shufdet": EstimatedGrammar(_shufdet, _draw_shufdet),
    "proj": EstimatedGrammar(_proj, _draw_proj),
}
