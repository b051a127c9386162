"""Residual entropy: what is not known of the attributes once every position of the message belongs to one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, unknown

from .entropy import NOTHING, Codes, conditional_entropy, entropy, number, together
from .information import best_rows, information_matrix
from .score import Score
from .table import Table

SEARCHES = ("exhaustive", "greedy", "resnick")
MOST_POSITIONS = 16  # of an exhaustive search, which looks at every subset of them
SMOOTHING = 1e-8  # counts that Resnick et al. add
Groups = list[list[int]]  # the positions of every attribute


def residual_entropy(
    meanings: Any,
    messages: Any = None,
    *,
    search: str = "exhaustive",
    normalised: bool = True,
    eos: int | None = None,
) -> Score:
    """Residual entropy: the mean entropy of an attribute given the positions assigned to it, every position to one.

    0 is compositional, 1 (normalised) tells nothing (Resnick et al. 2020). An exhaustive search over the assignments
    goes by dynamic programming over the subsets of positions and is exact; long messages that name every meaning by
    some of their positions read low in it whatever their composition.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        search: for the assignment: "exhaustive", the least residual entropy there is; "greedy", every position to the
            attribute that it tells most of, the first of equals (the relaxed form of Icy22); or "resnick", the
            algorithm of Resnick et al. for two symbols, with its added counts.
        normalised: each entropy as a share of the attribute's own; else in bits.
        eos: the token that ends a message; see Table.of.

    Returns:
        The score, at least 0, with the positions of each attribute in the details. An attribute that never changes
        adds 0 to the mean.

    Raises:
        InvalidSettingError: tables that do not fit together, continuous meanings, more positions than can be searched,
            or, for "resnick", more than two symbols.
        UnknownNameError: a search that there is not.

    Example:
        >>> from icy.metrics import residual_entropy
        >>> score = residual_entropy([[0, 0], [0, 1], [1, 0], [1, 1]], [[3, 1], [4, 1], [3, 2], [4, 2]])
        >>> score.value, score.details["positions"]
        (0.0, [[1], [0]])
    """
    if search not in SEARCHES:
        raise unknown("search for an assignment", search, SEARCHES)
    table = Table.of(meanings, messages, eos=eos)
    table.require_discrete("Residual entropy")
    groups = {"exhaustive": _exhaustive, "greedy": _greedy, "resnick": _resnick}[search](table, normalised)
    smoothing = SMOOTHING if search == "resnick" else 0.0
    value = _mean_residual(table, groups, normalised, smoothing)
    conventions = {"search": search, "normalised": normalised, "eos": eos}
    return Score("residual_entropy", value, len(table), conventions, {"positions": groups})


def hce(meanings: Any, messages: Any = None, *, normalised: bool = True, eos: int | None = None) -> Score:
    """Human compositional entropy: one less the residual entropy with every position at the attribute it tells most of.

    1 is compositional (Icy22 section 2.6). Of attributes that a position tells equally of, to 1e-9 bits, the first has
    it: ties are common in small full grids and decide the value. Biased upwards on few rows.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        normalised: each entropy as a share of the attribute's own; in bits the score may be negative.
        eos: the token that ends a message; see Table.of.

    Returns:
        A score in [0, 1] if normalised, with the positions of each attribute in the details.

    Raises:
        InvalidSettingError: tables that do not fit together, continuous meanings.

    Example:
        >>> from icy.metrics import hce
        >>> hce([[0, 0], [0, 1], [1, 0], [1, 1]], [[1, 1], [1, 2], [2, 2], [2, 1]]).value
        0.5
    """
    left = residual_entropy(meanings, messages, search="greedy", normalised=normalised, eos=eos)
    return Score("hce", 1 - left.value, left.rows, {"normalised": normalised, "eos": eos}, left.details)


def _mean_residual(table: Table, groups: Groups, normalised: bool, smoothing: float = 0.0) -> float:
    """The mean over attributes of the entropy that the positions assigned to each leave."""
    left = [
        _residual(factor, [table.positions[j] for j in group], normalised, smoothing)
        for factor, group in zip(table.factors, groups, strict=True)
    ]
    return float(np.mean(left))


def _residual(factor: Codes, positions: list[Codes], normalised: bool, smoothing: float = 0.0) -> float:
    """The entropy of an attribute given some positions, perhaps as a share of its own."""
    alone = entropy(factor)
    if alone <= NOTHING:
        return 0.0
    if not positions:
        left = alone
    elif smoothing:
        left = _smoothed(factor, together(*positions), smoothing)
    else:
        left = conditional_entropy(factor, together(*positions))
    return left / alone if normalised else left


def _smoothed(factor: Codes, given: Codes, smoothing: float) -> float:
    """Conditional entropy in bits with something added to every count of a sub-message and a value."""
    counts = np.zeros((given.max() + 1, factor.max() + 1))
    np.add.at(counts, (given, factor), 1)
    counts += smoothing
    share = counts / counts.sum(1, keepdims=True)
    return float(-(counts / counts.sum() * np.log2(share)).sum())


def _greedy(table: Table, _: bool) -> Groups:
    """Every position at the attribute that it tells most of."""
    if not table.length:
        return [[] for _ in table.factors]
    return _grouped(best_rows(information_matrix(table.factors, table.positions)), table.attributes)


def _grouped(owners: NDArray[np.int64], attributes: int) -> Groups:
    return [np.flatnonzero(owners == a).tolist() for a in range(attributes)]


def _exhaustive(table: Table, normalised: bool) -> Groups:
    """The assignment of least residual entropy.

    What an attribute leaves depends on its own positions alone, so that the best of the first a attributes within every
    subset of the positions follows from the best of the first a - 1: 3^S steps in place of A^S.
    """
    if table.length > MOST_POSITIONS:
        raise InvalidSettingError(
            f"An exhaustive search looks at up to {MOST_POSITIONS} positions, and messages have {table.length}; "
            'take search="greedy".'
        )
    costs = _subset_costs(table, normalised)
    size = 1 << table.length
    best, chosen = costs[0], [np.arange(size)]
    for cost in costs[1:]:
        best, own = _with_one_more(best, cost, size)
        chosen.append(own)
    owners, left = np.zeros(table.length, dtype=np.int64), size - 1
    for a in reversed(range(table.attributes)):
        owners[[j for j in range(table.length) if chosen[a][left] >> j & 1]] = a
        left ^= int(chosen[a][left])
    return _grouped(owners, table.attributes)


def _subset_costs(table: Table, normalised: bool) -> NDArray[np.float64]:
    """What is left of every attribute given every subset of the positions, by the subset's bits: [A, 2^S]."""
    joint: list[Codes] = [np.zeros(len(table), dtype=np.int64)]
    for column in table.positions:
        joint += [together(subset, column) for subset in joint]
    return np.array([[_residual(factor, [subset], normalised) for subset in joint] for factor in table.factors])


def _with_one_more(
    best: NDArray[np.float64], cost: NDArray[np.float64], size: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The least cost within every subset once one more attribute may take a part of it, and the part it takes."""
    least, taken = np.empty(size), np.empty(size, dtype=np.int64)
    for whole in range(size):
        parts = _parts_of(whole)
        sums = cost[parts] + best[whole ^ parts]
        # Of parts that are equal but for rounding the smallest: the first attributes keep what is no matter.
        at = int((sums <= sums.min() + 1e-9).argmax())
        least[whole], taken[whole] = sums[at], parts[at]
    return least, taken


def _parts_of(whole: int) -> NDArray[np.int64]:
    """Every subset of a subset, by their bits, the smaller ones first."""
    parts = np.zeros(1, dtype=np.int64)
    for bit in (1 << j for j in range(whole.bit_length()) if whole >> j & 1):
        parts = np.concatenate([parts, parts | bit])
    return np.sort(parts)


def _resnick(table: Table, _: bool) -> Groups:
    """Every position at the attribute whose values move its share of ones most, as Resnick et al. have it."""
    symbols = number(table.messages.ravel()).reshape(table.messages.shape)
    if symbols.size and symbols.max() > 1:
        raise InvalidSettingError(
            f'search="resnick" is for two symbols, and the messages have {symbols.max() + 1}; take search="greedy".'
        )
    shares = [
        np.array([symbols[factor == value].mean(0) for value in range(int(factor.max()) + 1)])
        for factor in table.factors
    ]
    middle = np.concatenate(shares).mean(0)
    ranks = np.array([np.abs(share - middle).mean(0) for share in shares])
    return _grouped(best_rows(ranks), table.attributes)
