"""Context independence: does every concept have a token of its own, whatever else a message is about?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, unknown

from .entropy import together
from .score import Score, undefined
from .table import PAD, Table

CHOICES = ("token_given_concept", "concept_given_token")
USUAL_CHOICE = {"cooccurrence": CHOICES[0], "em": CHOICES[1]}
TIES = ("best", "lowest")
MOST_ROUNDS, SETTLED = 1000, 1e-7  # of EM, and the change of a probability that ends it
# Shares that differ by less, relatively, are a tie: in EM two tokens may near the same share at different speeds.
TIED = {"cooccurrence": 1e-9, "em": 100 * SETTLED}
PAIRS_AT_ONCE = 65_536
MOST_CELLS = 5 * 10**7  # of concepts by tokens: 400 MB for each of a few tables
Matrix = NDArray[np.float64]


def context_independence(
    meanings: Any,
    messages: Any = None,
    *,
    alignment: str = "cooccurrence",
    chosen_by: str | None = None,
    ties: str = "best",
    smoothing: float = 0.0,
    eos: int | None = None,
) -> Score:
    """Context independence: the mean over concepts of p(v | c) p(c | v) for the token v of each (Bogin et al. 2018).

    A concept is a value of an attribute. One whose messages are all empty has no token and counts as 0.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths; empty ones say nothing.
        alignment: "cooccurrence", the form in common use: every token of a message counts for every concept of its
            meaning. Ideal languages of A attributes reach 1 / A^2 in it. Or "em", as in the paper: counts are shared
            out by IBM's first model of translation, trained by expectation maximisation; ideal languages reach 1, but
            for what the training leaves over; less if words have several tokens, or a token is always there.
        chosen_by: what is greatest for v: "token_given_concept", p(v | c), by default for "cooccurrence", or
            "concept_given_token", p(c | v), by default for "em".
        ties: of tokens that are chosen equally, to 1e-9 of the share, or for "em" to 1e-5, the one with the greatest
            product ("best") or the lowest ("lowest").
        smoothing: what is added to every count.
        eos: the token that ends a message; see Table.of.

    Returns:
        A score in [0, 1]; the details have a DataFrame of each concept, its token, p(v | c) and p(c | v), and for "em"
        the rounds made and allowed, the last change of a p(v | c), that which ends the training, and whether it did.
        NaN where all messages are empty.

    Raises:
        InvalidSettingError: tables that do not fit together, continuous meanings, smoothing that is negative or not
            finite, or more concepts by tokens than can be held.
        UnknownNameError: a convention that there is not.

    Example:
        >>> from icy.metrics import context_independence
        >>> table = [[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bc", "bd"]
        >>> context_independence(*table).value, round(context_independence(*table, alignment="em").value, 2)
        (0.25, 1.0)
    """
    chosen_by = _checked(alignment, chosen_by, ties, smoothing)
    table = Table.of(meanings, messages, eos=eos)
    table.require_discrete("Context independence")
    conventions: dict[str, Any] = {"alignment": alignment, "chosen_by": chosen_by, "ties": ties}
    conventions |= {"smoothing": smoothing or None, "eos": eos}
    if not table.lengths.any():
        return undefined("context_independence", "all messages are empty", len(table), conventions)
    concepts, names = _concepts(table)
    tokens, used = _tokens(table)
    if len(names) * len(used) > MOST_CELLS:
        raise InvalidSettingError(
            f"{len(names)} concepts by {len(used)} tokens are too many for context independence; take fewer rows."
        )
    counts = _cooccurrences(concepts, tokens, len(names), len(used))
    details: dict[str, Any] = {}
    if alignment == "em":
        counts, details = _aligned(concepts, tokens, counts)
    counts = counts + smoothing
    shares = dict(zip(CHOICES, (_shares(counts, 1), _shares(counts, 0)), strict=True))
    product = shares[CHOICES[0]] * shares[CHOICES[1]]
    chosen = np.arange(len(names)), _chosen(shares[chosen_by], product, ties, TIED[alignment])
    frame = _frame(names, [table.token_name(v) for v in used[chosen[1]]], {n: s[chosen] for n, s in shares.items()})
    return Score(
        "context_independence", product[chosen].mean(), len(table), conventions, {"concepts": frame, **details}
    )


def _checked(alignment: str, chosen_by: str | None, ties: str, smoothing: float) -> str:
    """What a token is chosen by, once every convention is one that there is."""
    if alignment not in USUAL_CHOICE:
        raise unknown("alignment", alignment, list(USUAL_CHOICE))
    if chosen_by is not None and chosen_by not in CHOICES:
        raise unknown("share", chosen_by, CHOICES)
    if ties not in TIES:
        raise unknown("rule for ties", ties, TIES)
    if not 0 <= smoothing < np.inf:
        raise InvalidSettingError(f"smoothing is added to counts, a number of at least 0, not {smoothing}.")
    return chosen_by or USUAL_CHOICE[alignment]


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
    """Counts shared out over the concepts of a meaning, by expectation maximisation from equal shares."""
    concepts, tokens, times = _pairs(concepts, tokens)
    translation = _shares((counts > 0).astype(float), 1)
    rounds, change = 0, np.inf
    while rounds < MOST_ROUNDS and change >= SETTLED:
        rounds += 1
        shared = np.zeros_like(counts)
        for first in range(0, len(times), PAIRS_AT_ONCE):
            some = slice(first, first + PAIRS_AT_ONCE)
            _share_out(shared, translation, concepts[some], tokens[some], times[some])
        before, translation = translation, _shares(shared, 1)
        change = float(np.abs(translation - before).max())
    found = {"rounds": rounds, "most_rounds": MOST_ROUNDS, "change": change, "tolerance": SETTLED}
    return shared, {**found, "converged": change < SETTLED}


def _pairs(
    concepts: NDArray[np.int64], tokens: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The different pairs of a meaning and a token: the concepts, [P, A], the token and how often, [P] each.

    The model translates the tokens of a message one by one, so that it is all the same which message a token is in.
    """
    meaning = together(*concepts.T)
    _, first = np.unique(meaning, return_index=True)
    width = int(tokens.max()) + 1
    said = tokens != PAD
    pairs, times = np.unique((meaning[:, None] * width + tokens)[said], return_counts=True)
    return concepts[first[pairs // width]], pairs % width, times


def _share_out(
    shared: Matrix,
    translation: Matrix,
    concepts: NDArray[np.int64],
    tokens: NDArray[np.int64],
    times: NDArray[np.int64],
) -> None:
    """Add the times of every pair to the concepts of its meaning, in proportion to their translations."""
    cells = concepts, tokens[:, None]
    weights = translation[cells]
    weights *= (times / weights.sum(1))[:, None]
    np.add.at(shared, cells, weights)


def _shares(counts: Matrix, axis: int) -> Matrix:
    """Counts as shares of their sum along an axis; 0 where that is 0."""
    total = counts.sum(axis, keepdims=True)
    shares: Matrix = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    return shares


def _chosen(choice: Matrix, product: Matrix, ties: str, tied: float) -> NDArray[np.int64]:
    """The token of every concept."""
    best = choice >= choice.max(1, keepdims=True) * (1 - tied)
    found: NDArray[np.int64] = (best if ties == "lowest" else np.where(best, product, -1)).argmax(1)
    return found


def _frame(names: list[tuple[int, Any]], tokens: list[Any], shares: dict[str, Matrix]) -> Any:
    """The table of concepts; one that is never spoken of has no token."""
    import pandas as pd

    attributes, values = zip(*names, strict=True)
    frame = pd.DataFrame({"attribute": attributes, "value": values, "token": tokens, **shares})
    silent = shares[CHOICES[0]] == 0
    if silent.any():  # as objects, for tokens to remain whole numbers beside None
        frame["token"] = frame["token"].astype(object).where(~silent, None)
    return frame
