"""Context independence: does every concept have a token of its own, whatever else a message is about?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.errors import InvalidSettingError, unknown

from .score import Score, undefined
from .table import PAD, Table

ALIGNMENTS = ("cooccurrence", "em")
TIES = ("best", "lowest")
MOST_ROUNDS, SETTLED = 1000, 1e-7  # of EM, and the change of a probability that ends it
ROWS_AT_ONCE = 8192
Matrix = NDArray[np.float64]


def context_independence(
    meanings: Any,
    messages: Any = None,
    *,
    alignment: str = "cooccurrence",
    ties: str = "best",
    smoothing: float = 0.0,
    eos: int | None = None,
) -> Score:
    """Context independence: the mean over concepts of p(v | c) p(c | v) for the token v of each (Bogin et al. 2018).

    A concept is a value of an attribute.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths; empty ones say nothing.
        alignment: "cooccurrence", the form in common use: every token of a message counts for every concept of its
            meaning, and v is the token most often beside c. Ideal languages of A attributes reach 1 / A^2 in it. Or
            "em", as in the paper: counts are shared out by IBM's first model of translation, trained by expectation
            maximisation, and v is the token with the greatest p(c | v); ideal languages reach about 1.
        ties: of tokens that are chosen equally, the one with the greatest product ("best") or the lowest ("lowest").
        smoothing: what is added to every count.
        eos: the token that ends a message; see Table.of.

    Returns:
        A score in [0, 1]; the details have a DataFrame of each concept, its token, p(v | c) and p(c | v), and for "em"
        the rounds made and whether it settled. NaN where all messages are empty.

    Raises:
        InvalidSettingError: tables that do not fit together, continuous meanings, negative smoothing.
        UnknownNameError: a convention that there is not.

    Example:
        >>> from icy.metrics import context_independence
        >>> table = [[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bc", "bd"]
        >>> context_independence(*table).value, round(context_independence(*table, alignment="em").value, 2)
        (0.25, 1.0)
    """
    if alignment not in ALIGNMENTS:
        raise unknown("alignment", alignment, ALIGNMENTS)
    if ties not in TIES:
        raise unknown("rule for ties", ties, TIES)
    if not smoothing >= 0:
        raise InvalidSettingError(f"smoothing is added to counts and at least 0, not {smoothing}.")
    table = Table.of(meanings, messages, eos=eos)
    table.require_discrete("Context independence")
    conventions = {"alignment": alignment, "ties": ties, "smoothing": smoothing or None, "eos": eos}
    if not table.lengths.any():
        return undefined("context_independence", "all messages are empty", len(table), conventions)
    concepts, names = _concepts(table)
    tokens, used = _tokens(table)
    counts = _cooccurrences(concepts, tokens, len(names), len(used))
    details: dict[str, Any] = {}
    if alignment == "em":
        counts, details = _aligned(concepts, tokens, counts)
    counts = counts + smoothing
    to_token, to_concept = _shares(counts, 1), _shares(counts, 0)
    chosen = _chosen(counts if alignment == "cooccurrence" else to_concept, to_token * to_concept, ties)
    rows = np.arange(len(names))
    frame = _frame(names, [table.token_name(v) for v in used[chosen]], to_token[rows, chosen], to_concept[rows, chosen])
    value = float((to_token * to_concept)[rows, chosen].mean())
    return Score("context_independence", value, len(table), conventions, {"concepts": frame, **details})


def _concepts(table: Table) -> tuple[NDArray[np.int64], list[tuple[int, Any]]]:
    """For every row the numbers of its concepts, [N, A]; and of every concept the attribute and the value."""
    names: list[tuple[int, Any]] = []
    columns = []
    for a, factor in enumerate(table.factors):
        columns.append(factor + len(names))
        names += [(a, table.value_name(a, value)) for value in np.unique(table.meanings[:, a])]
    return np.stack(columns, 1), names


def _tokens(table: Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens numbered without gaps, [N, S], PAD after the end; and which they are."""
    used = np.unique(table.messages[table.messages != PAD])
    return np.where(table.messages == PAD, PAD, np.searchsorted(used, table.messages)), used


def _cooccurrences(concepts: NDArray[np.int64], tokens: NDArray[np.int64], rows: int, columns: int) -> Matrix:
    """How often each token stands in a message about each concept: [concepts, tokens]."""
    counts = np.zeros(rows * columns)
    for concept in concepts.T:
        for token in tokens.T:
            said = token != PAD
            counts += np.bincount(concept[said] * columns + token[said], minlength=rows * columns)
    return counts.reshape(rows, columns)


def _aligned(concepts: NDArray[np.int64], tokens: NDArray[np.int64], counts: Matrix) -> tuple[Matrix, dict[str, Any]]:
    """Counts shared out over the concepts of a meaning, by expectation maximisation from the plain ones."""
    kinds, times = np.unique(np.concatenate([concepts, tokens], 1), axis=0, return_counts=True)
    attributes = concepts.shape[1]
    translation = _shares(np.ones_like(counts) * (counts > 0), 1)
    rounds, change = 0, np.inf
    while rounds < MOST_ROUNDS and change >= SETTLED:
        rounds += 1
        shared = np.zeros_like(counts)
        for first in range(0, len(kinds), ROWS_AT_ONCE):
            some = kinds[first : first + ROWS_AT_ONCE]
            _share_out(
                shared, translation, some[:, :attributes], some[:, attributes:], times[first : first + len(some)]
            )
        before, translation = translation, _shares(shared, 1)
        change = float(np.abs(translation - before).max())
    return shared, {"rounds": rounds, "converged": change < SETTLED}


def _share_out(
    shared: Matrix,
    translation: Matrix,
    concepts: NDArray[np.int64],
    tokens: NDArray[np.int64],
    times: NDArray[np.int64],
) -> None:
    """Add every token of some rows to the concepts of its row, each in proportion to its translation."""
    for token in tokens.T:
        said = token != PAD
        of_row = concepts[said]
        weights = translation[of_row, token[said][:, None]]
        weights *= (times[said] / weights.sum(1))[:, None]
        np.add.at(shared, (of_row, token[said][:, None]), weights)


def _shares(counts: Matrix, axis: int) -> Matrix:
    """Counts as shares of their sum along an axis; 0 where that is 0."""
    total = counts.sum(axis, keepdims=True)
    shares: Matrix = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    return shares


def _chosen(choice: Matrix, product: Matrix, ties: str) -> NDArray[np.int64]:
    """The token of every concept."""
    best = choice >= choice.max(1, keepdims=True) * (1 - 1e-9)
    found: NDArray[np.int64] = (best if ties == "lowest" else np.where(best, product, -1)).argmax(1)
    return found


def _frame(names: list[tuple[int, Any]], tokens: list[Any], to_token: Matrix, to_concept: Matrix) -> Any:
    import pandas as pd

    attributes, values = zip(*names, strict=True)
    columns = {"attribute": attributes, "value": values, "token": tokens}
    return pd.DataFrame({**columns, "token_given_concept": to_token, "concept_given_token": to_concept})
