"""proj: a random linear map of the one-hot message, then the largest component at each position."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.memory import require_memory
from icy.core.registry import register_grammar

from .grammar import Corruption, IntArray, TableMessages, WordTable

SCORES_AT_ONCE = 163_840  # of a block, [rows, V * L] floats: what the processor keeps in its cache


@register_grammar("proj", source="Perkins21 (PROJ), Icy22 (proj); the law of the matrix from the authors' program")
class Proj(Corruption):
    """Multiplies the one-hot message by one random matrix and takes the best token at each position.

    The matrix P has shape [L * V, L * V], component t * V + v standing for token v at position t, and entries uniform
    on [0, 1) as in the authors' program. It is neither orthogonal nor checked to be invertible, and distinct meanings
    may get the same message: at 5x10 with V = 4 and w = 4 about 92 % of the messages are distinct.

    Raises:
        InvalidSettingError: P does not fit in memory.

    Example:
        >>> from icy.grammars import make_language
        >>> make_language("proj", "2x3", vocab_size=4, word_length=2).name
        'proj'
    """

    def apply(self, messages: TableMessages, table: WordTable) -> TableMessages:
        """Return projected messages; see Corruption.apply."""
        vocab, size = table.vocab_size, table.message_length * table.vocab_size
        require_memory(2 * 8 * size * size, f"The {size} x {size} matrix of proj")
        matrix = table.rng.random((size, size))
        # Scores of one token at all positions side by side, which the search for the best token reads straight on.
        by_token = matrix.reshape(size, table.message_length, vocab).swapaxes(1, 2).reshape(size, size)
        components = messages + np.arange(table.message_length) * vocab
        projected = np.empty_like(messages)
        rows_at_once = max(1, SCORES_AT_ONCE // size)
        for start in range(0, len(messages), rows_at_once):
            block = slice(start, start + rows_at_once)
            scores = _sum_of_rows(by_token, components[block])
            of_tokens = scores.reshape(-1, vocab, table.message_length).swapaxes(0, 1)
            projected[block] = _best(np.ascontiguousarray(of_tokens))
        return projected


def _sum_of_rows(matrix: NDArray[np.float64], rows: IntArray) -> NDArray[np.float64]:
    """Return sums of matrix rows, [n, columns] for rows [n, L]: one-hot times matrix, without the one-hots.

    Rows are added in the order of positions, so that the sums are the same to the last bit on every machine, which a
    matrix product does not guarantee. Neighbours that begin alike, as those of concat do, share the sums of what they
    have in common.
    """
    begins = np.ones(rows.shape, dtype=bool)  # whether the tokens up to a position differ from the row before's
    np.logical_or.accumulate(rows[1:] != rows[:-1], axis=1, out=begins[1:])
    first, total = np.zeros(1, dtype=np.int64), np.zeros((1, matrix.shape[1]))  # of all that begin alike
    for position, count in enumerate(begins.sum(axis=0).tolist()):
        if count > len(first):
            first = np.flatnonzero(begins[:, position])
            total = np.take(total, _groups(begins[first, :position]), axis=0)
        total += np.take(matrix, rows[first, position], axis=0)
    return total if len(first) == len(rows) else np.take(total, _groups(begins), axis=0)


def _groups(begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of the group of each row [n], where the last column of [n, positions] says which begin one."""
    return np.cumsum(begins[:, -1]) - 1 if begins.shape[1] else np.zeros(len(begins), dtype=np.int64)


def _best(scores: NDArray[np.float64]) -> NDArray[np.unsignedinteger[Any]]:
    """Return the token of the largest score, the first of equals, along the first axis of [V, ...]."""
    best, tokens = scores[0].copy(), np.zeros(scores[0].shape, dtype=np.min_scalar_type(len(scores) - 1))
    for token, of_token in enumerate(scores[1:], start=1):
        np.maximum(tokens, (of_token > best) * tokens.dtype.type(token), out=tokens)
        np.maximum(best, of_token, out=best)
    return tokens
