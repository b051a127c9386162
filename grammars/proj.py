"""proj: a random linear map of the one-hot message, then the largest component at each position."""

import numpy as np
from numpy.typing import NDArray

from icy.core.memory import require_memory
from icy.core.registry import register_grammar

from .base import Corruption, IntArray, Table, TableMessages

ROWS_AT_ONCE = 1024  # keeps the scores of a block, [rows, L * V] floats, in the processor's cache


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

    def apply(self, messages: TableMessages, table: Table) -> TableMessages:
        """Return projected messages; see Corruption.apply."""
        vocab, size = table.vocab_size, table.message_length * table.vocab_size
        require_memory(8 * size * size, f"The {size} x {size} matrix of proj")
        matrix = table.rng.random((size, size))
        components = messages + np.arange(table.message_length) * vocab
        projected = np.empty_like(messages)
        for start in range(0, len(messages), ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            scores = _sum_of_rows(matrix, components[block])
            projected[block] = scores.reshape(-1, table.message_length, vocab).argmax(axis=2)
        return projected


def _sum_of_rows(matrix: NDArray[np.float64], rows: IntArray) -> NDArray[np.float64]:
    """Return sums of matrix rows, [n, columns] for rows [n, L]: one-hot times matrix, without the one-hots.

    Rows are added in the order of positions, so that the sums are the same to the last bit on every machine, which a
    matrix product does not guarantee.
    """
    total = matrix[rows[:, 0]]
    for position in range(1, rows.shape[1]):
        total += matrix[rows[:, position]]
    return total
