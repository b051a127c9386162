"""proj: a random linear map of the one-hot message, then the largest component at each position."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.machine import require_memory
from icy.core.register import register_grammar

from .grammar import ABSENT, Corruption, IntArray, TableMessages, WordTable
from .word_lengths import joined, spread

SCORES_AT_ONCE = 163_840  # elements of a block of [rows, V * L] floats that fits in the processor's cache


@register_grammar("proj", source="Perkins21 (PROJ), Icy22 (proj); the law of the matrix from the authors' program")
class Proj(Corruption):
    """Multiplies the one-hot message by one random matrix and takes the best token at each position.

    The matrix P has shape [L * V, L * V], where component t * V + v is token v at position t, with entries uniform
    on [0, 1) as in the authors' program. It is not orthogonal or checked for invertibility, and distinct meanings
    may get the same message: at 5x10 with V = 4 and w = 4 about 92 % of the messages are distinct. Shorter messages
    keep their lengths: absent tokens add nothing to the sums.

    Raises:
        InvalidSettingError: P does not fit in memory.

    Example:
        >>> from icy.grammars import make_language
        >>> make_language("proj", "2x3", vocab_size=4, word_length=2).name
        'proj'
    """

    shorter_words = True

    def apply(self, messages: TableMessages, table: WordTable) -> TableMessages:
        """Return projected messages; see Corruption.apply."""
        vocab, size = table.vocab_size, table.message_length * table.vocab_size
        require_memory(2 * 8 * size * size, f"The {size} x {size} matrix of proj")
        matrix = table.rng.random((size, size))
        # Scores of one token at all positions are contiguous, so the search for the best token reads them in order.
        by_token = matrix.reshape(size, table.message_length, vocab).swapaxes(1, 2).reshape(size, size)
        components, absent = messages + np.arange(table.message_length) * vocab, None
        if table.shorter_words:
            tokens = joined(messages)
            absent = tokens == ABSENT
            components = np.where(absent, size, tokens + np.arange(table.message_length) * vocab)
            by_token = np.vstack([by_token, np.zeros(size)])  # absent tokens add nothing
        projected = np.empty_like(messages)
        rows_at_once = max(1, SCORES_AT_ONCE // size)
        for start in range(0, len(messages), rows_at_once):
            block = slice(start, start + rows_at_once)
            scores = _sum_of_rows(by_token, components[block])
            of_tokens = scores.reshape(-1, vocab, table.message_length).swapaxes(0, 1)
            projected[block] = _best(np.ascontiguousarray(of_tokens))
        return projected if absent is None else spread(np.where(absent, ABSENT, projected), messages != ABSENT)


def _sum_of_rows(matrix: NDArray[np.floating], rows: IntArray) -> NDArray[np.floating]:
    """Return sums of matrix rows, [n, columns] for row numbers [n, L]; this equals one-hot vectors times the matrix.

    Rows are added in the order of positions, so the sums are the same to the last bit on every machine. A matrix
    product does not guarantee this. Neighboring rows with equal first tokens, as in concat, share the sums of these
    tokens.
    """
    begins = np.ones(rows.shape, dtype=bool)  # whether the tokens up to a position differ from the previous row's
    np.logical_or.accumulate(rows[1:] != rows[:-1], axis=1, out=begins[1:])
    first, total = np.zeros(1, dtype=np.int64), np.zeros((1, matrix.shape[1]), matrix.dtype)  # sums per group
    for position, count in enumerate(begins.sum(axis=0).tolist()):
        if count > len(first):
            first = np.flatnonzero(begins[:, position])
            total = np.take(total, _groups(begins[first, :position]), axis=0)
        total += np.take(matrix, rows[first, position], axis=0)
    return total if len(first) == len(rows) else np.take(total, _groups(begins), axis=0)


def _groups(begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the group number of each row [n]; the last column of [n, positions] marks the first row of each group."""
    return np.cumsum(begins[:, -1]) - 1 if begins.shape[1] else np.zeros(len(begins), dtype=np.int64)


def _best(scores: NDArray[np.floating]) -> NDArray[np.unsignedinteger[Any]]:
    """Return the token with the largest score (of equal scores, the first), along the first axis of [V, ...]."""
    best, tokens = scores[0].copy(), np.zeros(scores[0].shape, dtype=np.min_scalar_type(len(scores) - 1))
    for token, of_token in enumerate(scores[1:], start=1):
        np.maximum(tokens, (of_token > best) * tokens.dtype.type(token), out=tokens)
        np.maximum(best, of_token, out=best)
    return tokens
