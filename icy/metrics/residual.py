"""Residual entropy and HCE: the entropy of attributes given the message positions assigned to each."""

import numpy as np
from numpy.typing import NDArray

from icy.core.conventions import either_spelling
from icy.core.errors import InvalidSettingError, require_known
from icy.core.progress import track
from icy.core.register import register_metric
from icy.languages.table import Codes, Table, Weights, mean_of_rows, number, together

from .construction import Facts, positional
from .information import NOTHING, best_rows, conditional_entropy, entropy, information_matrix
from .score import Score, undefined, why_unvaried

SEARCHES = ("exhaustive", "greedy", "resnick")
MOST_POSITIONS = 16  # largest number of positions for an exhaustive search, which visits every subset
SMOOTHING = 1e-8  # number that Resnick et al. add to every count
Groups = list[list[int]]  # the positions assigned to each attribute


def _assigned(facts: Facts, score: Score) -> str:
    """Note for HCE and residual entropy, which divide the positions among the attributes."""
    if note := positional(facts, score):
        return note
    positions, attributes = len(facts.changing), len(facts.varying)
    if positions >= attributes or not score.conventions["normalised"]:
        return ""
    left = (attributes - positions) / facts.table.attributes
    bound = f"at most {1 - left:.3g}" if score.metric == "hce" else f"at least {left:.3g}"
    return f"fewer positions ({positions}) than attributes ({attributes}) change, and each encodes one: {bound}"


@register_metric("residual_entropy", source="Resnick et al. 2020", aliases=("resent",), weighted=True,
                 lower_is_better=True, unstructured=1.0, by_construction=_assigned)  # fmt: skip
@either_spelling
def residual_entropy(
    meanings: object,
    messages: object = None,
    *,
    search: str = "exhaustive",
    normalised: bool = True,
    eos: object = None,
) -> Score:
    """Residual entropy: entropy of attributes given the positions assigned to each.

    The score is the mean over attributes. Every position is assigned to exactly one attribute. 0 is compositional; 1
    (normalised) means that messages carry no information (Resnick et al. 2020). The exhaustive search for the best
    assignment is exact; it uses dynamic programming over subsets of positions. It gives long messages of any language a
    low score if a few of their positions already identify the meaning.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        search: how to find the assignment: "exhaustive" minimizes the residual entropy; "greedy" assigns each position
            to the attribute with which it has the highest mutual information, ties within 1e-9 bits to the first (the
            relaxed form of Icy22); "resnick" is the algorithm of Resnick et al. for two symbols, including its
            smoothing of counts.
        normalised: divide each entropy by the attribute's own; otherwise it is in bits.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score of at least 0, with the positions of each attribute in the details. A constant attribute contributes 0
        to the mean. NaN if every attribute is constant.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), continuous meanings, more than 16 positions for an
            exhaustive search, or more than two symbols for "resnick".
        UnknownNameError: an unknown search.

    Example:
        >>> from icy.metrics import residual_entropy
        >>> score = residual_entropy([[0, 0], [0, 1], [1, 0], [1, 1]], [[3, 1], [4, 1], [3, 2], [4, 2]])
        >>> score.value, score.details["positions"]
        (0.0, [[1], [0]])
    """
    require_known("search for an assignment", search, SEARCHES)
    table = Table.of(meanings, messages, eos=eos).require_discrete("Residual entropy")
    conventions = {"search": search, "normalised": normalised, "eos": eos}
    if why := why_unvaried(table.factors):
        return undefined("residual_entropy", why, len(table), conventions)
    groups = {"exhaustive": _exhaustive, "greedy": _greedy, "resnick": _resnick}[search](table, normalised)
    smoothing = SMOOTHING if search == "resnick" else 0.0
    left = [
        _residual(factor, [table.positions[j] for j in group], normalised, table.weights, smoothing)
        for factor, group in zip(table.factors, groups, strict=True)
    ]
    return Score("residual_entropy", float(np.mean(left)), len(table), conventions, {"positions": groups})


@register_metric("hce", source="Icy22 appendix D", aliases=("compent",), weighted=True, unstructured=0.0,
                 by_construction=_assigned)  # fmt: skip
@either_spelling
def hce(meanings: object, messages: object = None, *, normalised: bool = True, eos: object = None) -> Score:
    """Human compositional entropy: one less residual entropy with every position at its best attribute.

    Each position is assigned to the attribute with which it has the highest mutual information (Icy22 appendix D). 1
    is compositional. Ties, within 1e-9 bits, go to the first attribute; they are common in small full grids and decide
    the value. HCE is biased upwards on few rows.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        normalised: divide each entropy by the attribute's own; otherwise it is in bits, and the score may be negative.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score, in [0, 1] if normalised, with the positions of each attribute in the details. NaN if every attribute is
        constant.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), or continuous meanings.

    Example:
        >>> from icy.metrics import hce
        >>> hce([[0, 0], [0, 1], [1, 0], [1, 1]], [[1, 1], [1, 2], [2, 2], [2, 1]]).value
        0.5
    """
    left = residual_entropy(meanings, messages, search="greedy", normalised=normalised, eos=eos)
    conventions = {"normalised": normalised, "eos": eos}
    return Score("hce", 1 - left.value, left.rows, conventions, left.details, why=left.why)


def _residual(
    factor: Codes, positions: list[Codes], normalised: bool, weights: Weights | None = None, smoothing: float = 0.0
) -> float:
    """Return the entropy of an attribute given some positions; if normalised, divided by the attribute's entropy."""
    alone = entropy(factor, weights)
    if alone <= NOTHING:
        return 0.0
    if not positions:
        left = alone
    elif smoothing:  # is added to every count of a sub-message and a value
        given = together(*positions)
        counts = np.zeros((given.max() + 1, factor.max() + 1))
        np.add.at(counts, (given, factor), 1 if weights is None else weights)
        counts += smoothing
        share = counts / counts.sum(1, keepdims=True)
        left = float(-(counts / counts.sum() * np.log2(share)).sum())
    else:
        left = conditional_entropy(factor, together(*positions), weights)
    return left / alone if normalised else left


def _greedy(table: Table, _: bool) -> Groups:
    """Assign every position to the attribute with which it has the highest mutual information."""
    if not table.length:
        return [[] for _ in table.factors]
    return _grouped(best_rows(information_matrix(table.factors, table.positions, table.weights)), table.attributes)


def _grouped(owners: NDArray[np.int64], attributes: int) -> Groups:
    return [np.flatnonzero(owners == a).tolist() for a in range(attributes)]


def _exhaustive(table: Table, normalised: bool) -> Groups:
    """Find the assignment with the lowest residual entropy.

    The entropy of an attribute only depends on its own positions. So the optimum of the first a attributes on every
    subset of the positions follows from that of the first a - 1, in 3^S steps per attribute instead of A^S in all.
    """
    if table.length > MOST_POSITIONS:
        raise InvalidSettingError(
            f"An exhaustive search supports up to {MOST_POSITIONS} positions, but messages have {table.length}; "
            'take search="greedy".'
        )
    costs = _subset_costs(table, normalised)
    size = 1 << table.length
    best, chosen = costs[0], [np.arange(size)]
    for cost in costs[1:]:  # give a part of every subset to one more attribute
        least, taken = np.empty(size), np.empty(size, dtype=np.int64)
        for whole in range(size):
            parts = _parts_of(whole)
            sums = cost[parts] + best[whole ^ parts]
            # Take the smallest of parts that tie up to rounding: irrelevant positions stay with the first attributes.
            at = int((sums <= sums.min() + 1e-9).argmax())
            least[whole], taken[whole] = sums[at], parts[at]
        best = least
        chosen.append(taken)
    owners, left = np.zeros(table.length, dtype=np.int64), size - 1
    for a in reversed(range(table.attributes)):
        owners[[j for j in range(table.length) if chosen[a][left] >> j & 1]] = a
        left ^= int(chosen[a][left])
    return _grouped(owners, table.attributes)


def _subset_costs(table: Table, normalised: bool) -> NDArray[np.float64]:
    """Return the entropy of every attribute given every subset of the positions, indexed by its bits: [A, 2^S]."""
    joint: list[Codes] = [np.zeros(len(table), dtype=np.int64)]
    for column in table.positions:
        joint += [together(subset, column) for subset in joint]
    costs = [
        [_residual(factor, [subset], normalised, table.weights) for factor in table.factors]
        for subset in track(joint, "subsets of residual_entropy")
    ]
    return np.array(costs).T


def _parts_of(whole: int) -> NDArray[np.int64]:
    """Return every subset of a subset as bits, in ascending order."""
    parts = np.zeros(1, dtype=np.int64)
    for bit in (1 << j for j in range(whole.bit_length()) if whole >> j & 1):
        parts = np.concatenate([parts, parts | bit])
    return np.sort(parts)


def _resnick(table: Table, _: bool) -> Groups:
    """Assign positions as Resnick et al. do: to the attribute whose values change the share of ones most."""
    symbols = number(table.messages.ravel()).reshape(table.messages.shape)
    if symbols.size and symbols.max() > 1:
        raise InvalidSettingError(
            f'search="resnick" needs two symbols, but the messages have {symbols.max() + 1}; take search="greedy".'
        )
    weights = np.ones(len(table), dtype=np.int64) if table.weights is None else table.weights
    shares = [
        np.array([mean_of_rows(symbols[factor == v], weights[factor == v]) for v in np.unique(factor)])
        for factor in table.factors
    ]
    middle = np.concatenate(shares).mean(0)
    ranks = np.array([np.abs(share - middle).mean(0) for share in shares])
    return _grouped(best_rows(ranks), table.attributes)
